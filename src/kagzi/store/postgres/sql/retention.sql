-- name: ended_runs
-- Runs to forget, oldest first.
SELECT run_id::text AS run_id, finished_at FROM runs
WHERE namespace = $1::text AND finished_at >= $2::bigint AND finished_at <= $3::bigint AND status = ANY ($4::smallint[])
ORDER BY finished_at LIMIT $5::bigint;

-- name: lock_runs_to_delete
-- Those that may go now, locked. Whose children are still to be cancelled stays until they are.
SELECT run_id::text AS run_id, seq, created_at, labels FROM runs
WHERE run_id = ANY ($2::uuid[]) AND namespace = $1::text AND finished_at <= $3::bigint AND NOT cascade_due
ORDER BY run_id FOR UPDATE SKIP LOCKED;

-- name: delete_runs
-- Runs ($1) with all that belongs to them; the histories of long ones are left for later ($2: the short ones). Labels are given
-- whole, so that each is found by its whole key.
WITH labels AS (
    DELETE FROM run_labels AS l
    USING unnest($4::text[], $5::text[], $6::bigint[], $7::uuid[]) AS had (key, value, created_at, run_id)
    WHERE l.namespace = $3::text AND l.key = had.key AND l.value = had.value AND l.created_at = had.created_at
        AND l.run_id = had.run_id
), links_to AS (
    DELETE FROM child_links AS l USING steps AS s
    WHERE s.run_id = ANY ($2::uuid[]) AND s.kind = 4 AND l.namespace = $3 AND l.child_run_id = s.child_run_id AND l.parent_run_id = s.run_id
), links_from AS (
    DELETE FROM child_links WHERE namespace = $3 AND child_run_id = ANY ($1)
), attempts AS (
    DELETE FROM step_attempts WHERE run_id = ANY ($2)
), signals AS (
    DELETE FROM signals WHERE run_id = ANY ($2)
), gone AS (
    DELETE FROM steps WHERE run_id = ANY ($2)
), left_over AS (
    INSERT INTO purging (run_id) SELECT run_id FROM unnest($1) AS g (run_id) WHERE run_id <> ALL ($2)
    ON CONFLICT DO NOTHING
)
DELETE FROM runs WHERE run_id = ANY ($1) AND namespace IS NOT DISTINCT FROM $3;

-- name: next_leftover
-- Whose history goes on going, and who sees to it.
SELECT run_id::text AS run_id FROM purging LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: delete_some_steps
-- A bit of a long history.
DELETE FROM steps WHERE run_id = $1::uuid AND step_id IN (SELECT step_id FROM steps WHERE run_id = $1 LIMIT $2::bigint)
RETURNING 1;

-- name: delete_some_attempts
-- As above.
DELETE FROM step_attempts AS a USING (
    SELECT step_id, forgotten, attempt FROM step_attempts WHERE run_id = $1::uuid LIMIT $2::bigint
) AS few
WHERE a.run_id = $1 AND a.step_id = few.step_id AND a.forgotten = few.forgotten AND a.attempt = few.attempt
RETURNING 1;

-- name: delete_some_signals
-- As above.
DELETE FROM signals WHERE run_id = $1::uuid AND number IN (SELECT number FROM signals WHERE run_id = $1 LIMIT $2::bigint)
RETURNING 1;

-- name: end_leftover
-- Nothing is left of it.
DELETE FROM purging WHERE run_id = $1::uuid;

-- name: claim_chore
-- One row, if nobody else has it.
INSERT INTO chores (name, claimed_until) VALUES ($1::text, $3::bigint)
ON CONFLICT (name) DO UPDATE SET claimed_until = excluded.claimed_until WHERE chores.claimed_until <= $2::bigint
RETURNING name;

-- name: namespaces_after
-- A page of tenants by name, as get_namespace tells of one.
SELECT * FROM namespaces WHERE namespace > $1::text ORDER BY namespace LIMIT $2::bigint;
