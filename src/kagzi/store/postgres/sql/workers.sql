-- name: register_worker
-- Insert or refresh; what it has done stays, and a process that was draining drains still. Its namespace and what it serves are
-- noted.
WITH namespace AS (
    INSERT INTO namespaces (namespace, created_at) VALUES ($1::text, $14::bigint) ON CONFLICT (namespace) DO NOTHING
), versions AS (
    INSERT INTO workflow_versions (namespace, workflow_type, version, first_seen_at)
    SELECT $1, v.workflow_type, v.version, $14
    FROM unnest($15::text[], $16::text[]) AS v (workflow_type, version) ORDER BY v.workflow_type, v.version
    ON CONFLICT DO NOTHING
    RETURNING version
), before AS (
    SELECT 1 FROM workers WHERE namespace = $1 AND worker_id = $2::text
), put AS (
    INSERT INTO workers (
        namespace, worker_id, status, active_count, registered_at, last_heartbeat_at, max_concurrent, pid, hostname,
        sdk_version, build_id, workflow_types, served, labels, total_completed, total_failed
    )
    VALUES (
        $1, $2, $3::smallint, $4::int, $14, $14, $5::int, $6::bigint, $7::text, $8::text, $9::text, $10::text[],
        $11::text::json, $12::text::json, $13::bigint, $17::bigint
    )
    ON CONFLICT (namespace, worker_id) DO UPDATE
    SET status = CASE
            WHEN workers.status = 2 AND excluded.pid > 0 AND workers.pid = excluded.pid
                AND workers.hostname = excluded.hostname THEN 2
            ELSE excluded.status
        END,
        active_count = excluded.active_count, last_heartbeat_at = excluded.last_heartbeat_at,
        max_concurrent = excluded.max_concurrent, pid = excluded.pid, hostname = excluded.hostname,
        sdk_version = excluded.sdk_version, build_id = excluded.build_id, workflow_types = excluded.workflow_types,
        served = excluded.served, labels = excluded.labels
    RETURNING status
)
SELECT EXISTS (SELECT 1 FROM before) AS known_before, put.status = 2 AS draining,
    EXISTS (SELECT 1 FROM versions) AS new_versions
FROM put;

-- name: lock_worker
-- How it is now; nobody else changes it meanwhile.
SELECT status FROM workers WHERE namespace = $1::text AND worker_id = $2::text FOR UPDATE;

-- name: set_worker_status
-- Drained, back, or gone. A worker that is gone does nothing.
UPDATE workers SET status = $3::smallint, last_heartbeat_at = greatest(last_heartbeat_at, $4::bigint),
    active_count = CASE WHEN $3 = 3 THEN 0 ELSE active_count END
WHERE namespace = $1::text AND worker_id = $2::text
RETURNING worker_id;

-- name: drain_worker
-- To take no more work. That somebody wants this is no sign of life.
UPDATE workers SET status = 2 WHERE namespace = $1::text AND worker_id = $2::text AND status = 1 RETURNING worker_id;

-- name: lose_workers
-- Those who were there and were not heard of any more. Whoever is just being written about is.
UPDATE workers SET status = 3, active_count = 0
WHERE (namespace, worker_id) IN (
    SELECT namespace, worker_id FROM workers WHERE status <> 3 AND last_heartbeat_at < $1::bigint
        AND ($3::text IS NULL OR (namespace = $3 AND worker_id = $4::text))
    ORDER BY namespace, worker_id LIMIT $2::bigint FOR UPDATE SKIP LOCKED
)
RETURNING namespace, worker_id;

-- name: forget_workers
-- Those who left long ago, some at a time.
DELETE FROM workers AS w
USING (
    SELECT namespace, worker_id FROM workers WHERE status = 3 AND last_heartbeat_at < $1::bigint LIMIT $2::bigint
) AS old
WHERE w.namespace = old.namespace AND w.worker_id = old.worker_id AND w.status = 3
RETURNING w.worker_id;

-- name: get_worker
-- One worker.
SELECT * FROM workers WHERE namespace = $1::text AND worker_id = $2::text;

-- name: list_workers_older
-- A page of workers, newest registration first.
SELECT * FROM workers
WHERE namespace = $1::text
    AND ($2::text IS NULL OR $2 = ANY (workflow_types))
    AND ($3::smallint IS NULL OR CASE WHEN last_heartbeat_at < $7::bigint THEN 3 ELSE status END = $3)
    AND ($4::bigint IS NULL OR (registered_at, worker_id) < ($4, $5::text))
ORDER BY registered_at DESC, worker_id DESC
LIMIT $6::bigint;

-- name: list_workers_newer
-- The same towards the newer, nearest first: the reader turns the page around.
SELECT * FROM workers
WHERE namespace = $1::text
    AND ($2::text IS NULL OR $2 = ANY (workflow_types))
    AND ($3::smallint IS NULL OR CASE WHEN last_heartbeat_at < $7::bigint THEN 3 ELSE status END = $3)
    AND ($4::bigint IS NULL OR (registered_at, worker_id) > ($4, $5::text))
ORDER BY registered_at, worker_id
LIMIT $6::bigint;
