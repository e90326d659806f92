-- name: part_step_columns
-- A step as people see it; payloads last, so that lists can leave them out.
step_id, name, kind, status, attempt, begun_seq, seq, created_at, started_at, finished_at, error, retry, timeout_ms, retry_at,
wake_at, child_run_id, parent_step_id, parallel_group_id, worker_id

-- name: run_finished_at
-- When the run ended, if it has. Foreign runs do not exist.
SELECT finished_at FROM runs WHERE run_id = ? AND namespace = ?;

-- name: list_steps
-- In the order in which they were begun.
SELECT {step_columns}, NULL AS input, NULL AS input_meta, NULL AS output, NULL AS output_meta, NULL AS details,
       NULL AS details_meta
FROM steps INDEXED BY steps_begun
WHERE run_id = :run_id AND begun_seq > :after AND kind < {KIND.FIRST_PAYLOAD} AND (:name IS NULL OR name = :name) ORDER BY begun_seq LIMIT :limit;

-- name: list_steps_with_payloads
-- The same with input and output.
SELECT {step_columns}, input, input_meta, output, output_meta, details, details_meta FROM steps INDEXED BY steps_begun
WHERE run_id = :run_id AND begun_seq > :after AND kind < {KIND.FIRST_PAYLOAD} AND (:name IS NULL OR name = :name) ORDER BY begun_seq LIMIT :limit;

-- name: get_step
-- One step with payloads.
SELECT {step_columns}, input, input_meta, output, output_meta, details, details_meta FROM steps WHERE run_id = ? AND step_id = ? AND kind < {KIND.FIRST_PAYLOAD};

-- name: attempts_of
-- Earlier attempts of these steps, in the order of the steps, the latest first: read until a page is full.
-- Only keys are sorted.
SELECT a.step_id, a.attempt, a.started_at, a.finished_at, a.error, a.worker_id
FROM (SELECT k.step_id, k.begun_seq FROM json_each(:step_ids) AS wanted
      CROSS JOIN step_attempts AS k ON k.run_id = :run_id AND k.step_id = wanted.value
      ORDER BY wanted.key, k.begun_seq DESC LIMIT :limit) AS keys
CROSS JOIN step_attempts AS a ON a.run_id = :run_id AND a.step_id = keys.step_id AND a.begun_seq = keys.begun_seq;
