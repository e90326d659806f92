-- name: create_namespaces
-- See create_namespace; many at once.
INSERT INTO namespaces (namespace, created_at)
SELECT namespace, :now::bigint FROM unnest(:namespaces::text[]) AS n (namespace) ORDER BY namespace
ON CONFLICT (namespace) DO NOTHING;

-- name: request_deletion
-- From now on it accepts nothing new; a repeated request changes nothing.
UPDATE namespaces SET deleting_at = coalesce(deleting_at, :now::bigint), enabled = false
WHERE namespace = :namespace::text RETURNING purging;

-- name: writers_of_runs
-- Transactions that are writing runs. Those that begin later see what was committed before this statement.
SELECT DISTINCT virtualtransaction AS writer FROM pg_locks
WHERE locktype = 'relation' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND relation = 'runs'::regclass AND mode = 'RowExclusiveLock' AND granted AND pid <> pg_backend_pid();

-- name: grant_deletion
-- Nothing is open in it: its rows may be deleted.
UPDATE namespaces SET purging = true WHERE namespace = :namespace::text;

-- name: refuse_deletion
-- Something is open in it: it continues as before.
UPDATE namespaces SET deleting_at = NULL, enabled = :enabled::bool WHERE namespace = :namespace::text;

-- name: note_starts
-- When these namespaces may start their next run.
UPDATE namespaces AS n SET next_start_at = g.at FROM unnest(:namespaces::text[], :times::bigint[]) AS g (namespace, at)
WHERE n.namespace = g.namespace;

-- name: remove
-- Some rows that belonged to a namespace.
DELETE FROM {table} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {table} WHERE namespace = :namespace::text LIMIT :limit::bigint
))
RETURNING 1;

-- name: part_being_purged
-- Its rows are being deleted.
purging

-- name: part_bytes_of_run
-- What a run stores: the payloads of its history and signals, and errors.
coalesce((SELECT sum(coalesce(octet_length(s.input), 0) + coalesce(octet_length(s.output), 0)
        + coalesce(octet_length(s.details), 0) + coalesce(octet_length(s.error::text), 0))
    FROM steps AS s WHERE s.run_id = oldest.run_id), 0)::bigint
+ coalesce((SELECT sum(coalesce(octet_length(a.input), 0)) FROM step_attempts AS a WHERE a.run_id = oldest.run_id), 0)::bigint
+ coalesce((SELECT sum(f.bytes) FROM forgotten_steps AS f WHERE f.run_id = oldest.run_id), 0)::bigint
+ coalesce((SELECT sum(octet_length(g.payload) + coalesce(octet_length(g.start_request), 0)) FROM signals AS g WHERE g.run_id = oldest.run_id), 0)::bigint
