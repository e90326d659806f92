-- name: failed_run
-- What decides whether a run can be retried, and from where.
SELECT r.error, r.retry_request_id, r.seq, r.finished_at, o.run_id::text AS open_run_id
FROM runs AS r
LEFT JOIN runs AS o ON o.namespace = r.namespace AND o.workflow_id = r.workflow_id AND o.status IN ({RUN.OPEN})
WHERE r.run_id = :run_id::uuid;

-- name: step_place
-- The position of a step in its run.
SELECT step_id, begun_seq, seq FROM steps WHERE run_id = :run_id::uuid AND step_id = :step_id::text AND kind < {KIND.FIRST_PAYLOAD};

-- name: end_of_history
-- The position of the next step, which comes after everything recorded. :step_id is empty.
SELECT seq + 1 AS begun_seq FROM runs WHERE :step_id::text = '' AND run_id = :run_id::uuid;

-- name: step_of_error
-- The step that an error names, or the last one that waited for the child that it names.
SELECT step_id, begun_seq, seq FROM steps
WHERE run_id = :run_id::uuid AND kind < {KIND.FIRST_PAYLOAD} AND begun_seq >= 0 AND (step_id = :subject_id::text OR child_run_id::text = :subject_id)
ORDER BY step_id = :subject_id DESC, seq DESC LIMIT 1;

