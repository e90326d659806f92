-- name: failed_run
-- What decides whether a run can be tried again, and from where.
SELECT r.error, r.retry_request_id, r.seq, o.run_id::text AS open_run_id
FROM runs AS r
LEFT JOIN runs AS o ON o.namespace = r.namespace AND o.workflow_id = r.workflow_id AND o.status IN (1, 2, 3, 7)
WHERE r.run_id = $1::uuid;

-- name: step_place
-- Where a step stands in the order of its run.
SELECT step_id, begun_seq, seq FROM steps WHERE run_id = $1::uuid AND step_id = $2::text AND kind < 100;

-- name: end_of_history
-- Where the next step would stand: all that is recorded lies before it. $2 is the empty name of no step.
SELECT seq + 1 AS begun_seq FROM runs WHERE $2::text = '' AND run_id = $1::uuid;

-- name: step_to_blame
-- The step that an error names, or the last one that waited for the child which it names.
SELECT step_id, begun_seq, seq FROM steps
WHERE run_id = $1::uuid AND kind < 100 AND begun_seq >= 0 AND (step_id = $2::text OR child_run_id::text = $2)
ORDER BY step_id = $2 DESC, seq DESC LIMIT 1;

-- name: forget_steps
-- Cut a run's history at a number: results beyond it are forgotten. A step that had begun before it has begun still (fate 2),
-- or replay would meet a new step in front of recorded results; a signal it got is its result again, as the newest (fate 3);
-- what began later is gone (fate 1). A step whose child failed, was cancelled with the run or was deleted has begun and has no
-- child: the next start under its id makes another one (fate 4). What failed is kept among the attempts; signals of steps that
-- are gone can be consumed again; children that no step has any more keep their requests no longer.
WITH fates AS MATERIALIZED (
    SELECT s.step_id, s.kind, s.status, s.child_run_id, s.seq, CASE
        WHEN s.step_id = $2::text THEN CASE s.kind WHEN 1 THEN 2 WHEN 4 THEN 4 ELSE 1 END
        WHEN least(s.begun_seq, a.first) >= $3::bigint THEN CASE WHEN s.seq > $3 OR s.status < 3 THEN 1 END
        WHEN s.kind = 4 AND s.status = 2 AND (c.status = 6 OR c.cancel_requested_at IS NOT NULL) THEN 4
        WHEN s.kind = 4 AND s.status = 2 AND NOT EXISTS (
            SELECT 1 FROM runs AS x WHERE x.run_id = s.child_run_id AND x.namespace IS NOT DISTINCT FROM $6::text
        ) THEN 4
        WHEN s.seq > $3 THEN CASE WHEN s.kind = 3 AND s.status = 3 THEN 3 WHEN s.kind = 4 AND s.status = 4 THEN 4 ELSE 2 END
    END AS fate
    FROM steps AS s
    LEFT JOIN LATERAL (
        SELECT min(begun_seq) AS first FROM step_attempts AS a
        WHERE a.run_id = $1::uuid AND a.step_id = s.step_id AND a.forgotten = 0
    ) AS a ON true
    LEFT JOIN runs AS c ON c.run_id = s.child_run_id AND c.namespace IS NOT DISTINCT FROM $6 AND c.parent_run_id = $1
        AND c.parent_step_id = s.step_id
    WHERE s.run_id = $1 AND s.kind < 100 AND s.begun_seq >= 0
), moved AS MATERIALIZED (
    SELECT step_id, row_number() OVER (ORDER BY seq) AS place FROM fates WHERE fate = 3
), earlier AS (
    UPDATE step_attempts AS a SET forgotten = $4::bigint FROM fates
    WHERE fates.fate <> 3 AND a.run_id = $1 AND a.step_id = fates.step_id AND a.forgotten = 0
), archived AS (
    INSERT INTO step_attempts (
        run_id, step_id, attempt, begun_seq, seq, lease, nonce, started_at, finished_at, worker_id, error, forgotten
    )
    SELECT s.run_id, s.step_id, s.attempt, s.begun_seq, s.seq, s.lease, s.nonce, s.started_at, s.finished_at, s.worker_id,
        s.error, $4
    FROM fates JOIN steps AS s ON s.run_id = $1 AND s.step_id = fates.step_id WHERE fates.fate <> 3 AND fates.status = 4
), signalled AS (
    UPDATE signals AS n SET step_id = NULL FROM fates
    WHERE fates.fate = 1 AND n.run_id = $1 AND n.step_id = fates.step_id
), children AS (
    UPDATE runs AS c SET request_id = c.request_id || '/' || c.run_id::text FROM fates
    WHERE fates.fate IN (1, 4) AND fates.kind = 4 AND c.run_id = fates.child_run_id
        AND c.namespace IS NOT DISTINCT FROM $6 AND c.parent_run_id = $1
        AND c.parent_step_id = fates.step_id
), gone AS (
    DELETE FROM steps AS s USING fates WHERE fates.fate = 1 AND s.run_id = $1 AND s.step_id = fates.step_id
), opened AS (
    UPDATE steps AS s
    SET status = 2, seq = 0, error = NULL, output = NULL, output_meta = NULL, finished_at = NULL, retry_at = NULL,
        attempt = CASE WHEN fates.fate = 2 THEN 1 WHEN fates.status = 4 THEN s.attempt + 1 ELSE s.attempt END,
        child_run_id = CASE WHEN fates.fate = 2 THEN s.child_run_id END,
        lease = CASE WHEN s.step_id = $2 OR fates.fate = 4 THEN 0 ELSE s.lease END,
        nonce = CASE WHEN s.step_id = $2 OR fates.fate = 4 THEN 0 ELSE s.nonce END,
        due_at = CASE WHEN s.kind IN (2, 3, 4) THEN coalesce(s.wake_at, $5::bigint) END
    FROM fates WHERE fates.fate IN (2, 4) AND s.run_id = $1 AND s.step_id = fates.step_id
), again AS (
    UPDATE steps AS s SET seq = $4 + moved.place FROM moved WHERE s.run_id = $1 AND s.step_id = moved.step_id
)
SELECT count(*) AS moved FROM moved;

