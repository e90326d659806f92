-- name: ended_runs
-- Runs to delete, oldest first: the oldest of each status, by the index of ended runs.
SELECT r.run_id::text AS run_id, r.finished_at FROM unnest(:statuses::smallint[]) AS s (status) CROSS JOIN LATERAL (
    SELECT run_id, finished_at FROM runs
    WHERE namespace = :namespace::text AND status = s.status AND finished_at >= :after::bigint AND finished_at <= :until::bigint
    ORDER BY finished_at LIMIT :limit::bigint
) AS r
ORDER BY r.finished_at LIMIT :limit;

-- name: lock_runs_to_delete
-- Those that may be deleted now, locked. A run with children still to be cancelled is kept until they are.
SELECT run_id::text AS run_id, seq, created_at, labels FROM runs
WHERE run_id = ANY (:run_ids::uuid[]) AND namespace = :namespace::text AND finished_at <= :until::bigint AND NOT cascade_due
ORDER BY run_id FOR UPDATE SKIP LOCKED;

-- name: delete_runs
-- Deletes runs (:run_ids) with all their rows; long histories are left for later (:short_run_ids: the short ones).
-- Labels are passed with all columns, so that each is found by its whole key.
WITH labels AS (
    DELETE FROM run_labels AS l
    USING rows(:labels) AS had (key text, value text, created_at bigint, run_id uuid)
    WHERE l.namespace = :namespace::text AND l.key = had.key AND l.value = had.value AND l.created_at = had.created_at
        AND l.run_id = had.run_id
), links_to AS (
    DELETE FROM child_links AS l USING steps AS s
    WHERE s.run_id = ANY (:short_run_ids::uuid[]) AND s.kind = {KIND.CHILD} AND l.namespace = :namespace AND l.child_run_id = s.child_run_id AND l.parent_run_id = s.run_id
), links_from AS (
    DELETE FROM child_links WHERE namespace = :namespace AND child_run_id = ANY (:run_ids)
), attempts AS (
    DELETE FROM step_attempts WHERE run_id = ANY (:short_run_ids)
), signals AS (
    DELETE FROM signals WHERE run_id = ANY (:short_run_ids)
), logs AS (
    DELETE FROM step_logs WHERE run_id = ANY (:short_run_ids)
), forgotten AS (
    DELETE FROM forgotten_steps WHERE run_id = ANY (:short_run_ids)
), gone AS (
    DELETE FROM steps WHERE run_id = ANY (:short_run_ids)
), left_over AS (
    INSERT INTO purging (run_id) SELECT run_id FROM unnest(:run_ids) AS g (run_id) WHERE run_id <> ALL (:short_run_ids)
    ON CONFLICT DO NOTHING
)
DELETE FROM runs WHERE run_id = ANY (:run_ids) AND namespace IS NOT DISTINCT FROM :namespace;

-- name: delete_some_attempts
-- See delete_some_steps.
DELETE FROM step_attempts AS a USING (
    SELECT step_id, forgotten, attempt FROM step_attempts WHERE run_id = :run_id::uuid LIMIT :limit::bigint
) AS few
WHERE a.run_id = :run_id AND a.step_id = few.step_id AND a.forgotten = few.forgotten AND a.attempt = few.attempt
RETURNING 1;
