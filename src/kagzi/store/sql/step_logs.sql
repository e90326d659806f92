-- name: lock_step_logs
-- The stored lines of these steps. Another server that appends to one of them waits.
SELECT l.run_id::text AS run_id, l.step_id, l.lines, l.dropped
FROM rows(:steps) AS s (namespace text, run_id uuid, step_id text)
JOIN runs AS r ON r.run_id = s.run_id AND r.namespace = s.namespace
JOIN step_logs AS l ON l.run_id = r.run_id AND l.step_id = s.step_id
FOR UPDATE OF l;

-- name: put_step_logs
-- Only for runs that still exist.
INSERT INTO step_logs (run_id, step_id, lines, dropped)
SELECT r.run_id, s.step_id, s.lines, s.dropped
FROM rows(:logs) AS s (namespace text, run_id uuid, step_id text, lines text, dropped bigint)
JOIN runs AS r ON r.run_id = s.run_id AND r.namespace = s.namespace
WHERE true
ON CONFLICT (run_id, step_id) DO UPDATE SET lines = excluded.lines, dropped = excluded.dropped;

-- name: has_run
-- Whether the run exists.
SELECT 1 AS present FROM runs WHERE run_id = :run_id::uuid AND namespace IS NOT DISTINCT FROM :namespace::text;

-- name: list_step_logs
-- All steps of a run in order, or one.
SELECT l.step_id, l.lines, l.dropped FROM step_logs AS l
WHERE l.run_id = :run_id::uuid AND l.step_id > :after::text AND (:step_id::text IS NULL OR l.step_id = :step_id)
ORDER BY l.step_id LIMIT :limit::bigint;

-- name: delete_some_logs
-- See delete_some_steps.
DELETE FROM step_logs
WHERE run_id = :run_id::uuid
    AND step_id IN (SELECT step_id FROM step_logs WHERE run_id = :run_id LIMIT :limit::bigint)
RETURNING 1;