-- name: reopen_run
-- The one way back from FAILED. A deadline that has passed would only fail it again.
UPDATE runs
SET status = 1, ready_at = $2::bigint, finished_at = NULL, error = NULL, problem = NULL, lost_leases = 0, nonce = 0,
    seq = seq + 1 + $4::bigint, result_seq = CASE WHEN $4 > 0 THEN seq + 1 + $4 ELSE result_seq END,
    cancel_requested_at = NULL, cancel_by = NULL, cancel_reason = NULL, cascade_due = false, retry_request_id = $3::text,
    deadline_at = CASE WHEN deadline_at <= $2 THEN NULL ELSE deadline_at END
WHERE run_id = $1::uuid;

-- name: ended_children
-- Children that ended while their parent had: nobody was told.
SELECT c.run_id::text AS run_id, c.status, c.error FROM steps AS s
JOIN runs AS c ON c.run_id = s.child_run_id AND c.namespace IS NOT DISTINCT FROM $2::text
WHERE s.run_id = $1::uuid AND s.due_at IS NOT NULL AND s.kind = 4 AND s.status = 2 AND c.status IN (4, 5, 6)
    AND c.continued_as IS NULL;

-- name: fork_source
-- A run as a fork begins it: what it was given, and what describes it.
SELECT r.workflow_type, r.version, r.priority, r.retry, r.labels, r.concurrency_key,
    i.output AS input, i.output_meta AS input_meta, c.output AS context, c.output_meta AS context_meta
FROM runs AS r
LEFT JOIN steps AS i ON i.run_id = r.run_id AND i.step_id = '$input'
LEFT JOIN steps AS c ON c.run_id = r.run_id AND c.step_id = '$context'
WHERE r.run_id = $1::uuid;

