-- name: register_worker
-- Insert or refresh; what it has done stays, and a process that was draining drains still. Its namespace and what it serves are
-- noted.
WITH namespace AS (
    INSERT INTO namespaces (namespace, created_at) VALUES (:namespace::text, :now::bigint) ON CONFLICT (namespace) DO NOTHING
), versions AS (
    INSERT INTO workflow_versions (namespace, workflow_type, version, first_seen_at)
    SELECT :namespace, v.workflow_type, v.version, :now
    FROM unnest(:version_types::text[], :versions::text[]) AS v (workflow_type, version) ORDER BY v.workflow_type, v.version
    ON CONFLICT DO NOTHING
    RETURNING version
), before AS (
    SELECT 1 FROM workers WHERE namespace = :namespace AND worker_id = :worker_id::text
), put AS (
    INSERT INTO workers (
        namespace, worker_id, status, active_count, registered_at, last_heartbeat_at, max_concurrent, pid, hostname,
        sdk_version, build_id, workflow_types, served, labels, total_completed, total_failed
    )
    VALUES (
        :namespace, :worker_id, :status::smallint, :active_count::int, :now, :now, :max_concurrent::int, :pid::bigint, :hostname::text, :sdk_version::text, :build_id::text, :workflow_types::text[],
        :served::text::json, :labels::text::json, :total_completed::bigint, :total_failed::bigint
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
    RETURNING status
)
SELECT EXISTS (SELECT 1 FROM before) AS known_before, put.status = {WORKER.DRAINING} AS draining,
    EXISTS (SELECT 1 FROM versions) AS new_versions
FROM put;

-- name: lock_worker
-- How it is now; nobody else changes it meanwhile.
SELECT status FROM workers WHERE namespace = :namespace::text AND worker_id = :worker_id::text FOR UPDATE;

-- name: set_worker_status
-- Drained, back, or gone. A worker that is gone does nothing.
UPDATE workers SET status = :status::smallint, last_heartbeat_at = greatest(last_heartbeat_at, :now::bigint),
    active_count = CASE WHEN :status = {WORKER.OFFLINE} THEN 0 ELSE active_count END
WHERE namespace = :namespace::text AND worker_id = :worker_id::text
RETURNING worker_id;

-- name: drain_worker
-- To take no more work. That somebody wants this is no sign of life.
UPDATE workers SET status = {WORKER.DRAINING} WHERE namespace = :namespace::text AND worker_id = :worker_id::text AND status = {WORKER.ONLINE} RETURNING worker_id;

-- name: lose_workers
-- Those who were there and were not heard of any more. Whoever is just being written about is.
UPDATE workers SET status = {WORKER.OFFLINE}, active_count = 0
WHERE (namespace, worker_id) IN (
    SELECT namespace, worker_id FROM workers WHERE status <> {WORKER.OFFLINE} AND last_heartbeat_at < :unheard_since::bigint
        AND (:namespace::text IS NULL OR (namespace = :namespace AND worker_id = :worker_id::text))
    ORDER BY namespace, worker_id LIMIT :limit::bigint FOR UPDATE SKIP LOCKED
)
RETURNING namespace, worker_id;

-- name: forget_workers
-- Those who left long ago, some at a time.
DELETE FROM workers AS w
USING (
    SELECT namespace, worker_id FROM workers WHERE status = {WORKER.OFFLINE} AND last_heartbeat_at < :before::bigint LIMIT :limit::bigint
) AS old
WHERE w.namespace = old.namespace AND w.worker_id = old.worker_id AND w.status = {WORKER.OFFLINE}
RETURNING w.worker_id;

-- name: get_worker
-- One worker.
SELECT * FROM workers WHERE namespace = :namespace::text AND worker_id = :worker_id::text;

-- name: list_workers_older
-- A page of workers, newest registration first.
SELECT * FROM workers
WHERE namespace = :namespace::text
    AND (:workflow_type::text IS NULL OR :workflow_type = ANY (workflow_types))
    AND (:status::smallint IS NULL OR CASE WHEN last_heartbeat_at < :alive_since::bigint THEN {WORKER.OFFLINE} ELSE status END = :status)
    AND (:cursor_at::bigint IS NULL OR (registered_at, worker_id) < (:cursor_at, :cursor_id::text))
ORDER BY registered_at DESC, worker_id DESC
LIMIT :limit::bigint;

-- name: list_workers_newer
-- The same towards the newer, nearest first: the reader turns the page around.
SELECT * FROM workers
WHERE namespace = :namespace::text
    AND (:workflow_type::text IS NULL OR :workflow_type = ANY (workflow_types))
    AND (:status::smallint IS NULL OR CASE WHEN last_heartbeat_at < :alive_since::bigint THEN {WORKER.OFFLINE} ELSE status END = :status)
    AND (:cursor_at::bigint IS NULL OR (registered_at, worker_id) > (:cursor_at, :cursor_id::text))
ORDER BY registered_at, worker_id
LIMIT :limit::bigint;
