-- name: lock_signalled_run
-- The run that is signalled: by its id, or the open one with that workflow id; if none is open the latest, which says so.
SELECT run_id::text AS run_id, namespace, workflow_type, status, lease, nonce, worker_id FROM runs
WHERE run_id = coalesce(
    $2::uuid,
    (SELECT o.run_id FROM runs AS o WHERE o.namespace = $1::text AND o.workflow_id = $3::text AND o.status IN (1, 2, 3, 7)),
    (SELECT e.run_id FROM runs AS e WHERE e.namespace = $1 AND e.workflow_id = $3 AND e.status IN (4, 5, 6)
     ORDER BY e.created_at DESC, e.run_id DESC LIMIT 1)
) AND namespace IS NOT DISTINCT FROM $1
FOR UPDATE;

-- name: look_for_signal
-- Under the run's lock: whether this signal came before, who waits for its name, and how many nobody has waited for.
SELECT
    (SELECT s.step_id IS NOT NULL FROM signals AS s WHERE s.run_id = $1::uuid AND s.request_id = $2::text) AS known,
    (SELECT w.step_id FROM steps AS w
     WHERE w.run_id = $1 AND w.due_at IS NOT NULL AND w.kind = 3 AND w.status = 2 AND w.name = $3::text
     ORDER BY w.begun_seq LIMIT 1) AS step_id,
    (SELECT count(*) FROM (
        SELECT 1 FROM signals AS u WHERE u.run_id = $1 AND u.step_id IS NULL LIMIT $4::bigint
    ) AS counted) AS unbound;

-- name: give_signal
-- Recorded in the order of coming; a step that waits gets it as its result, and a run that sleeps is woken. In any case the
-- run's seq says that something has come.
WITH run AS (
    UPDATE runs AS r
    SET seq = r.seq + 1,
        result_seq = CASE WHEN $7::text IS NULL THEN r.result_seq ELSE r.seq + 1 END,
        lost_leases = CASE WHEN $7 IS NULL THEN r.lost_leases ELSE 0 END,
        status = CASE WHEN $7 IS NOT NULL AND r.status = 3 THEN 1 ELSE r.status END,
        nonce = CASE WHEN $7 IS NOT NULL AND r.status = 3 THEN 0 ELSE r.nonce END,
        ready_at = CASE WHEN $7 IS NOT NULL AND r.status = 3 THEN $2::bigint ELSE r.ready_at END,
        due_at = CASE WHEN $7 IS NULL THEN r.due_at END,
        wait_reason = CASE WHEN $7 IS NULL THEN r.wait_reason END
    WHERE r.run_id = $1::uuid
    RETURNING r.run_id, r.seq
), noted AS (
    INSERT INTO signals (run_id, number, received_at, name, request_id, payload, payload_meta, step_id)
    SELECT $1, 1 + coalesce((SELECT max(s.number) FROM signals AS s WHERE s.run_id = $1), 0), $2, $3::text, $4::text,
        $5::bytea, $6::text::json, $7
)
UPDATE steps AS s
SET status = 3, seq = run.seq, finished_at = $2, due_at = NULL, output = $5, output_meta = $6::text::json
FROM run WHERE s.run_id = run.run_id AND s.step_id = $7;

-- name: signal_by_request
-- What a request id was used for.
SELECT name, payload, payload_meta, step_id FROM signals WHERE run_id = $1::uuid AND request_id = $2::text;

-- name: signal_in_place
-- The signal that a step was given; without a step, the oldest of that name that nobody has waited for.
SELECT number FROM signals WHERE run_id = $1::uuid AND name = $2::text AND step_id IS NOT DISTINCT FROM $3::text
ORDER BY number LIMIT 1;

-- name: was_received
-- Whether some step was given a signal of that name.
SELECT 1 AS found FROM signals
WHERE run_id = $1::uuid AND name = $2::text AND step_id IS NOT NULL AND step_id <> $3::text LIMIT 1;

-- name: problem_of
-- Why a run is paused.
SELECT problem FROM runs WHERE run_id = $1::uuid;

-- name: put_aside_signal
-- Nobody will get this value; its request is known still. Its place in the order is free.
UPDATE signals SET number = 1 + (SELECT max(s.number) FROM signals AS s WHERE s.run_id = $1::uuid), step_id = $3::text
WHERE run_id = $1 AND number = $2::bigint
RETURNING number;

-- name: insert_signal
-- Kept as it came, bound or not.
INSERT INTO signals (run_id, number, received_at, name, request_id, payload, payload_meta, step_id)
VALUES ($1::uuid, $2::bigint, $3::bigint, $4::text, $5::text, $6::bytea, $7::text::json, $8::text);

-- name: bind_signal
-- One signal, one step.
UPDATE signals SET step_id = $3::text WHERE run_id = $1::uuid AND number = $2::bigint AND step_id IS NULL;

-- name: note_change
-- The run's seq says to whoever has read it and is about to write that a value is another one.
UPDATE runs SET seq = seq + 1 WHERE run_id = $1::uuid;

-- name: keep_rejected
-- A value that did not fit stays in the history as an earlier attempt of its wait: begun when it came, failed now.
INSERT INTO step_attempts (
    run_id, step_id, attempt, begun_seq, seq, lease, nonce, started_at, finished_at, retry_at, worker_id, error
)
SELECT run_id, step_id, attempt, seq, $5::bigint, 0, 0, finished_at, $3::bigint, $3, worker_id, $4::text::json
FROM steps WHERE run_id = $1::uuid AND step_id = $2::text AND status = 3;

-- name: reopen_wait
-- It waits as before its value came. No lease: nobody's repeat is answered from it.
UPDATE steps
SET status = 2, attempt = attempt + 1, seq = 0, lease = 0, nonce = 0, output = NULL, output_meta = NULL, finished_at = NULL,
    due_at = coalesce(wake_at, $3::bigint)
WHERE run_id = $1::uuid AND step_id = $2::text AND status = 3;

-- name: give_bound_signal
-- The signal that is bound to the step, if there is one, is its result, as the newest.
WITH bound AS MATERIALIZED (
    SELECT payload, payload_meta FROM signals WHERE run_id = $1::uuid AND step_id = $2::text
), run AS (
    UPDATE runs AS r SET seq = r.seq + 1, result_seq = r.seq + 1 FROM bound WHERE r.run_id = $1 RETURNING r.seq
)
UPDATE steps AS s
SET status = 3, seq = run.seq, finished_at = $3::bigint, due_at = NULL, output = bound.payload, output_meta = bound.payload_meta
FROM run, bound WHERE s.run_id = $1 AND s.step_id = $2;
