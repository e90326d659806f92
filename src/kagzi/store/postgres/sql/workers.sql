-- name: register_worker
-- Insert or refresh; what it has done stays. Its namespace and the versions it serves are noted.
WITH namespace AS (
    INSERT INTO namespaces (namespace, created_at) VALUES ($1::text, $14::bigint) ON CONFLICT (namespace) DO NOTHING
), versions AS (
    INSERT INTO workflow_versions (namespace, workflow_type, version, first_seen_at)
    SELECT $1, v.workflow_type, v.version, $14
    FROM unnest($15::text[], $16::text[]) AS v (workflow_type, version) ORDER BY v.workflow_type, v.version
    ON CONFLICT DO NOTHING
)
INSERT INTO workers (
    namespace, worker_id, status, active_count, registered_at, last_heartbeat_at, max_concurrent, pid, hostname,
    sdk_version, build_id, workflow_types, served, labels, total_completed, total_failed
)
VALUES (
    $1, $2::text, $3::smallint, $4::int, $14, $14, $5::int, $6::bigint, $7::text, $8::text, $9::text, $10::text[],
    $11::text::json, $12::text::json, $13::bigint, $17::bigint
)
ON CONFLICT (namespace, worker_id) DO UPDATE
SET status = excluded.status, active_count = excluded.active_count, last_heartbeat_at = excluded.last_heartbeat_at,
    max_concurrent = excluded.max_concurrent, pid = excluded.pid, hostname = excluded.hostname,
    sdk_version = excluded.sdk_version, build_id = excluded.build_id, workflow_types = excluded.workflow_types,
    served = excluded.served, labels = excluded.labels;

-- name: set_worker_status
-- Drained, back, or gone. A worker that is gone does nothing.
UPDATE workers SET status = $3::smallint, last_heartbeat_at = greatest(last_heartbeat_at, $4::bigint),
    active_count = CASE WHEN $3 = 3 THEN 0 ELSE active_count END
WHERE namespace = $1::text AND worker_id = $2::text
RETURNING worker_id;

-- name: get_worker
-- One worker.
SELECT * FROM workers WHERE namespace = $1::text AND worker_id = $2::text;

-- name: list_workers_older
-- A page of workers, newest registration first.
SELECT * FROM workers
WHERE namespace = $1::text
    AND ($2::text IS NULL OR $2 = ANY (workflow_types))
    AND ($3::smallint IS NULL OR status = $3)
    AND ($4::bigint IS NULL OR (registered_at, worker_id) < ($4, $5::text))
ORDER BY registered_at DESC, worker_id DESC
LIMIT $6::bigint;

-- name: list_workers_newer
-- The same towards the newer, nearest first: the reader turns the page around.
SELECT * FROM workers
WHERE namespace = $1::text
    AND ($2::text IS NULL OR $2 = ANY (workflow_types))
    AND ($3::smallint IS NULL OR status = $3)
    AND ($4::bigint IS NULL OR (registered_at, worker_id) > ($4, $5::text))
ORDER BY registered_at, worker_id
LIMIT $6::bigint;
