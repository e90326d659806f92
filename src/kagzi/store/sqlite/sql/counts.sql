-- name: total_bulk_operations
-- Every list is counted no further than anybody wants to know.
SELECT count(*) FROM (SELECT 1 FROM bulk_operations WHERE namespace = :namespace LIMIT :cap);

-- name: total_namespaces
-- Those that are being deleted, too.
SELECT count(*) FROM (SELECT 1 FROM namespaces LIMIT :cap);

-- name: total_schedule_fires
-- What became of a schedule's times.
SELECT count(*) FROM (SELECT 1 FROM schedule_fires WHERE namespace = :namespace AND schedule_id = :key LIMIT :cap);

-- name: total_schedules
-- Of a type, or all.
SELECT count(*) FROM (
    SELECT 1 FROM schedules WHERE namespace = :namespace AND (:key IS NULL OR workflow_type = :key) LIMIT :cap);

-- name: total_steps
-- Of a run, by name or all; payloads that are kept as steps do not count.
SELECT count(*) FROM (
    SELECT 1 FROM runs AS r JOIN steps AS s ON s.run_id = r.run_id
    WHERE r.namespace = :namespace AND r.run_id = :key
      AND s.kind < {KIND.FIRST_PAYLOAD} AND s.begun_seq > 0 AND (:step_name IS NULL OR s.name = :step_name) LIMIT :cap);

-- name: total_versions
-- Of a type, or all.
SELECT count(*) FROM (
    SELECT 1 FROM workflow_versions WHERE namespace = :namespace AND (:key IS NULL OR workflow_type = :key) LIMIT :cap);

-- name: total_worker_events
-- Of a worker, or all.
SELECT count(*) FROM (
    SELECT 1 FROM worker_events WHERE namespace = :namespace AND (:key IS NULL OR worker_id = :key) LIMIT :cap);

-- name: total_workers
-- Of a type and a status, or all; who was not heard of for long is offline.
SELECT count(*) FROM (
    SELECT 1 FROM workers WHERE namespace = :namespace
      AND (:status IS NULL OR :status = CASE WHEN last_heartbeat_at < :alive_since THEN 'offline' ELSE status END)
      AND (:key IS NULL OR EXISTS (SELECT 1 FROM json_each(served) WHERE json_extract(value, '$[0]') = :key))
    LIMIT :cap);

-- name: total_workflow_types
-- Those with a row, and those that workers have brought.
SELECT count(*) FROM (
    SELECT workflow_type FROM workflow_types WHERE namespace = :namespace AND (:key IS NULL OR workflow_type = :key)
    UNION
    SELECT workflow_type FROM workflow_versions WHERE namespace = :namespace AND (:key IS NULL OR workflow_type = :key)
    LIMIT :cap);
