-- name: part_step_columns
-- A step as users see it; payloads last, so that lists can leave them out.
step_id, name, kind, status, attempt, begun_seq, seq, created_at, started_at, finished_at, error, retry, timeout_ms, retry_at,
wake_at, child_run_id, parent_step_id, parallel_group_id, worker_id, lease AS claim

-- name: run_finished_at
-- When the run ended, if it has. Runs of other namespaces do not exist.
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
-- Earlier attempts of these steps, in the order of the steps, latest first: read until a page is full. Only keys are
-- sorted.
SELECT a.step_id, a.attempt, a.started_at, a.finished_at, a.error, a.worker_id, a.lease AS claim, a.begun_seq,
       iif(:payloads, a.input, NULL) AS input, iif(:payloads, a.input_meta, NULL) AS input_meta
FROM (SELECT k.step_id, k.begun_seq FROM json_each(:step_ids) AS wanted
      CROSS JOIN step_attempts AS k ON k.run_id = :run_id AND k.step_id = wanted.value
      ORDER BY wanted.key, k.begun_seq DESC LIMIT :limit) AS keys
CROSS JOIN step_attempts AS a ON a.run_id = :run_id AND a.step_id = keys.step_id AND a.begun_seq = keys.begun_seq;

-- name: timeline_run
-- The status of the run, when it ended, and the position of a step.
SELECT r.finished_at, r.created_at, r.status, r.cancel_requested_at, r.pause_requested, r.pause_reason, r.lease, (
    SELECT s.begun_seq FROM steps AS s WHERE s.run_id = r.run_id AND s.step_id = :step_id AND s.kind < {KIND.FIRST_PAYLOAD}
) AS begun_seq
FROM runs AS r WHERE r.run_id = :run_id AND r.namespace = :namespace;

-- name: part_timeline_columns
-- A step without payloads, the times and workers of its earlier attempts (latest first), and the beginning of its
-- error.
SELECT s.step_id, s.name, s.kind, s.status, s.begun_seq, s.seq, s.attempt, s.created_at, s.started_at, s.finished_at, s.retry_at, s.wake_at,
       s.worker_id, s.parent_step_id, s.parallel_group_id, s.child_run_id,
       s.error ->> '$.type' AS error_type, substr(s.error ->> '$.message', 1, 1024) AS error_message, (
           SELECT json_group_array(json_array(latest.started_at, latest.finished_at, latest.worker_id)) FROM (
               SELECT started_at, finished_at, worker_id FROM step_attempts
               WHERE run_id = s.run_id AND step_id = s.step_id ORDER BY begun_seq DESC LIMIT :attempts
           ) AS latest
       ) AS attempts

-- name: part_timeline_rows
-- Of one run, those that fit.
WHERE s.run_id = :run_id AND s.kind < {KIND.FIRST_PAYLOAD} AND (:name IS NULL OR s.name = :name)
  AND (:statuses IS NULL OR s.status IN (SELECT value FROM json_each(:statuses)))
  AND (:kinds IS NULL OR s.kind IN (SELECT value FROM json_each(:kinds)))

-- name: timeline_older
-- Newest first.
{timeline_columns} FROM steps AS s INDEXED BY steps_begun {timeline_rows} AND s.begun_seq < :before ORDER BY s.begun_seq DESC LIMIT :limit;

-- name: timeline_newer
-- Oldest first.
{timeline_columns} FROM steps AS s INDEXED BY steps_begun {timeline_rows} AND s.begun_seq > :after ORDER BY s.begun_seq LIMIT :limit;

-- name: timeline_pauses
-- When it was paused and resumed, latest first.
SELECT step_id, finished_at, error ->> '$.message' AS reason FROM step_attempts
WHERE run_id = :run_id AND step_id IN (:paused, :resumed) ORDER BY seq DESC LIMIT :limit;

-- name: signal_waits
-- The external signals that runs wait for, in the order of the given runs. Only keys are sorted.
SELECT s.run_id, s.step_id, s.name, s.created_at, s.wake_at, s.input, s.input_meta
FROM (SELECT wanted.key AS n, r.run_id FROM json_each(:run_ids) AS wanted
      CROSS JOIN runs AS r ON r.run_id = wanted.value AND r.namespace = :namespace AND r.awaits_signal > 0) AS r
CROSS JOIN steps AS s ON s.run_id = r.run_id AND s.step_id IN (
    SELECT w.step_id FROM steps AS w INDEXED BY steps_waiting
    WHERE w.run_id = r.run_id AND w.status = {STEP.RUNNING} AND w.kind IN ({KIND.SIGNAL}, {KIND.CHILD}) AND w.kind = {KIND.SIGNAL} ORDER BY w.begun_seq LIMIT :most)
ORDER BY r.n, s.begun_seq LIMIT :limit;
