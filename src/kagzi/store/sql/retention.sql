-- name: next_leftover
-- A deleted run whose history is still to be deleted, and which server deletes it.
SELECT run_id::text AS run_id FROM purging LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: delete_some_steps
-- Some rows of a long history.
DELETE FROM steps
WHERE run_id = :run_id::uuid
    AND step_id IN (SELECT step_id FROM steps WHERE run_id = :run_id LIMIT :limit::bigint)
RETURNING 1;

-- name: delete_some_signals
-- See delete_some_steps.
DELETE FROM signals
WHERE run_id = :run_id::uuid
    AND number IN (SELECT number FROM signals WHERE run_id = :run_id LIMIT :limit::bigint)
RETURNING 1;

-- name: end_leftover
-- All of its history is deleted.
DELETE FROM purging WHERE run_id = :run_id::uuid;

-- name: claim_chore
-- A row if no other server has reserved the chore.
INSERT INTO chores (name, claimed_until) VALUES (:name::text, :until::bigint)
ON CONFLICT (name) DO UPDATE SET claimed_until = excluded.claimed_until WHERE chores.claimed_until <= :now::bigint
RETURNING 1;
