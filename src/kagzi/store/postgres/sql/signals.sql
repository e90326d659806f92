-- name: lock_signalled_run
-- The run that is signalled: by its id, or the open one with that workflow id.
SELECT run_id::text AS run_id, namespace, workflow_type, status, lease, nonce, worker_id FROM runs
WHERE run_id = coalesce(
    $2::uuid, (SELECT o.run_id FROM runs AS o WHERE o.namespace = $1::text AND o.workflow_id = $3::text AND o.status IN (1, 2, 3, 7))
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
