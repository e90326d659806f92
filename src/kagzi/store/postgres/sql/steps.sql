-- name: list_steps
-- Steps in the order in which they were begun; one row without a step if the run has none (left) to show.
WITH r AS MATERIALIZED (
    SELECT run_id, finished_at, retry_request_id IS NOT NULL
        OR EXISTS (SELECT 1 FROM step_attempts AS l WHERE l.run_id = runs.run_id AND l.retry_at = 0) AS reopened
    FROM runs WHERE run_id = :run_id::uuid AND namespace = :namespace::text
)
SELECT r.run_id::text AS run_id, s.step_id, s.name, s.kind, s.status, s.attempt, s.begun_seq, s.seq, s.created_at,
    s.started_at, s.finished_at, s.timeout_ms, s.retry_at, s.wake_at, s.parent_step_id, s.parallel_group_id,
    s.worker_id, s.retry, s.error, s.child_run_id::text AS child_run_id,
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
SELECT s.*, s.run_id::text AS run_id, s.child_run_id::text AS child_run_id,
    r.finished_at AS run_finished_at, r.retry_request_id IS NOT NULL
        OR EXISTS (SELECT 1 FROM step_attempts AS l WHERE l.run_id = r.run_id AND l.retry_at = 0) AS reopened
FROM runs AS r
JOIN steps AS s ON s.run_id = r.run_id
WHERE r.run_id = :run_id::uuid AND r.namespace = :namespace::text AND s.step_id = :step_id::text AND s.kind < {KIND.FIRST_PAYLOAD};

-- name: step_attempts
-- The earlier attempts of these steps, in the order of the steps, the latest first.
SELECT a.step_id, a.attempt, a.started_at, a.finished_at, a.error, a.worker_id
FROM unnest(:step_ids::text[]) WITH ORDINALITY AS g (step_id, n)
JOIN step_attempts AS a ON a.run_id = :run_id::uuid AND a.step_id = g.step_id
ORDER BY g.n, a.seq DESC LIMIT :limit::bigint;
