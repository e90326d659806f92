-- name: total_bulk_operations
-- Every list is counted no further than anybody wants to know.
SELECT count(*) AS total FROM (SELECT 1 FROM bulk_operations WHERE namespace = $1::text LIMIT $2::bigint) AS counted;

-- name: total_namespaces
-- Those that are being deleted, too.
SELECT count(*) AS total FROM (SELECT 1 FROM namespaces LIMIT $1::bigint) AS counted;

-- name: total_schedule_fires
-- What became of a schedule's times.
SELECT count(*) AS total FROM (
    SELECT 1 FROM schedule_fires WHERE namespace = $1::text AND schedule_id = $2::text LIMIT $3::bigint
) AS counted;

-- name: total_schedules
-- Of a type, or all.
SELECT count(*) AS total FROM (
    SELECT 1 FROM schedules WHERE namespace = $1::text AND ($2::text IS NULL OR workflow_type = $2) LIMIT $3::bigint
) AS counted;

-- name: total_steps
-- Of a run, by name or all; payloads that are kept as steps do not count.
SELECT count(*) AS total FROM (
    SELECT 1 FROM runs AS r JOIN steps AS s ON s.run_id = r.run_id
    WHERE r.namespace = $1::text AND r.run_id = $2::uuid
        AND s.kind < 100 AND s.begun_seq > 0 AND ($3::text IS NULL OR s.name = $3)
    LIMIT $4::bigint
) AS counted;

-- name: total_versions
-- Of a type, or all.
SELECT count(*) AS total FROM (
    SELECT 1 FROM workflow_versions WHERE namespace = $1::text AND ($2::text IS NULL OR workflow_type = $2) LIMIT $3::bigint
) AS counted;

-- name: total_worker_events
-- Of a worker, or all.
SELECT count(*) AS total FROM (
    SELECT 1 FROM worker_events WHERE namespace = $1::text AND ($2::text IS NULL OR worker_id = $2) LIMIT $3::bigint
) AS counted;

-- name: total_workers
-- Of a type and a status, or all; who was not heard of for long is offline.
SELECT count(*) AS total FROM (
    SELECT 1 FROM workers
    WHERE namespace = $1::text AND ($2::text IS NULL OR $2 = ANY (workflow_types))
        AND ($3::smallint IS NULL OR CASE WHEN last_heartbeat_at < $4::bigint THEN 3 ELSE status END = $3)
    LIMIT $5::bigint
) AS counted;

-- name: total_workflow_types
-- Those with a row, and those that workers have brought.
SELECT count(*) AS total FROM (
    SELECT workflow_type FROM workflow_types WHERE namespace = $1::text AND ($2::text IS NULL OR workflow_type = $2)
    UNION
    SELECT workflow_type FROM workflow_versions WHERE namespace = $1 AND ($2 IS NULL OR workflow_type = $2)
    LIMIT $3::bigint
) AS counted;
