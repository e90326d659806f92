-- name: part_worker
-- A worker as users see it.
*

-- name: part_worker_status
-- The status is passed by name.
CASE :status::text WHEN 'online' THEN {WORKER.ONLINE} WHEN 'draining' THEN {WORKER.DRAINING} ELSE {WORKER.OFFLINE} END

-- name: part_serves_type
-- Whether a worker serves a type at any version.
:workflow_type = ANY (workflow_types)

-- name: put_worker
-- Insert or refresh; its counters stay, and a process that was draining stays draining.
INSERT INTO workers (
    namespace, worker_id, status, active_count, registered_at, last_heartbeat_at, max_concurrent, pid, hostname,
    sdk_version, build_id, workflow_types, served, labels
)
VALUES (
    :namespace::text, :worker_id::text, {worker_status}, :active_count::int, :now::bigint, :now, :max_concurrent::int,
    :pid::bigint, :hostname::text, :sdk_version::text, :build_id::text, :workflow_types::text[], :served::text::json,
    :labels::text::json
)
ON CONFLICT (namespace, worker_id) DO UPDATE
SET status = CASE
        WHEN workers.status = {WORKER.DRAINING} AND excluded.pid > 0 AND workers.pid = excluded.pid
            AND workers.hostname = excluded.hostname THEN {WORKER.DRAINING}
        ELSE excluded.status
    END,
    active_count = excluded.active_count, last_heartbeat_at = excluded.last_heartbeat_at,
    max_concurrent = excluded.max_concurrent, pid = excluded.pid, hostname = excluded.hostname,
    sdk_version = excluded.sdk_version, build_id = excluded.build_id, workflow_types = excluded.workflow_types,
    served = excluded.served, labels = excluded.labels
RETURNING status;
