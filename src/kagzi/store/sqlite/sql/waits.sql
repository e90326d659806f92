-- name: next_signal
-- The oldest of that name that no step has received.
SELECT number, payload, meta FROM signals INDEXED BY signals_waiting
WHERE run_id = ? AND name = ? AND step_id IS NULL ORDER BY number LIMIT 1;

-- name: bind_signal
-- One signal, one step.
UPDATE signals SET step_id = ? WHERE run_id = ? AND number = ? AND step_id IS NULL;

-- name: move_signal
-- To another step, or to none: its wait was given up before its code received it.
UPDATE signals SET step_id = ? WHERE run_id = ? AND number = ?;

-- name: signals_to_take_back
-- The signal of a wait that was given up before its code received it, and all later ones of that name that are bound: no
-- code has received them either.
SELECT later.number, later.step_id FROM signals AS later
WHERE later.run_id = :run_id AND later.name = :name AND later.step_id IS NOT NULL AND later.step_id <> :dropped
  AND later.number >= (SELECT min(s.number) FROM signals AS s WHERE s.run_id = :run_id AND s.step_id IN (SELECT value FROM json_each(:step_ids)) AND s.name = :name)
ORDER BY later.number;

-- name: waiting_steps
-- The oldest steps of a run that wait for a signal of that name, without those that are given up.
SELECT {step_state} FROM steps AS s INDEXED BY steps_waiting
WHERE s.run_id = :run_id AND s.status = {STEP.RUNNING} AND s.kind IN ({KIND.SIGNAL}, {KIND.CHILD}) AND s.kind = {KIND.SIGNAL} AND s.name = :name
  AND s.step_id NOT IN (SELECT value FROM json_each(:abandoned)) ORDER BY s.begun_seq LIMIT :count;

-- name: refill_wait
-- The value of a wait is that of the signal bound to it; without one it has none.
UPDATE steps SET output = (SELECT s.payload FROM signals AS s WHERE s.run_id = :run_id AND s.number = :number),
                 output_meta = (SELECT s.meta FROM signals AS s WHERE s.run_id = :run_id AND s.number = :number)
WHERE run_id = :run_id AND step_id = :step_id;

-- name: signalled_run
-- The run that a signal is for; and whether another run may already have it: see runs_to_search.
SELECT run_id, namespace, workflow_type, status, lease, nonce, worker_id, has_children, version, continued_as IS NOT NULL, unread_signals
FROM runs WHERE run_id = ?;

-- name: run_of_workflow_for_signal
-- The open run with that workflow_id; if none is open, the latest, which then refuses unless it already has this
-- signal. Also whether an ended one may have it: see runs_to_search.
SELECT run_id, namespace, workflow_type, status, lease, nonce, worker_id, has_children, version, EXISTS (
    SELECT 1 FROM runs AS b INDEXED BY runs_by_workflow_id
    WHERE b.namespace = :namespace AND b.workflow_id = :workflow_id AND b.finished_at IS NOT NULL), unread_signals
FROM runs WHERE run_id = coalesce(
    (SELECT o.run_id FROM runs AS o INDEXED BY runs_active
     WHERE o.namespace = :namespace AND o.workflow_id = :workflow_id AND o.finished_at IS NULL),
    (SELECT e.run_id FROM runs AS e INDEXED BY runs_by_workflow_id WHERE e.namespace = :namespace AND e.workflow_id = :workflow_id
     ORDER BY e.created_at DESC, e.run_id DESC LIMIT 1)) AND +namespace = :namespace;

-- name: part_earlier_runs
-- The latest runs of a workflow id, at most a given number, in which a repeated request is looked up.
(SELECT run_id, workflow_id, workflow_type, status, retry_request_id FROM runs INDEXED BY runs_by_workflow_id
 WHERE namespace = :namespace AND workflow_id = :workflow_id AND finished_at IS NOT NULL
 ORDER BY created_at DESC, run_id DESC LIMIT :most_runs) AS e

-- name: ended_run_with_signal
-- The ended run of a workflow id that has this signal.
SELECT e.run_id, e.workflow_id, e.workflow_type, e.status FROM {earlier_runs}
CROSS JOIN signals AS s INDEXED BY signals_request ON s.run_id = e.run_id AND s.request_id = :request_id LIMIT 1;

-- name: later_run_with_signal
-- The successor of a run that has this signal: it was not consumed, so it was passed on.
WITH RECURSIVE later AS (
    SELECT run_id, namespace, continued_as, 0 AS n FROM runs WHERE run_id = :run_id
    UNION ALL
    SELECT r.run_id, r.namespace, r.continued_as, later.n + 1
    FROM later CROSS JOIN runs AS r ON r.run_id = later.continued_as AND r.namespace = later.namespace WHERE later.n < :most_runs)
SELECT later.run_id FROM later CROSS JOIN signals AS s INDEXED BY signals_request ON s.run_id = later.run_id AND s.request_id = :request_id
LIMIT 1;