-- name: forget_steps
-- Cut a run's history at a seq: later results are deleted. A step that had begun before the cut stays begun (reopened),
-- or replay would find a new step before recorded results; a signal it got is its result again, as the newest (moved);
-- steps that began later are deleted. A step whose child failed, was cancelled with the run or was deleted stays begun
-- without a child: the next start under its id makes another one (childless). A step that may run only once waits for
-- its next begin, since an open begin would count as lost. Failures are kept as attempts; signals of deleted steps can be
-- consumed again; children that no longer belong to a step lose their request ids. What is discarded is kept for people
-- in forgotten_steps, the newest that fit, but not again if it has not begun since the last retry (begun_since).
WITH fates AS MATERIALIZED (
    SELECT s.step_id, s.kind, s.status, s.child_run_id, s.seq, CASE
        WHEN s.step_id = :step_id::text THEN CASE s.kind WHEN {KIND.CHILD} THEN 'childless' ELSE 'gone' END
        WHEN least(s.begun_seq, a.first) >= :after::bigint THEN CASE WHEN s.seq > :after OR s.status < {STEP.COMPLETED} THEN 'gone' END
        WHEN s.kind = {KIND.CHILD} AND s.status = {STEP.RUNNING}
            AND (c.status = {RUN.CANCELLED} OR c.cancel_requested_at IS NOT NULL) THEN 'childless'
        WHEN s.kind = {KIND.CHILD} AND s.status = {STEP.RUNNING} AND NOT EXISTS (
            SELECT 1 FROM runs AS x WHERE x.run_id = s.child_run_id AND x.namespace IS NOT DISTINCT FROM :namespace::text
        ) THEN 'childless'
        WHEN s.seq > :after THEN CASE
            WHEN s.kind = {KIND.SIGNAL} AND s.status = {STEP.COMPLETED} THEN 'moved'
            WHEN s.kind = {KIND.CHILD} AND s.status = {STEP.FAILED} THEN 'childless'
            ELSE 'reopened'
        END
    END AS fate
    FROM steps AS s
    LEFT JOIN LATERAL (
        SELECT min(begun_seq) AS first FROM step_attempts AS a
        WHERE a.run_id = :run_id::uuid AND a.step_id = s.step_id AND a.forgotten = 0
    ) AS a ON true
    LEFT JOIN runs AS c ON c.run_id = s.child_run_id AND c.namespace IS NOT DISTINCT FROM :namespace AND c.parent_run_id = :run_id
        AND c.parent_step_id = s.step_id
    WHERE s.run_id = :run_id AND s.kind < {KIND.FIRST_PAYLOAD} AND s.begun_seq >= 0
), moved AS MATERIALIZED (
    SELECT step_id, row_number() OVER (ORDER BY seq) AS place FROM fates WHERE fate = 'moved'
), earlier AS (
    UPDATE step_attempts AS a SET forgotten = :forgotten::bigint FROM fates
    WHERE fates.fate <> 'moved' AND a.run_id = :run_id AND a.step_id = fates.step_id AND a.forgotten = 0
), archived AS (
    INSERT INTO step_attempts (
        run_id, step_id, attempt, begun_seq, seq, lease, nonce, started_at, finished_at, worker_id, error, input, input_meta, forgotten
    )
    SELECT s.run_id, s.step_id, s.attempt, s.begun_seq, s.seq, s.lease, s.nonce, s.started_at, s.finished_at, s.worker_id,
        s.error, CASE s.kind WHEN {KIND.FUNCTION} THEN s.input END, CASE s.kind WHEN {KIND.FUNCTION} THEN s.input_meta END, :forgotten
    FROM fates JOIN steps AS s ON s.run_id = :run_id AND s.step_id = fates.step_id WHERE fates.fate <> 'moved' AND fates.status = {STEP.FAILED}
), kept AS (
    INSERT INTO forgotten_steps (
        run_id, retry_seq, retried_at, step_id, name, kind, status, attempt, begun_seq, seq, claim, bytes, retry, timeout_ms, created_at,
        started_at, finished_at, wake_at, child_run_id, parent_step_id, parallel_group_id, worker_id, error, input, input_meta, output,
        output_meta, details, details_meta
    )
    SELECT s.run_id, :forgotten, :now::bigint, s.step_id, s.name, s.kind, CASE WHEN s.status < {STEP.COMPLETED} THEN {STEP.ABANDONED} ELSE s.status END,
        s.attempt, s.begun_seq, s.seq, s.lease, newest.bytes, s.retry, s.timeout_ms, s.created_at, s.started_at,
        CASE WHEN s.status < {STEP.COMPLETED} THEN :finished_at::bigint ELSE s.finished_at END, s.wake_at, s.child_run_id,
        s.parent_step_id, s.parallel_group_id, s.worker_id, CASE s.status WHEN {STEP.FAILED} THEN s.error END, s.input, s.input_meta, s.output,
        s.output_meta, s.details, s.details_meta
    FROM (
        SELECT step_id, bytes, row_number() OVER w AS place, sum(bytes) OVER w AS total FROM (
            SELECT s.step_id, s.begun_seq, coalesce(octet_length(s.input), 0) + coalesce(octet_length(s.output), 0)
                + coalesce(octet_length(s.details), 0) + coalesce(octet_length(s.error::text), 0) AS bytes
            FROM fates JOIN steps AS s ON s.run_id = :run_id AND s.step_id = fates.step_id
            WHERE fates.fate <> 'moved' AND (s.status >= {STEP.COMPLETED} OR {begun_since})
        ) AS sized WINDOW w AS (ORDER BY begun_seq DESC, step_id)
    ) AS newest JOIN steps AS s ON s.run_id = :run_id AND s.step_id = newest.step_id
    WHERE newest.place <= :most_steps::bigint AND newest.total <= :most_bytes::bigint
), signalled AS (
    UPDATE signals AS n SET step_id = NULL FROM fates
    WHERE fates.fate = 'gone' AND n.run_id = :run_id AND n.step_id = fates.step_id
), children AS (
    UPDATE runs AS c SET request_id = c.request_id || '/' || c.run_id::text FROM fates
    WHERE fates.fate IN ('gone', 'childless') AND fates.kind = {KIND.CHILD} AND c.run_id = fates.child_run_id
        AND c.namespace IS NOT DISTINCT FROM :namespace AND c.parent_run_id = :run_id
        AND c.parent_step_id = fates.step_id
), gone AS (
    DELETE FROM steps AS s USING fates WHERE fates.fate = 'gone' AND s.run_id = :run_id AND s.step_id = fates.step_id
), opened AS (
    UPDATE steps AS s
    SET status = CASE WHEN s.once THEN {STEP.PENDING} ELSE {STEP.RUNNING} END, retry_at = CASE WHEN s.once THEN :now::bigint END,
        seq = 0, lease = 0, nonce = 0, error = NULL, output = NULL, output_meta = NULL, finished_at = NULL,
        attempt = CASE WHEN fates.fate = 'reopened' THEN 1 WHEN fates.status = {STEP.FAILED} THEN s.attempt + 1 ELSE s.attempt END,
        child_run_id = CASE WHEN fates.fate = 'reopened' THEN s.child_run_id END,
        due_at = CASE
            WHEN s.kind IN ({KIND.SLEEP}, {KIND.SIGNAL}, {KIND.CHILD}) THEN coalesce(s.wake_at, :never::bigint) WHEN s.once THEN :now
        END
    FROM fates WHERE fates.fate IN ('reopened', 'childless') AND s.run_id = :run_id AND s.step_id = fates.step_id
), again AS (
    UPDATE steps AS s SET seq = :forgotten + moved.place FROM moved WHERE s.run_id = :run_id AND s.step_id = moved.step_id
)
SELECT (SELECT count(*) FROM moved) AS moved, EXISTS (
    SELECT 1 FROM fates WHERE fate IN ('gone', 'childless') AND kind = {KIND.CHILD} AND child_run_id IS NOT NULL
) AS children_due;

