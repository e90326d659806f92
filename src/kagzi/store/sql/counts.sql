-- name: total_bulk_operations
-- Counting stops at the cap, here and in all lists below.
SELECT count(*) AS total FROM (SELECT 1 FROM bulk_operations WHERE namespace = :namespace::text LIMIT :cap::bigint) AS counted;

-- name: total_namespaces
-- Includes those that are being deleted.
SELECT count(*) AS total FROM (SELECT 1 FROM namespaces LIMIT :cap::bigint) AS counted;

-- name: total_schedule_fires
-- The fires and skips of a schedule.
SELECT count(*) AS total FROM (
    SELECT 1 FROM schedule_fires WHERE namespace = :namespace::text AND schedule_id = :schedule_id::text LIMIT :cap::bigint
) AS counted;

-- name: total_schedules
-- Of a type, or all.
SELECT count(*) AS total FROM (
    SELECT 1 FROM schedules
    WHERE namespace = :namespace::text AND (:workflow_type::text IS NULL OR workflow_type = :workflow_type)
    LIMIT :cap::bigint
) AS counted;

-- name: total_steps
-- Of a run, by name or all. Payloads that are stored as steps do not count.
SELECT count(*) AS total FROM (
    SELECT 1 FROM runs AS r JOIN steps AS s ON s.run_id = r.run_id
    WHERE r.namespace = :namespace::text AND r.run_id = :run_id::uuid
        AND s.kind < {KIND.FIRST_PAYLOAD} AND s.begun_seq > 0 AND (:step_name::text IS NULL OR s.name = :step_name)
    LIMIT :cap::bigint
) AS counted;

-- name: total_forgotten_steps
-- Of a run, by name or all.
SELECT count(*) AS total FROM (
    SELECT 1 FROM runs AS r JOIN forgotten_steps AS f ON f.run_id = r.run_id
    WHERE r.namespace = :namespace::text AND r.run_id = :run_id::uuid AND (:step_name::text IS NULL OR f.name = :step_name)
    LIMIT :cap::bigint
) AS counted;

-- name: total_step_logs
-- Of a run, the steps that logged anything; or whether one step did.
SELECT count(*) AS total FROM (
    SELECT 1 FROM runs AS r JOIN step_logs AS l ON l.run_id = r.run_id
    WHERE r.namespace = :namespace::text AND r.run_id = :run_id::uuid AND (:step_id::text IS NULL OR l.step_id = :step_id)
    LIMIT :cap::bigint
) AS counted;

-- name: total_versions
-- Of a type, or all.
SELECT count(*) AS total FROM (
    SELECT 1 FROM workflow_versions
    WHERE namespace = :namespace::text AND (:workflow_type::text IS NULL OR workflow_type = :workflow_type)
    LIMIT :cap::bigint
) AS counted;

-- name: total_worker_events
-- Of a worker, or all.
SELECT count(*) AS total FROM (
    SELECT 1 FROM worker_events WHERE namespace = :namespace::text AND (:worker_id::text IS NULL OR worker_id = :worker_id) LIMIT :cap::bigint
) AS counted;

-- name: total_workers
-- Of a type and a status, or all. A worker that has not reported for long is offline.
SELECT count(*) AS total FROM (
    SELECT 1 FROM workers
    WHERE namespace = :namespace::text AND (:workflow_type::text IS NULL OR {serves_type})
        AND (:status::text IS NULL
            OR CASE WHEN last_heartbeat_at < :alive_since::bigint THEN {WORKER.OFFLINE} ELSE status END = {worker_status})
    LIMIT :cap::bigint
) AS counted;

-- name: total_workflow_types
-- Types with settings, and types that workers have registered.
SELECT count(*) AS total FROM (
    SELECT workflow_type FROM workflow_types WHERE namespace = :namespace::text AND (:workflow_type::text IS NULL OR workflow_type = :workflow_type)
    UNION
    SELECT workflow_type FROM workflow_versions WHERE namespace = :namespace AND (:workflow_type IS NULL OR workflow_type = :workflow_type)
    LIMIT :cap::bigint
) AS counted;

-- name: total_keys
-- Of a namespace, or of all.
SELECT count(*) AS total FROM (
    SELECT 1 FROM api_keys WHERE :everywhere::bool OR namespace = :namespace::text LIMIT :cap::bigint
) AS counted;

-- name: total_audit
-- Of a namespace, or of all.
SELECT count(*) AS total FROM (
    SELECT 1 FROM audit_log WHERE :everywhere::bool OR namespace = :namespace::text LIMIT :cap::bigint
) AS counted;