-- name: ended_run_with_wake
-- The ended run of a workflow id that this request woke.
SELECT e.run_id FROM {earlier_runs}
CROSS JOIN step_attempts AS a ON a.run_id = e.run_id AND a.step_id = :woken AND json_extract(a.error, '$.metadata.request_id') = :request_id
LIMIT 1;

-- name: ended_run_with_retry
-- The ended run of a workflow id that this request retried.
SELECT e.run_id FROM {earlier_runs} WHERE e.retry_request_id = :request_id LIMIT 1;

-- name: signal_of_request
-- A repeat, and whether a step has received the first.
SELECT step_id IS NOT NULL FROM signals WHERE run_id = ? AND request_id = ?;

-- name: last_signal
-- Its number: the next is one more.
SELECT coalesce(max(number), 0) FROM signals WHERE run_id = ?;

-- name: count_unread
-- Changes the number of unread signals.
UPDATE runs SET unread_signals = unread_signals + ? WHERE run_id = ?;

-- name: recount_unread
-- The same, counted again from the signals.
UPDATE runs SET unread_signals = (
    SELECT count(*) FROM signals AS s INDEXED BY signals_waiting WHERE s.run_id = runs.run_id AND s.step_id IS NULL)
WHERE run_id = ?;

-- name: insert_signal
-- Stored as it came, bound or not.
INSERT INTO signals (run_id, number, name, payload, meta, request_id, received_at, step_id, start_request)
VALUES (:run_id, :number, :name, :payload, :meta, :request_id, :now, :step_id, :start_request);

-- name: waiting_step
-- The oldest step of a run that waits for a signal of that name.
SELECT step_id FROM steps INDEXED BY steps_waiting
WHERE run_id = ? AND status = {STEP.RUNNING} AND kind IN ({KIND.SIGNAL}, {KIND.CHILD}) AND kind = {KIND.SIGNAL} AND name = ? ORDER BY begun_seq LIMIT 1;

-- name: give_signal
-- The payload is the step's result.
UPDATE steps SET status = {STEP.COMPLETED}, seq = :seq, output = :output, output_meta = :output_meta, finished_at = :now
WHERE run_id = :run_id AND step_id = :step_id AND status = {STEP.RUNNING};

-- name: wake_run
-- An external result arrived: returns its seq; a sleeping run is PENDING. Nonce 0: no repeated command of the last
-- lease matches. :waits is the change in the number of steps that wait for signals.
UPDATE runs SET seq = seq + 1, lost_leases = 0, awaits_signal = awaits_signal + :waits,
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
-- The signal that a step received.
SELECT number FROM signals WHERE run_id = ? AND name = ? AND step_id = ?;

-- name: was_received
-- Whether a step received a signal of that name.
SELECT 1 FROM signals WHERE run_id = ? AND name = ? AND step_id IS NOT NULL AND step_id <> ? LIMIT 1;

-- name: problem_of
-- Why a run is paused.
SELECT problem FROM runs WHERE run_id = ?;

-- name: put_aside_signal
-- This value is never delivered, but its request is still known. Its place in the order is free.
UPDATE signals SET number = :end, step_id = :dropped WHERE run_id = :run_id AND number = :number RETURNING start_request;

-- name: keep_rejected
-- A value that did not fit stays in the history as an earlier attempt of its wait: begun when it came, failed now.
INSERT INTO step_attempts (run_id, step_id, attempt, begun_seq, seq, lease, nonce, started_at, finished_at, error, retry_at, worker_id)
SELECT run_id, step_id, attempt, seq, :seq, 0, 0, finished_at, :now, :error, :now, worker_id FROM steps
WHERE run_id = :run_id AND step_id = :step_id AND status = {STEP.COMPLETED};

-- name: reopen_wait
-- The step waits as it did before its value came. Without a lease, so that it matches no repeated command.
UPDATE steps SET status = {STEP.RUNNING}, attempt = attempt + 1, seq = 0, lease = 0, nonce = 0, output = NULL, output_meta = NULL, finished_at = NULL
WHERE run_id = :run_id AND step_id = :step_id AND status = {STEP.COMPLETED};

-- name: ended_with_unread
-- A run that has just ended, and the first of its unread signals that is handed on.
SELECT r.namespace, r.workflow_id, r.workflow_type, r.version, r.unread_signals, s.number, s.request_id, s.start_request
FROM runs AS r LEFT JOIN signals AS s ON s.run_id = r.run_id AND s.number = (
    SELECT min(u.number) FROM signals AS u INDEXED BY signals_waiting
    WHERE u.run_id = r.run_id AND u.step_id IS NULL AND u.start_request IS NOT NULL)
WHERE r.run_id = ? AND r.unread_signals > 0;

-- name: hand_on_signals
-- In their order, with the starts that they came with, except for the one that has started the next run (:first).
UPDATE signals SET run_id = :next_run_id, start_request = iif(number = :first, NULL, start_request)
WHERE run_id = :run_id AND step_id IS NULL AND start_request IS NOT NULL;

-- name: handed_on
-- The run that has ended tells where they are.
UPDATE runs SET unread_signals = unread_signals - :moved, handed_on_to = :next_run_id WHERE run_id = :run_id;
