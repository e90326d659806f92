-- name: export_attempts
-- As many attempts as the step says were made since the last retry of the run; the earlier ones are exported as
-- forgotten, in order, and so are lost ones (retry_at 0), each by its begin. Only keys are numbered and sorted.
SELECT a.step_id, a.attempt, a.begun_seq, a.seq, a.finished_at, a.retry_at, a.error, a.started_at, a.worker_id, a.input, a.input_meta,
       CASE WHEN a.retry_at = 0 THEN a.begun_seq WHEN keys.place < keys.now THEN 0 ELSE a.seq END AS forgotten
FROM (SELECT step_id, begun_seq, place, now FROM (
          SELECT k.step_id, k.begun_seq, k.seq, row_number() OVER (PARTITION BY k.step_id, k.retry_at = 0 ORDER BY k.seq DESC) AS place,
                 coalesce(s.attempt, 0) AS now
          FROM step_attempts AS k LEFT JOIN steps AS s ON s.run_id = k.run_id AND s.step_id = k.step_id
          WHERE k.run_id = :run_id AND k.step_id >= :after_step_id)
      WHERE (step_id, seq) > (:after_step_id, :after_seq) ORDER BY step_id, seq LIMIT :limit) AS keys
CROSS JOIN step_attempts AS a ON a.run_id = :run_id AND a.step_id = keys.step_id AND a.begun_seq = keys.begun_seq;

-- name: export_signals
-- In order.
SELECT number, name, request_id, received_at, payload, meta AS payload_meta, step_id, start_request FROM signals
WHERE run_id = :run_id AND number > :after ORDER BY number LIMIT :limit;

-- name: known_runs
-- Those of these runs that belong to the namespace.
SELECT run_id FROM runs WHERE run_id IN (SELECT value FROM json_each(:run_ids)) AND +namespace = :namespace;

-- name: stage_steps
-- Without a lease, so that they match no repeated command.
INSERT INTO steps (run_id, step_id, name, kind, status, begun_seq, created_at, attempt, seq, retry, timeout_ms, once, started_at,
                   finished_at, retry_at, wake_at, child_run_id, parent_step_id, parallel_group_id, worker_id, error, input,
                   input_meta, output, output_meta, details, details_meta)
VALUES {values} ON CONFLICT DO NOTHING;

-- name: stage_forgotten_steps
-- See stage_steps.
INSERT INTO forgotten_steps (run_id, retry_seq, retried_at, step_id, name, kind, status, begun_seq, created_at, attempt, seq, retry,
                             timeout_ms, started_at, finished_at, wake_at, child_run_id, parent_step_id, parallel_group_id,
                             worker_id, claim, bytes, error, input, input_meta, output, output_meta, details, details_meta)
VALUES {values} ON CONFLICT DO NOTHING;

-- name: stage_attempts
-- See stage_steps.
INSERT INTO step_attempts (run_id, step_id, attempt, begun_seq, seq, finished_at, retry_at, error, started_at, worker_id, lease, nonce,
                           input, input_meta)
VALUES {values} ON CONFLICT DO NOTHING;

-- name: stage_signals
-- See stage_steps.
INSERT INTO signals (run_id, number, name, request_id, received_at, payload, meta, step_id, start_request) VALUES {values}
ON CONFLICT DO NOTHING;

-- name: stage_links
-- See stage_steps.
INSERT INTO child_links (namespace, child_run_id, parent_run_id, parent_step_id) VALUES {values} ON CONFLICT DO NOTHING;

-- name: open_blocker
-- Whether the run that it should wait for is open.
SELECT 1 FROM runs WHERE run_id = ? AND namespace = ? AND finished_at IS NULL;

-- name: import_run
-- As exported, without a lease.
INSERT INTO runs ({run.imported}, concurrency_key, cancel_lease)
VALUES ({run.imported values}, :concurrency_key, :cancel_lease);

-- name: import_label
-- One by one: there are few.
INSERT INTO run_labels (namespace, key, value, created_at, run_id) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: watch_children
-- Runs that steps of this one wait for will notify it of their end.
UPDATE runs SET watched = 1 WHERE +namespace = :namespace AND finished_at IS NULL AND run_id IN (
    SELECT child_run_id FROM steps INDEXED BY steps_waiting WHERE run_id = :run_id AND status = {STEP.RUNNING} AND kind IN ({KIND.SIGNAL}, {KIND.CHILD}) AND kind = {KIND.CHILD})
RETURNING run_id;

-- name: import_state
-- Its status after its children were taken into account.
SELECT status FROM runs WHERE run_id = ?;
