-- name: due_waits
-- Sleeps and limited waits of one run whose time has come, in the order in which they end; of those that are named, if any are.
SELECT step_id FROM steps INDEXED BY steps_timed
WHERE run_id = :run_id AND status = 2 AND wake_at <= :now
  AND (:names IS NULL OR step_id IN (SELECT value FROM json_each(:names))) ORDER BY wake_at, begun_seq;

-- name: next_waits
-- When the first sleep or limited wait of a run is over, and which of the two it is; when its first retry is due; whether it
-- waits for a signal (3) or a child (4) without limit. Of those that are named, if any are: what the code has given up does
-- not wake it.
SELECT (SELECT json_array(wake_at, kind) FROM steps INDEXED BY steps_timed
        WHERE run_id = :run_id AND status = 2 AND wake_at IS NOT NULL
          AND (:names IS NULL OR step_id IN (SELECT value FROM json_each(:names))) ORDER BY wake_at, begun_seq LIMIT 1),
       (SELECT min(retry_at) FROM steps INDEXED BY steps_retries WHERE run_id = :run_id AND status = 1
          AND (:names IS NULL OR step_id IN (SELECT value FROM json_each(:names)))),
       (SELECT kind FROM steps INDEXED BY steps_waiting WHERE run_id = :run_id AND status = 2 AND kind IN (3, 4) AND wake_at IS NULL
          AND (:names IS NULL OR step_id IN (SELECT value FROM json_each(:names))) ORDER BY kind LIMIT 1);

-- name: part_timeout_error
-- What a wait for a signal fails with, as JSON of an ErrorDetail.
json_object('code', 'timeout', 'kind', 'timeout', 'message', 'signal ''' || name || ''' did not come by '
            || strftime('%Y-%m-%dT%H:%M:%S', wake_at / 1000000, 'unixepoch') || printf('.%06d', wake_at % 1000000) || '+00:00',
            'type', 'TimeoutError', 'subject', 'signal', 'subject_id', name)

-- name: end_wait
-- A sleep is over, or a wait for a signal has taken too long.
UPDATE steps SET status = CASE kind WHEN 2 THEN 3 ELSE 4 END, error = CASE kind WHEN 2 THEN NULL ELSE {timeout_error} END,
                 seq = :seq, finished_at = :now, lease = :lease, nonce = :nonce
WHERE run_id = :run_id AND step_id = :step_id AND kind IN (2, 3) AND status = 2;

-- name: last_result
-- The highest seq of a result, to know whether the worker has seen all.
SELECT coalesce(max(seq), 0) FROM steps WHERE run_id = ? AND kind < 100;

-- name: results_after
-- Results the worker has not seen, in their order. Not what they hold: sorting would read all of it for every page.
SELECT step_id FROM steps WHERE run_id = ? AND kind < 100 AND status <> 5 AND seq > ? ORDER BY seq LIMIT ?;

-- name: park_run
-- Slot and lease are free; the clock, a signal or a child wakes it.
UPDATE runs SET status = 3, wait_reason = :wait_reason, due_at = :due_at, seq = :seq, worker_id = NULL, lease_until = NULL
WHERE run_id = :run_id AND lease = :lease AND nonce = :nonce AND status = 2;

-- name: close_run
-- The worker's last word: COMPLETED, FAILED or CANCELLED.
UPDATE runs SET status = :status, error = :error, seq = :seq, finished_at = :now, worker_id = NULL, lease_until = NULL,
                pause_requested = 0
WHERE run_id = :run_id AND lease = :lease AND nonce = :nonce AND status = 2;

-- name: retry_run
-- The run's own policy gives it another try; its results stay.
UPDATE runs SET status = :status, wait_reason = :wait_reason, due_at = :due_at, ready_at = :ready_at, attempt = attempt + 1,
                retried_lease = lease, pause_requested = 0, seq = :seq, worker_id = NULL, lease_until = NULL
WHERE run_id = :run_id AND lease = :lease AND nonce = :nonce AND status = 2;

-- name: give_back_run
-- The holder hands it back: not counted against it. PAUSED if that was asked for.
UPDATE runs SET status = CASE WHEN pause_requested THEN 7 ELSE 1 END, ready_at = CASE WHEN pause_requested THEN NULL ELSE :now END,
                pause_requested = 0, seq = :seq, worker_id = NULL, lease_until = NULL
WHERE run_id = :run_id AND lease = :lease AND nonce = :nonce AND status = 2;
