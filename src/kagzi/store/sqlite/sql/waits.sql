-- name: next_signal
-- The oldest of that name that no step has taken.
SELECT number, payload, meta FROM signals INDEXED BY signals_waiting
WHERE run_id = ? AND name = ? AND step_id IS NULL ORDER BY number LIMIT 1;

-- name: bind_signal
-- One signal, one step.
UPDATE signals SET step_id = ? WHERE run_id = ? AND number = ? AND step_id IS NULL;

-- name: signalled_run
-- Whom a signal is for.
SELECT run_id, namespace, workflow_type, status, lease, nonce, worker_id FROM runs WHERE run_id = ?;

-- name: run_of_workflow_for_signal
-- By workflow_id the open run; if none is open the latest, which says so, unless it had this very signal before.
SELECT run_id, namespace, workflow_type, status, lease, nonce, worker_id FROM runs INDEXED BY runs_by_workflow_id
WHERE namespace = ? AND workflow_id = ? ORDER BY finished_at IS NOT NULL, created_at DESC, run_id DESC LIMIT 1;

-- name: signal_of_request
-- A repeat, and whether a step has taken the first.
SELECT step_id IS NOT NULL FROM signals WHERE run_id = ? AND request_id = ?;

-- name: last_signal
-- Its number: the next is one more.
SELECT coalesce(max(number), 0) FROM signals WHERE run_id = ?;

-- name: count_signals
-- Those that wait; only asked for runs that were given many.
SELECT count(*) FROM (SELECT 1 FROM signals INDEXED BY signals_waiting WHERE run_id = ? AND step_id IS NULL LIMIT ?);

-- name: insert_signal
-- Kept as it came, bound or not.
INSERT INTO signals (run_id, number, name, payload, meta, request_id, received_at, step_id)
VALUES (:run_id, :number, :name, :payload, :meta, :request_id, :now, :step_id);

-- name: waiting_step
-- The oldest step of a run that waits for a signal of that name.
SELECT step_id FROM steps INDEXED BY steps_waiting
WHERE run_id = ? AND status = {STEP.RUNNING} AND kind IN ({KIND.SIGNAL}, {KIND.CHILD}) AND kind = {KIND.SIGNAL} AND name = ? ORDER BY begun_seq LIMIT 1;

-- name: give_signal
-- The payload is the step's result.
UPDATE steps SET status = {STEP.COMPLETED}, seq = :seq, output = :output, output_meta = :output_meta, finished_at = :now
WHERE run_id = :run_id AND step_id = :step_id AND status = {STEP.RUNNING};

-- name: wake_run
-- A result came from outside: its seq; and a sleeper is PENDING. Nonce 0: a repeat of its last lease is not taken for its own.
UPDATE runs SET seq = seq + 1, lost_leases = 0,
                status = CASE WHEN status = {RUN.SLEEPING} THEN {RUN.PENDING} ELSE status END,
                nonce = CASE WHEN status = {RUN.SLEEPING} THEN 0 ELSE nonce END,
                ready_at = CASE WHEN status = {RUN.SLEEPING} THEN :now ELSE ready_at END,
                due_at = CASE WHEN status = {RUN.SLEEPING} THEN NULL ELSE due_at END,
                wait_reason = CASE WHEN status = {RUN.SLEEPING} THEN NULL ELSE wait_reason END
WHERE run_id = :run_id AND finished_at IS NULL
RETURNING seq;

-- name: signal_by_request
-- What a request id was used for.
SELECT name, payload, meta, step_id FROM signals WHERE run_id = ? AND request_id = ?;

-- name: signal_of_step
-- The signal that a step was given.
SELECT number FROM signals WHERE run_id = ? AND name = ? AND step_id = ?;

-- name: was_received
-- Whether some step was given a signal of that name.
SELECT 1 FROM signals WHERE run_id = ? AND name = ? AND step_id IS NOT NULL AND step_id <> ? LIMIT 1;

-- name: problem_of
-- Why a run is paused.
SELECT problem FROM runs WHERE run_id = ?;

-- name: put_aside_signal
-- Nobody will get this value; its request is known still. Its place in the order is free.
UPDATE signals SET number = :end, step_id = :dropped WHERE run_id = :run_id AND number = :number;

-- name: keep_rejected
-- A value that did not fit stays in the history as an earlier attempt of its wait: begun when it came, failed now.
INSERT INTO step_attempts (run_id, step_id, attempt, begun_seq, seq, lease, nonce, started_at, finished_at, error, retry_at, worker_id)
SELECT run_id, step_id, attempt, seq, :seq, 0, 0, finished_at, :now, :error, :now, worker_id FROM steps
WHERE run_id = :run_id AND step_id = :step_id AND status = {STEP.COMPLETED};

-- name: reopen_wait
-- It waits as before its value came. No lease: nobody's repeat is answered from it.
UPDATE steps SET status = {STEP.RUNNING}, attempt = attempt + 1, seq = 0, lease = 0, nonce = 0, output = NULL, output_meta = NULL, finished_at = NULL
WHERE run_id = :run_id AND step_id = :step_id AND status = {STEP.COMPLETED};
