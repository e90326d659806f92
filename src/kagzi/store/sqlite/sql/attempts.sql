-- name: run_state
-- One run, for commands that are looked at alone.
SELECT namespace, status, lease, nonce, seq, deadline_at, lease_until, worker_id, due_at, ready_at, finished_at,
       attempt, retry, cancel_requested_at, cancel_lease, retried_lease, watched, has_children, lost_leases, pause_requested,
       continued_as
FROM runs WHERE run_id = ?;

-- name: step_state
-- One step, with all that a repeat or a retry is decided by.
SELECT kind, status, attempt, begun_seq, seq, lease, nonce, retry, wake_at, retry_at, finished_at, error, started_at, worker_id, once, child_run_id
FROM steps WHERE run_id = ? AND step_id = ?;

-- name: history_step
-- One step as replay sees it.
SELECT {history_columns} FROM steps WHERE run_id = ? AND step_id = ?;

-- name: failed_attempt
-- A failure that led to a retry, to recognise its repeat.
SELECT seq, finished_at, retry_at, begun_seq, started_at FROM step_attempts WHERE run_id = ? AND step_id = ? AND attempt = ? AND lease = ? AND nonce = ?;

-- name: count_steps
-- Only asked for runs whose seq shows that they may be near the limit.
SELECT count(*) FROM steps WHERE run_id = ? AND begun_seq > 0;

-- name: begin_again
-- An attempt after a lost lease (same number) or after a retry (the next).
UPDATE steps SET status = 2, attempt = :attempt, begun_seq = :seq, lease = :lease, nonce = :nonce, retry_at = NULL,
                 started_at = :now, worker_id = :worker_id
WHERE run_id = :run_id AND step_id = :step_id AND status IN (1, 2);

-- name: complete_step
-- One result.
UPDATE steps SET status = 3, seq = :seq, output = :output, output_meta = :output_meta, finished_at = :now, lease = :lease, nonce = :nonce
WHERE run_id = :run_id AND step_id = :step_id AND status = 2 AND attempt = :attempt;

-- name: fail_step
-- Out of retries: the failure is the result.
UPDATE steps SET status = 4, seq = :seq, error = :error, finished_at = :now, lease = :lease, nonce = :nonce
WHERE run_id = :run_id AND step_id = :step_id AND status = 2 AND attempt = :attempt;

-- name: archive_attempt
-- The failed attempt is kept; its row goes on as the next one. If it was given up as lost before, and the next holder says how it
-- ended without having begun it again, that is how it ended.
INSERT OR REPLACE INTO step_attempts (run_id, step_id, attempt, begun_seq, seq, lease, nonce, started_at, finished_at, error, retry_at,
                           worker_id)
VALUES (:run_id, :step_id, :attempt, :begun_seq, :seq, :lease, :nonce, :started_at, :now, :error, :retry_at, :worker_id);

-- name: schedule_retry
-- The row waits for its next attempt.
UPDATE steps SET status = 1, attempt = attempt + 1, retry_at = :retry_at
WHERE run_id = :run_id AND step_id = :step_id AND status = 2 AND attempt = :attempt;

-- name: cancel_reason_of
-- Why a run is to be cancelled.
SELECT coalesce(cancel_reason, '') FROM runs WHERE run_id = ?;
