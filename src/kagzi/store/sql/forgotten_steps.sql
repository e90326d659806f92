-- name: trim_forgotten_steps
-- Only the newest are kept: those of the latest retries, and of one retry those begun last.
DELETE FROM forgotten_steps WHERE run_id = :run_id::uuid AND (retry_seq, step_id) IN (
    SELECT retry_seq, step_id FROM (
        SELECT retry_seq, step_id, row_number() OVER newest AS place, sum(bytes) OVER newest AS total
        FROM forgotten_steps WHERE run_id = :run_id WINDOW newest AS (ORDER BY retry_seq DESC, begun_seq DESC, step_id)
    ) AS ranked WHERE place > :most_steps::bigint OR total > :most_bytes::bigint
)
RETURNING 1;

-- name: part_begun_since
-- Whether an open step has begun since a retry discarded it. It has kept its times; a child step has no child.
((s.kind <> {KIND.CHILD} OR s.child_run_id IS NOT NULL) AND NOT EXISTS (
    SELECT 1 FROM forgotten_steps AS f
    WHERE f.run_id = s.run_id AND f.step_id = s.step_id AND f.started_at IS NOT DISTINCT FROM s.started_at
        AND f.begun_seq = s.begun_seq AND f.child_run_id IS NOT DISTINCT FROM s.child_run_id
))

-- name: part_forgotten_columns
-- A step that a retry discarded, as users see it, without its payloads.
f.retry_seq, f.retried_at, f.step_id, f.name, f.kind, f.status, f.attempt, f.begun_seq, f.seq, f.created_at,
f.started_at, f.finished_at, f.wake_at, f.timeout_ms, f.child_run_id::text AS child_run_id, f.parent_step_id,
f.parallel_group_id, f.worker_id, f.retry, f.error, f.claim, NULL AS retry_at

-- name: list_forgotten_steps
-- The latest retry first; those of one retry in the order in which they were begun.
SELECT {forgotten_columns},
    CASE WHEN :payloads::bool THEN f.input END AS input, CASE WHEN :payloads THEN f.input_meta END AS input_meta,
    CASE WHEN :payloads THEN f.output END AS output, CASE WHEN :payloads THEN f.output_meta END AS output_meta,
    CASE WHEN :payloads THEN f.details END AS details, CASE WHEN :payloads THEN f.details_meta END AS details_meta
FROM forgotten_steps AS f
WHERE f.run_id = :run_id::uuid AND (:name::text IS NULL OR f.name = :name)
    AND (f.retry_seq < :retry_seq::bigint OR (f.retry_seq = :retry_seq AND f.begun_seq > :after::bigint))
ORDER BY f.retry_seq DESC, f.begun_seq LIMIT :limit::bigint;

-- name: get_forgotten_step
-- One of them with everything.
SELECT {forgotten_columns}, f.input, f.input_meta, f.output, f.output_meta, f.details, f.details_meta
FROM runs AS r JOIN forgotten_steps AS f ON f.run_id = r.run_id
WHERE r.run_id = :run_id::uuid AND r.namespace = :namespace::text AND f.retry_seq = :retry_seq::bigint
    AND f.step_id = :step_id::text;

-- name: forgotten_attempts
-- The attempts before the last one of these steps, in the order of the steps, latest first. :below is the seq of the
-- end of the step.
SELECT g.place, a.step_id, a.attempt, a.started_at, a.finished_at, a.error, a.worker_id, a.lease AS claim, a.begun_seq,
    CASE WHEN :payloads::bool THEN a.input END AS input, CASE WHEN :payloads THEN a.input_meta END AS input_meta
FROM rows(:steps) AS g (place bigint, step_id text, below bigint)
JOIN step_attempts AS a ON a.run_id = :run_id::uuid AND a.step_id = g.step_id AND a.seq < g.below
ORDER BY g.place, a.seq DESC LIMIT :limit::bigint;

-- name: timeline_retries
-- The retries of a run that discarded steps, latest first.
SELECT retry_seq, max(retried_at) AS retried_at, count(*) AS steps FROM forgotten_steps
WHERE run_id = :run_id::uuid GROUP BY retry_seq ORDER BY retry_seq DESC;

-- name: export_forgotten_steps
-- By retry and step.
SELECT {forgotten_columns}, f.input, f.input_meta, f.output, f.output_meta, f.details, f.details_meta
FROM forgotten_steps AS f
WHERE f.run_id = :run_id::uuid AND (f.retry_seq, f.step_id) > (:after_retry_seq::bigint, :after_step_id::text)
ORDER BY f.retry_seq, f.step_id LIMIT :limit::bigint;

-- name: clear_forgotten_steps
-- See clear_steps.
DELETE FROM forgotten_steps WHERE run_id = :run_id::uuid;

-- name: delete_some_forgotten_steps
-- See delete_some_steps.
DELETE FROM forgotten_steps
WHERE run_id = :run_id::uuid
    AND (retry_seq, step_id) IN (SELECT retry_seq, step_id FROM forgotten_steps WHERE run_id = :run_id LIMIT :limit::bigint)
RETURNING 1;
