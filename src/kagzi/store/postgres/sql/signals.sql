-- name: lock_signalled_run
-- The run to signal: by its id, or the open one with that workflow id; if none is open, the latest, which then refuses.
-- Also whether other runs may already have the signal: see runs_to_search.
SELECT run_id::text AS run_id, namespace, workflow_type, version, status, lease, nonce, worker_id, unread_signals,
    continued_as IS NOT NULL AS continued,
    EXISTS (
        SELECT 1 FROM runs AS b WHERE b.namespace = :namespace::text AND b.workflow_id = :workflow_id::text AND b.status IN ({RUN.ENDED})
    ) AS has_ended_runs
FROM runs
WHERE run_id = coalesce(
    :run_id::uuid,
    (SELECT o.run_id FROM runs AS o WHERE o.namespace = :namespace AND o.workflow_id = :workflow_id AND o.status IN ({RUN.OPEN})),
    (SELECT e.run_id FROM runs AS e WHERE e.namespace = :namespace AND e.workflow_id = :workflow_id AND e.status IN ({RUN.ENDED})
     ORDER BY e.created_at DESC, e.run_id DESC LIMIT 1)
) AND namespace IS NOT DISTINCT FROM :namespace
FOR UPDATE;

-- name: part_earlier_runs
-- The latest runs of a workflow id, at most a given number, in which a repeated request is looked up.
(
    SELECT run_id, status, retry_request_id FROM runs
    WHERE namespace = :namespace::text AND workflow_id = :workflow_id::text AND status IN ({RUN.ENDED})
    ORDER BY created_at DESC LIMIT :most_runs::bigint
) AS e

-- name: ended_run_with_signal
-- The ended run of a workflow id that has this signal.
SELECT e.run_id::text AS run_id, e.status FROM {earlier_runs}
JOIN signals AS s ON s.run_id = e.run_id AND s.request_id = :request_id::text
LIMIT 1;

-- name: later_run_with_signal
-- The successor of a run that has this signal: it was not consumed, so it was passed on.
WITH RECURSIVE later AS (
    SELECT run_id, namespace, continued_as, 0 AS n FROM runs WHERE run_id = :run_id::uuid
    UNION ALL
    SELECT r.run_id, r.namespace, r.continued_as, later.n + 1
    FROM later JOIN runs AS r ON r.run_id = later.continued_as AND r.namespace IS NOT DISTINCT FROM later.namespace
    WHERE later.n < :most_runs::bigint
)
SELECT later.run_id::text AS run_id FROM later JOIN signals AS s ON s.run_id = later.run_id AND s.request_id = :request_id::text
LIMIT 1;

-- name: ended_run_with_wake
-- The ended run of a workflow id that this request woke.
SELECT e.run_id::text AS run_id FROM {earlier_runs}
JOIN step_attempts AS a ON a.run_id = e.run_id AND a.step_id = :woken::text AND a.error -> 'metadata' ->> 'request_id' = :request_id::text
LIMIT 1;

-- name: ended_run_with_retry
-- The ended run of a workflow id that this request retried.
SELECT e.run_id::text AS run_id FROM {earlier_runs} WHERE e.retry_request_id = :request_id::text LIMIT 1;

-- name: find_signal
-- Under the run's lock: whether this is a repeat, and which step waits for the name.
SELECT
    (SELECT s.step_id IS NOT NULL FROM signals AS s WHERE s.run_id = :run_id::uuid AND s.request_id = :request_id::text) AS known,
    (SELECT w.step_id FROM steps AS w
     WHERE w.run_id = :run_id AND w.due_at IS NOT NULL AND w.kind = {KIND.SIGNAL} AND w.status = {STEP.RUNNING} AND w.name = :name::text
     ORDER BY w.begun_seq LIMIT 1) AS step_id;

