-- name: due_sleeps
-- Sleeps of one run whose time has come, in the order in which they complete.
SELECT step_id FROM steps INDEXED BY steps_sleeps
WHERE run_id = ? AND kind = 2 AND status = 2 AND wake_at <= ? ORDER BY wake_at, begun_seq;

-- name: next_waits
-- When the first open sleep of a run ends, and when its first retry is due.
SELECT (SELECT min(wake_at) FROM steps INDEXED BY steps_sleeps WHERE run_id = :run_id AND kind = 2 AND status = 2),
       (SELECT min(retry_at) FROM steps INDEXED BY steps_retries WHERE run_id = :run_id AND status = 1);

-- name: last_result
-- The highest seq of a result, to know whether the worker has seen all.
SELECT coalesce(max(seq), 0) FROM steps WHERE run_id = ? AND kind < 100;

-- name: results_after
-- Results the worker has not seen, in their order.
SELECT {history_columns} FROM steps WHERE run_id = ? AND kind < 100 AND seq > ? ORDER BY seq;

-- name: park_run
-- Slot and lease are free; the clock wakes it.
UPDATE runs SET status = 3, wait_reason = :wait_reason, due_at = :due_at, seq = :seq, worker_id = NULL, lease_until = NULL
WHERE run_id = :run_id AND lease = :lease AND nonce = :nonce AND status = 2;

-- name: close_run
-- The worker's last word: COMPLETED, FAILED or CANCELLED.
UPDATE runs SET status = :status, error = :error, seq = :seq, finished_at = :now, worker_id = NULL, lease_until = NULL
WHERE run_id = :run_id AND lease = :lease AND nonce = :nonce AND status = 2;

-- name: retry_run
-- The run's own policy gives it another try; its results stay.
UPDATE runs SET status = :status, wait_reason = :wait_reason, due_at = :due_at, ready_at = :ready_at, attempt = attempt + 1,
                retried_lease = lease, seq = :seq, worker_id = NULL, lease_until = NULL
WHERE run_id = :run_id AND lease = :lease AND nonce = :nonce AND status = 2;

-- name: give_back_run
-- The holder hands it back: not counted against it.
UPDATE runs SET status = 1, ready_at = :now, seq = :seq, worker_id = NULL, lease_until = NULL
WHERE run_id = :run_id AND lease = :lease AND nonce = :nonce AND status = 2;