-- name: fork_results
-- Which of these steps have a result that a fork takes over.
SELECT step_id FROM steps
WHERE run_id = $1::uuid AND step_id = ANY ($2::text[]) AND kind < 100 AND status IN (3, 4) AND seq > 0 AND seq < $3::bigint;

-- name: copy_results
-- The history below a number, some results with another output. What had begun by then and ended later has begun; failed
-- attempts come along; children are referenced.
WITH given AS MATERIALIZED (
    SELECT * FROM unnest($4::text[], $5::bytea[], $6::text[]) AS given (step_id, output, metadata)
), source AS MATERIALIZED (
    SELECT s.*, least(s.begun_seq, a.first) AS first, s.seq > 0 AND s.seq < $3::bigint AS ended
    FROM steps AS s
    LEFT JOIN LATERAL (
        SELECT min(begun_seq) AS first FROM step_attempts AS a
        WHERE a.run_id = $1::uuid AND a.step_id = s.step_id AND a.forgotten = 0
    ) AS a ON true
    WHERE s.run_id = $1 AND s.kind < 100 AND s.begun_seq >= 0
), copied AS (
    INSERT INTO steps (
        run_id, step_id, name, kind, attempt, begun_seq, created_at, started_at, wake_at, timeout_ms, once, parent_step_id,
        parallel_group_id, child_run_id, retry, input, input_meta, status, seq, finished_at, error, output, output_meta, due_at
    )
    SELECT $2::uuid, s.step_id, s.name, s.kind, CASE WHEN s.ended THEN s.attempt ELSE 1 END,
        CASE WHEN s.ended THEN s.begun_seq ELSE s.first END, s.created_at, s.started_at, s.wake_at, s.timeout_ms, s.once,
        s.parent_step_id, s.parallel_group_id, s.child_run_id, s.retry, s.input, s.input_meta,
        CASE WHEN NOT s.ended THEN 2 WHEN g.step_id IS NULL THEN s.status ELSE 3 END,
        CASE WHEN s.ended THEN s.seq ELSE 0 END, CASE WHEN s.ended THEN s.finished_at END,
        CASE WHEN s.ended AND g.step_id IS NULL THEN s.error END,
        CASE WHEN NOT s.ended THEN NULL WHEN g.step_id IS NULL THEN s.output ELSE g.output END,
        CASE WHEN NOT s.ended THEN NULL WHEN g.step_id IS NULL THEN s.output_meta ELSE g.metadata::json END,
        CASE WHEN NOT s.ended AND s.kind IN (2, 3, 4) THEN coalesce(s.wake_at, $7::bigint) END
    FROM source AS s LEFT JOIN given AS g ON g.step_id = s.step_id
    WHERE s.first < $3
    RETURNING step_id, seq
), attempts AS (
    INSERT INTO step_attempts (
        run_id, step_id, attempt, begun_seq, seq, lease, nonce, started_at, finished_at, retry_at, worker_id, error
    )
    SELECT $2, a.step_id, a.attempt, a.begun_seq, a.seq, 0, 0, a.started_at, a.finished_at, a.retry_at, a.worker_id, a.error
    FROM step_attempts AS a JOIN copied ON copied.step_id = a.step_id AND copied.seq > 0
    WHERE a.run_id = $1 AND a.forgotten = 0
)
UPDATE runs SET forked_from = $1, seq = $3 - 1, result_seq = coalesce((SELECT max(copied.seq) FROM copied), 0),
    steps = (SELECT count(*) FROM copied)
WHERE run_id = $2;

-- name: open_children
-- The children a run waits for.
SELECT child_run_id::text AS child_run_id, step_id FROM steps
WHERE run_id = $1::uuid AND due_at IS NOT NULL AND kind = 4 AND status = 2 AND child_run_id IS NOT NULL;