-- name: give_signal
-- Recorded in order of arrival; a step that waits gets it as its result, and a sleeping run is woken. In any case the
-- run's seq is incremented.
WITH run AS (
    UPDATE runs AS r
    SET seq = r.seq + 1,
        result_seq = CASE WHEN :step_id::text IS NULL THEN r.result_seq ELSE r.seq + 1 END,
        lost_leases = CASE WHEN :step_id IS NULL THEN r.lost_leases ELSE 0 END,
        awaits_signal = r.awaits_signal - (:step_id IS NOT NULL)::int, unread_signals = r.unread_signals + (:step_id IS NULL)::int,
        status = CASE WHEN :step_id IS NOT NULL AND r.status = {RUN.SLEEPING} THEN {RUN.PENDING} ELSE r.status END,
        nonce = CASE WHEN :step_id IS NOT NULL AND r.status = {RUN.SLEEPING} THEN 0 ELSE r.nonce END,
        ready_at = CASE WHEN :step_id IS NOT NULL AND r.status = {RUN.SLEEPING} THEN :now::bigint ELSE r.ready_at END,
        due_at = CASE WHEN :step_id IS NULL THEN r.due_at END,
        wait_reason = CASE WHEN :step_id IS NULL THEN r.wait_reason END
    WHERE r.run_id = :run_id::uuid
    RETURNING r.run_id, r.seq
), noted AS (
    INSERT INTO signals (run_id, number, received_at, name, request_id, payload, payload_meta, step_id, start_request)
    SELECT :run_id, 1 + coalesce((SELECT max(s.number) FROM signals AS s WHERE s.run_id = :run_id), 0), :now, :name::text, :request_id::text,
        :payload::bytea, :payload_meta::text::json, :step_id, :start_request::text
)
UPDATE steps AS s
SET status = {STEP.COMPLETED}, seq = run.seq, finished_at = :now, due_at = NULL, output = :payload, output_meta = :payload_meta::text::json
FROM run WHERE s.run_id = run.run_id AND s.step_id = :step_id;

-- name: signal_by_request
-- What a request id was used for.
SELECT name, payload, payload_meta, step_id FROM signals WHERE run_id = :run_id::uuid AND request_id = :request_id::text;

-- name: signal_in_place
-- The signal that a step received; without a step, the oldest buffered one of that name.
SELECT number FROM signals WHERE run_id = :run_id::uuid AND name = :name::text AND step_id IS NOT DISTINCT FROM :step_id::text
ORDER BY number LIMIT 1;

-- name: was_received
-- Whether a step received a signal of that name.
SELECT 1 AS received FROM signals
WHERE run_id = :run_id::uuid AND name = :name::text AND step_id IS NOT NULL AND step_id <> :dropped::text LIMIT 1;

-- name: problem_of
-- Why a run is paused.
SELECT problem FROM runs WHERE run_id = :run_id::uuid;

-- name: put_aside_signal
-- This value is never delivered, but its request is still known. Its place in the order is free.
UPDATE signals SET number = 1 + (SELECT max(s.number) FROM signals AS s WHERE s.run_id = :run_id::uuid), step_id = :dropped::text
WHERE run_id = :run_id AND number = :number::bigint
RETURNING number, start_request;

-- name: insert_signal
-- Stored as it came, bound or not.
INSERT INTO signals (run_id, number, received_at, name, request_id, payload, payload_meta, step_id, start_request)
VALUES (:run_id::uuid, :number::bigint, :now::bigint, :name::text, :request_id::text, :payload::bytea, :payload_meta::text::json, :step_id::text,
    :start_request::text);

-- name: bind_signal
-- One signal, one step.
WITH bound AS (
    UPDATE signals SET step_id = :step_id::text WHERE run_id = :run_id::uuid AND number = :number::bigint AND step_id IS NULL RETURNING run_id
)
UPDATE runs AS r SET unread_signals = r.unread_signals - 1 FROM bound WHERE r.run_id = bound.run_id;

-- name: note_change
-- Incrementing the run's seq invalidates writes based on a read of the old value.
UPDATE runs SET seq = seq + 1, unread_signals = unread_signals - :dropped::int WHERE run_id = :run_id::uuid;

-- name: keep_rejected
-- A value that did not fit stays in the history as an earlier attempt of its wait: begun when it came, failed now.
INSERT INTO step_attempts (
    run_id, step_id, attempt, begun_seq, seq, lease, nonce, started_at, finished_at, retry_at, worker_id, error
)
SELECT run_id, step_id, attempt, seq, :seq::bigint, 0, 0, finished_at, :now::bigint, :now, worker_id, :rejection::text::json
FROM steps WHERE run_id = :run_id::uuid AND step_id = :step_id::text AND status = {STEP.COMPLETED};

-- name: reopen_wait
-- The step waits as it did before its value came. Without a lease, so that it matches no repeated command.
WITH run AS (
    UPDATE runs SET awaits_signal = awaits_signal + 1 WHERE run_id = :run_id::uuid
)
UPDATE steps
SET status = {STEP.RUNNING}, attempt = attempt + 1, seq = 0, lease = 0, nonce = 0, output = NULL, output_meta = NULL, finished_at = NULL,
    due_at = coalesce(wake_at, :never::bigint)
