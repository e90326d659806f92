-- name: runs_with_step
-- Two of the newest runs that have a step of this id, to tell one from several.
SELECT newest.run_id::text AS run_id
FROM (
    SELECT run_id, namespace FROM runs
    WHERE namespace = :namespace::text AND created_at >= 0
    ORDER BY created_at DESC, run_id DESC LIMIT :searched::bigint
) AS newest
JOIN steps AS s ON s.run_id = newest.run_id AND s.step_id = :step_id::text
WHERE s.kind < {KIND.FIRST_PAYLOAD} AND s.begun_seq > 0
LIMIT 2;
