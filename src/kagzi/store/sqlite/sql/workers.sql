-- name: part_worker
-- A worker as users see it; what it serves is stored as pairs.
worker_id, namespace, max_concurrent, hostname, pid, sdk_version, build_id, labels, status, active_count, total_completed,
total_failed, registered_at, last_heartbeat_at, (
    SELECT json_group_array(json_object(
        'workflow_type', json_extract(value, '$[0]'), 'version', json_extract(value, '$[1]'))) FROM json_each(served)
) AS served

-- name: part_worker_status
-- The status is passed and stored by name.
:status

-- name: part_serves_type
-- Whether a worker serves a type at any version.
EXISTS (SELECT 1 FROM json_each(served) WHERE json_extract(value, '$[0]') = :workflow_type)

-- name: put_worker
-- Insert or refresh; its counters stay, and a process that was draining stays draining.
INSERT INTO workers (worker_id, namespace, served, max_concurrent, hostname, pid, sdk_version, build_id, labels, status,
                     active_count, registered_at, last_heartbeat_at)
VALUES (:worker_id, :namespace, (
            SELECT json_group_array(json_array(json_extract(value, '$.workflow_type'), json_extract(value, '$.version')))
            FROM json_each(:served)
        ), :max_concurrent, :hostname, :pid, :sdk_version, :build_id, :labels, :status, :active_count, :now, :now)
ON CONFLICT (namespace, worker_id) DO UPDATE SET served = excluded.served, max_concurrent = excluded.max_concurrent,
    hostname = excluded.hostname, pid = excluded.pid, sdk_version = excluded.sdk_version, build_id = excluded.build_id,
    labels = excluded.labels, status = CASE WHEN workers.status = {WORKER.DRAINING} AND excluded.pid > 0
        AND workers.pid = excluded.pid AND workers.hostname = excluded.hostname
        THEN {WORKER.DRAINING} ELSE excluded.status END,
    active_count = excluded.active_count, last_heartbeat_at = excluded.last_heartbeat_at
RETURNING status;