WHERE run_id = :run_id AND step_id = :step_id::text AND status = {STEP.COMPLETED};

-- name: give_bound_signal
-- The signal bound to the step, if there is one, becomes its result, as the newest.
WITH bound AS MATERIALIZED (
    SELECT payload, payload_meta FROM signals WHERE run_id = :run_id::uuid AND step_id = :step_id::text
), run AS (
    UPDATE runs AS r SET seq = r.seq + 1, result_seq = r.seq + 1, awaits_signal = r.awaits_signal - 1
    FROM bound WHERE r.run_id = :run_id RETURNING r.seq
)
UPDATE steps AS s
SET status = {STEP.COMPLETED}, seq = run.seq, finished_at = :now::bigint, due_at = NULL, output = bound.payload, output_meta = bound.payload_meta
FROM run, bound WHERE s.run_id = :run_id AND s.step_id = :step_id;

-- name: open_signal_waits
-- Steps of a run that wait for a signal that is buffered, oldest first.
SELECT s.step_id, s.name FROM steps AS s
WHERE s.run_id = :run_id::uuid AND s.due_at IS NOT NULL AND s.kind = {KIND.SIGNAL} AND s.status = {STEP.RUNNING}
    AND EXISTS (SELECT 1 FROM signals AS b WHERE b.run_id = :run_id AND b.name = s.name AND b.step_id IS NULL)
ORDER BY s.begun_seq;

-- name: ended_with_unread
-- Runs that have just ended, and the first of the unread signals of each that is handed on.
SELECT r.run_id::text AS run_id, r.namespace, r.workflow_id, r.workflow_type, r.version, r.unread_signals,
    s.number, s.request_id, s.start_request
FROM runs AS r LEFT JOIN LATERAL (
    SELECT u.number, u.request_id, u.start_request FROM signals AS u
    WHERE u.run_id = r.run_id AND u.step_id IS NULL AND u.start_request IS NOT NULL
    ORDER BY u.number LIMIT 1
) AS s ON true
WHERE r.run_id = ANY (:run_ids::uuid[]) AND r.unread_signals > 0
ORDER BY r.run_id;

-- name: part_handed
-- The unread signals that are handed on.
, handed AS MATERIALIZED (
    SELECT u.number FROM signals AS u WHERE u.run_id = :ended_run_id::uuid AND u.step_id IS NULL AND u.start_request IS NOT NULL
)

-- name: start_next_run
-- The first of them starts the next run, which gets all of them: in their order, with the starts that they came with,
-- except for the first. The run that has ended tells where they are.
{new_next_run}, labelled AS (
    INSERT INTO run_labels (namespace, key, value, created_at, run_id)
    SELECT made.namespace, l.key, l.value, :now, made.run_id FROM made CROSS JOIN LATERAL json_each_text(:labels::json) AS l (key, value)
), moved AS (
    UPDATE signals AS s SET run_id = made.run_id, start_request = CASE WHEN s.number > :first::bigint THEN s.start_request END
    FROM made CROSS JOIN handed WHERE s.run_id = :ended_run_id AND s.number = handed.number
), emptied AS (
    UPDATE runs AS r SET unread_signals = r.unread_signals - (SELECT count(*) FROM handed), handed_on_to = made.run_id
    FROM made WHERE r.run_id = :ended_run_id
)
SELECT status, (SELECT count(*) FROM handed) AS moved FROM made;

-- name: hand_on_signals
-- Another run has taken its place, and has no signal yet: it gets them.
WITH runs_of AS (SELECT :ended_run_id::uuid AS ended){handed}, moved AS (
    UPDATE signals AS s SET run_id = :next_run_id::uuid FROM handed WHERE s.run_id = :ended_run_id AND s.number = handed.number
), emptied AS (
    UPDATE runs AS r SET unread_signals = r.unread_signals - (SELECT count(*) FROM handed), handed_on_to = :next_run_id
    WHERE r.run_id = :ended_run_id
), filled AS (
    UPDATE runs AS r SET unread_signals = r.unread_signals + (SELECT count(*) FROM handed) WHERE r.run_id = :next_run_id
)
SELECT count(*) AS moved FROM handed;