-- name: reopen_run
-- The only transition out of FAILED. A deadline that has passed is dropped, as it would fail the run again.
UPDATE runs
SET status = {RUN.PENDING}, ready_at = :now::bigint, finished_at = NULL, error = NULL, problem = NULL, lost_leases = 0, nonce = 0,
    seq = seq + 1 + :moved::bigint, result_seq = CASE WHEN :moved > 0 THEN seq + 1 + :moved ELSE result_seq END,
    cancel_requested_at = NULL, cancel_by = NULL, cancel_reason = NULL, cascade_due = :children_due::bool, retry_request_id = :request_id::text,
    deadline_at = CASE WHEN deadline_at <= :now THEN NULL ELSE deadline_at END,
    awaits_signal = {signal_waits}, retrying_steps = {retried_steps}, unread_signals = {unread_signals}
WHERE run_id = :run_id::uuid;

-- name: part_signal_waits
-- Counted again after many steps of a run changed at once. Open waits have a due time.
(SELECT count(*) FROM steps AS s
 WHERE s.run_id = runs.run_id AND s.due_at IS NOT NULL AND s.kind = {KIND.SIGNAL} AND s.status = {STEP.RUNNING})

-- name: part_unread_signals
-- Like part_signal_waits: no step has them.
(SELECT count(*) FROM signals AS s WHERE s.run_id = runs.run_id AND s.step_id IS NULL)

-- name: part_retried_steps
-- Like part_signal_waits: an attempt has failed, and there is no result.
(SELECT count(*) FROM steps AS s
 WHERE s.run_id = runs.run_id AND s.kind = {KIND.FUNCTION} AND s.status IN ({STEP.PENDING}, {STEP.RUNNING}) AND s.attempt > 1)

-- name: ended_children
-- Children that ended while their parent was ended, and so did not notify it.
SELECT c.run_id::text AS run_id, c.status, c.error FROM steps AS s
JOIN runs AS c ON c.run_id = s.child_run_id AND c.namespace IS NOT DISTINCT FROM :namespace::text
WHERE s.run_id = :run_id::uuid AND s.due_at IS NOT NULL AND s.kind = {KIND.CHILD} AND s.status = {STEP.RUNNING} AND c.status IN ({RUN.ENDED})
    AND c.continued_as IS NULL;

-- name: fork_results
-- Which of these steps have a result that a fork copies.
SELECT step_id FROM steps
WHERE run_id = :run_id::uuid AND step_id = ANY (:step_ids::text[]) AND kind < {KIND.FIRST_PAYLOAD} AND status IN ({STEP.COMPLETED}, {STEP.FAILED}) AND seq > 0 AND seq < :before::bigint;

