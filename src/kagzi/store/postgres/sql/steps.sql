-- name: list_steps
-- Steps in the order in which they were begun; one row without a step if the run has none (left) to show.
WITH r AS MATERIALIZED (
    SELECT run_id, finished_at, retry_request_id IS NOT NULL
        OR EXISTS (SELECT 1 FROM step_attempts AS l WHERE l.run_id = runs.run_id AND l.retry_at = 0) AS reopened
    FROM runs WHERE run_id = :run_id::uuid AND namespace = :namespace::text
)
SELECT r.run_id::text AS run_id, s.step_id, s.name, s.kind, s.status, s.attempt, s.begun_seq, s.seq, s.created_at,
    s.started_at, s.finished_at, s.timeout_ms, s.retry_at, s.wake_at, s.parent_step_id, s.parallel_group_id,
    s.worker_id, s.retry, s.error, s.child_run_id::text AS child_run_id, s.lease AS claim,
    CASE WHEN :payloads::bool THEN s.input END AS input, CASE WHEN :payloads THEN s.input_meta END AS input_meta,
    CASE WHEN :payloads THEN s.output END AS output, CASE WHEN :payloads THEN s.output_meta END AS output_meta,
    CASE WHEN :payloads THEN s.details END AS details, CASE WHEN :payloads THEN s.details_meta END AS details_meta,
    r.reopened, r.finished_at AS run_finished_at
FROM r
LEFT JOIN LATERAL (
    SELECT * FROM steps
    WHERE steps.run_id = r.run_id AND steps.kind < {KIND.FIRST_PAYLOAD} AND steps.begun_seq >= 0 AND steps.begun_seq > :after::bigint
        AND (:name::text IS NULL OR steps.name = :name)
    ORDER BY steps.begun_seq LIMIT :limit::bigint
) AS s ON true
ORDER BY s.begun_seq;

-- name: get_step
-- One step with everything.
SELECT s.*, s.run_id::text AS run_id, s.child_run_id::text AS child_run_id, s.lease AS claim,
    r.finished_at AS run_finished_at, r.retry_request_id IS NOT NULL
        OR EXISTS (SELECT 1 FROM step_attempts AS l WHERE l.run_id = r.run_id AND l.retry_at = 0) AS reopened
FROM runs AS r
JOIN steps AS s ON s.run_id = r.run_id
WHERE r.run_id = :run_id::uuid AND r.namespace = :namespace::text AND s.step_id = :step_id::text AND s.kind < {KIND.FIRST_PAYLOAD};

-- name: step_attempts
-- The earlier attempts of these steps, in the order of the steps, latest first.
SELECT a.step_id, a.attempt, a.started_at, a.finished_at, a.error, a.worker_id, a.lease AS claim, a.begun_seq,
    CASE WHEN :payloads::bool THEN a.input END AS input, CASE WHEN :payloads THEN a.input_meta END AS input_meta
FROM unnest(:step_ids::text[]) WITH ORDINALITY AS g (step_id, n)
JOIN step_attempts AS a ON a.run_id = :run_id::uuid AND a.step_id = g.step_id
ORDER BY g.n, a.seq DESC LIMIT :limit::bigint;

-- name: timeline_run
-- The status of the run, when it ended, and the position of a step.
SELECT r.finished_at, r.created_at, r.status, r.cancel_requested_at, r.pause_requested, r.pause_reason, r.lease, (
    SELECT s.begun_seq FROM steps AS s WHERE s.run_id = r.run_id AND s.step_id = :step_id::text AND s.kind < {KIND.FIRST_PAYLOAD}
) AS begun_seq
FROM runs AS r WHERE r.run_id = :run_id::uuid AND r.namespace = :namespace::text;

-- name: part_timeline_columns
-- A step without payloads, the times and workers of its earlier attempts (latest first), and the beginning of its
-- error.
SELECT s.step_id, s.name, s.kind, s.status, s.begun_seq, s.seq, s.attempt, s.created_at, s.started_at, s.finished_at, s.retry_at, s.wake_at,
    s.worker_id, s.parent_step_id, s.parallel_group_id, s.child_run_id::text AS child_run_id,
    s.error ->> 'type' AS error_type, left(s.error ->> 'message', 1024) AS error_message, (
        SELECT json_agg(json_build_array(a.started_at, a.finished_at, a.worker_id))::text FROM (
            SELECT started_at, finished_at, worker_id FROM step_attempts
            WHERE run_id = s.run_id AND step_id = s.step_id ORDER BY seq DESC LIMIT :attempts::bigint
        ) AS a
    ) AS attempts

-- name: part_timeline_rows
-- Of one run, those that fit.
SELECT * FROM steps AS s
WHERE s.run_id = :run_id::uuid AND s.kind < {KIND.FIRST_PAYLOAD} AND s.begun_seq >= 0
    AND (:name::text IS NULL OR s.name = :name) AND (:statuses::smallint[] IS NULL OR s.status = ANY (:statuses))
    AND (:kinds::smallint[] IS NULL OR s.kind = ANY (:kinds))

-- name: timeline_older
-- Newest first.
{timeline_columns} FROM ({timeline_rows} AND s.begun_seq < :before::bigint ORDER BY s.begun_seq DESC LIMIT :limit::bigint) AS s
ORDER BY s.begun_seq DESC;

-- name: timeline_newer
-- Oldest first.
{timeline_columns} FROM ({timeline_rows} AND s.begun_seq > :after::bigint ORDER BY s.begun_seq LIMIT :limit::bigint) AS s
ORDER BY s.begun_seq;

-- name: timeline_pauses
-- When it was paused and resumed, latest first.
SELECT step_id, finished_at, error ->> 'message' AS reason FROM step_attempts
WHERE run_id = :run_id::uuid AND step_id IN (:paused::text, :resumed::text) ORDER BY seq DESC LIMIT :limit::bigint;

-- name: signal_waits
-- The external signals that runs wait for, in the order of the given runs.
SELECT r.run_id::text AS run_id, s.step_id, s.name, s.created_at, s.wake_at, s.input, s.input_meta
FROM unnest(:run_ids::uuid[]) WITH ORDINALITY AS g (run_id, n)
JOIN runs AS r ON r.run_id = g.run_id AND r.namespace = :namespace::text AND r.awaits_signal > 0
CROSS JOIN LATERAL (
    SELECT * FROM steps AS w
    WHERE w.run_id = r.run_id AND w.due_at IS NOT NULL AND w.kind = {KIND.SIGNAL} AND w.status = {STEP.RUNNING}
    ORDER BY w.begun_seq LIMIT :most::bigint
) AS s
ORDER BY g.n, s.begun_seq LIMIT :limit::bigint;