-- name: copy_results
-- Copies the history before a seq, some results with another output. A step that had begun by then and ended later is
-- copied as begun; failed attempts are copied; children are referenced.
WITH replaced AS MATERIALIZED (
    SELECT * FROM unnest(:step_ids::text[], :outputs::bytea[], :output_metas::text[]) AS replaced (step_id, output, metadata)
), source AS MATERIALIZED (
    SELECT s.*, least(s.begun_seq, a.first) AS first, s.seq > 0 AND s.seq < :before::bigint AS ended
    FROM steps AS s
    LEFT JOIN LATERAL (
        SELECT min(begun_seq) AS first FROM step_attempts AS a
        WHERE a.run_id = :run_id::uuid AND a.step_id = s.step_id AND a.forgotten = 0
    ) AS a ON true
    WHERE s.run_id = :run_id AND s.kind < {KIND.FIRST_PAYLOAD} AND s.begun_seq >= 0
), copied AS (
    INSERT INTO steps (
        run_id, step_id, name, kind, attempt, begun_seq, created_at, started_at, wake_at, timeout_ms, once, parent_step_id,
        parallel_group_id, child_run_id, retry, input, input_meta, status, retry_at, seq, finished_at, error, output, output_meta, due_at
    )
    SELECT :new_run_id::uuid, s.step_id, s.name, s.kind, CASE WHEN s.ended THEN s.attempt ELSE 1 END,
        CASE WHEN s.ended THEN s.begun_seq ELSE s.first END, s.created_at, s.started_at, s.wake_at, s.timeout_ms, s.once,
        s.parent_step_id, s.parallel_group_id, s.child_run_id, s.retry, s.input, s.input_meta,
        CASE
            WHEN NOT s.ended THEN CASE WHEN s.once THEN {STEP.PENDING} ELSE {STEP.RUNNING} END
            WHEN g.step_id IS NULL THEN s.status
            ELSE {STEP.COMPLETED}
        END,
        CASE WHEN s.once AND NOT s.ended THEN :now::bigint END,
        CASE WHEN s.ended THEN s.seq ELSE 0 END, CASE WHEN s.ended THEN s.finished_at END,
        CASE WHEN s.ended AND g.step_id IS NULL THEN s.error END,
        CASE WHEN NOT s.ended THEN NULL WHEN g.step_id IS NULL THEN s.output ELSE g.output END,
        CASE WHEN NOT s.ended THEN NULL WHEN g.step_id IS NULL THEN s.output_meta ELSE g.metadata::json END,
        CASE
            WHEN s.ended THEN NULL
            WHEN s.kind IN ({KIND.SLEEP}, {KIND.SIGNAL}, {KIND.CHILD}) THEN coalesce(s.wake_at, :never::bigint)
            WHEN s.once THEN :now
        END
    FROM source AS s LEFT JOIN replaced AS g ON g.step_id = s.step_id
    WHERE s.first < :before
    RETURNING step_id, seq, kind, status
), attempts AS (
    INSERT INTO step_attempts (
        run_id, step_id, attempt, begun_seq, seq, lease, nonce, started_at, finished_at, retry_at, worker_id, error, input,
        input_meta
    )
    SELECT :new_run_id, a.step_id, a.attempt, a.begun_seq, a.seq, 0, 0, a.started_at, a.finished_at, a.retry_at, a.worker_id, a.error,
        a.input, a.input_meta
    FROM step_attempts AS a JOIN copied ON copied.step_id = a.step_id AND copied.seq > 0
    WHERE a.run_id = :run_id AND a.forgotten = 0
)
UPDATE runs SET forked_from = :run_id, seq = :before - 1, result_seq = coalesce((SELECT max(copied.seq) FROM copied), 0),
    steps = (SELECT count(*) FROM copied),
    awaits_signal = (SELECT count(*) FROM copied WHERE kind = {KIND.SIGNAL} AND status = {STEP.RUNNING})
WHERE run_id = :new_run_id;

-- name: open_children
-- The children a run waits for.
SELECT child_run_id::text AS child_run_id, step_id FROM steps
WHERE run_id = :run_id::uuid AND due_at IS NOT NULL AND kind = {KIND.CHILD} AND status = {STEP.RUNNING} AND child_run_id IS NOT NULL;
