-- name: create_namespaces
-- A namespace comes into being with its first start or worker.
INSERT INTO namespaces (namespace, created_at)
SELECT namespace, :now::bigint FROM unnest(:namespaces::text[]) AS given (namespace) ORDER BY namespace
ON CONFLICT (namespace) DO NOTHING;

-- name: get_namespace
-- A namespace with its limits.
SELECT * FROM namespaces WHERE namespace = :namespace::text;

-- name: list_namespaces_after
-- A page by name; the cursor is the last one seen.
SELECT * FROM namespaces WHERE :cursor::text IS NULL OR namespace > :cursor ORDER BY namespace LIMIT :limit::bigint;

-- name: list_namespaces_before
-- The page before, nearest first: the reader turns it around.
SELECT * FROM namespaces WHERE namespace < :cursor::text ORDER BY namespace DESC LIMIT :limit::bigint;

-- name: put_namespace
-- Insert or replace (:only_insert: only insert), limits and all; the time of its making stays.
INSERT INTO namespaces (
    namespace, enabled, created_at, open_runs_limit, running_runs_limit, starts_per_second_limit, stored_bytes_limit,
    sessions_limit, schedules_limit, retention
)
VALUES (
    :namespace::text, :enabled::bool, :created_at::bigint, :open_runs_limit::bigint, :running_runs_limit::bigint, :starts_per_second_limit::double precision, :stored_bytes_limit::bigint, :sessions_limit::bigint, :schedules_limit::bigint,
    :retention::text::json
)
ON CONFLICT (namespace) DO UPDATE
SET enabled = excluded.enabled, open_runs_limit = excluded.open_runs_limit,
    running_runs_limit = excluded.running_runs_limit, starts_per_second_limit = excluded.starts_per_second_limit,
    stored_bytes_limit = excluded.stored_bytes_limit, sessions_limit = excluded.sessions_limit,
    schedules_limit = excluded.schedules_limit, retention = excluded.retention
WHERE NOT :only_insert::bool AND namespaces.deleting_at IS NULL
RETURNING namespace;

-- name: update_namespace
-- Only the fields named in :fields: those who change others at the same time are not overruled.
UPDATE namespaces
SET enabled = CASE WHEN 'enabled' = ANY (:fields::text[]) THEN :enabled::bool ELSE enabled END,
    open_runs_limit = CASE WHEN 'open_runs_limit' = ANY (:fields) THEN :open_runs_limit::bigint ELSE open_runs_limit END,
    running_runs_limit = CASE WHEN 'running_runs_limit' = ANY (:fields) THEN :running_runs_limit::bigint ELSE running_runs_limit END,
    starts_per_second_limit =
        CASE WHEN 'starts_per_second_limit' = ANY (:fields) THEN :starts_per_second_limit::double precision ELSE starts_per_second_limit END,
    stored_bytes_limit = CASE WHEN 'stored_bytes_limit' = ANY (:fields) THEN :stored_bytes_limit::bigint ELSE stored_bytes_limit END,
    sessions_limit = CASE WHEN 'sessions_limit' = ANY (:fields) THEN :sessions_limit::bigint ELSE sessions_limit END,
    schedules_limit = CASE WHEN 'schedules_limit' = ANY (:fields) THEN :schedules_limit::bigint ELSE schedules_limit END,
    retention = CASE WHEN 'retention_seconds' = ANY (:fields) THEN :retention::text::json ELSE retention END
WHERE namespace = :namespace::text AND deleting_at IS NULL
RETURNING *;

-- name: ask_deletion
-- It takes nothing new from now on; asking again changes nothing.
UPDATE namespaces SET deleting_at = coalesce(deleting_at, :now::bigint), enabled = false
WHERE namespace = :namespace::text RETURNING purging;

-- name: writers_of_runs
-- Transactions that write runs now. One that begins later sees what was committed before this was asked.
SELECT DISTINCT virtualtransaction AS writer FROM pg_locks
WHERE locktype = 'relation' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND relation = 'runs'::regclass AND mode = 'RowExclusiveLock' AND granted AND pid <> pg_backend_pid();

-- name: lock_namespace
-- Whoever counts what is in a namespace holds its row.
SELECT * FROM namespaces WHERE namespace = :namespace::text FOR UPDATE;

-- name: count_enabled_schedules
-- Counted no further than anybody wants to know.
SELECT count(*) AS schedules FROM (
    SELECT 1 FROM schedules WHERE namespace = :namespace::text AND enabled LIMIT :cap::bigint
) AS counted;

-- name: grant_deletion
-- Nothing is open in it: its rows may go.
UPDATE namespaces SET purging = true WHERE namespace = :namespace::text;

-- name: refuse_deletion
-- Something is open in it: it goes on as it was.
UPDATE namespaces SET deleting_at = NULL, enabled = :enabled::bool WHERE namespace = :namespace::text;

-- name: namespace_chores
-- One of those that are being removed; and one that limits what it keeps and has not been measured for a while.
WITH claimed AS (
    UPDATE namespaces SET measured_until = :measured_until::bigint
    WHERE namespace = (
        SELECT namespace FROM namespaces WHERE stored_bytes_limit IS NOT NULL AND measured_until <= :now::bigint
        ORDER BY measured_until LIMIT 1 FOR UPDATE SKIP LOCKED
    )
    RETURNING namespace
)
SELECT coalesce((SELECT namespace FROM namespaces WHERE purging ORDER BY deleting_at, namespace LIMIT 1), '') AS purge,
    coalesce((SELECT namespace FROM claimed), '') AS measure;

-- name: measure_runs
-- What some runs keep, the oldest first: payloads of their histories and signals, and errors.
WITH oldest AS MATERIALIZED (
    SELECT run_id, created_at FROM runs
    WHERE namespace = :namespace::text AND created_at >= 0 AND (:after_at::bigint IS NULL OR (created_at, run_id) > (:after_at, :after_run_id::uuid))
    ORDER BY created_at, run_id LIMIT :limit::bigint
)
SELECT o.run_id::text AS run_id, o.created_at,
    coalesce((SELECT sum(coalesce(octet_length(s.input), 0) + coalesce(octet_length(s.output), 0)
            + coalesce(octet_length(s.details), 0) + coalesce(octet_length(s.error::text), 0))
        FROM steps AS s WHERE s.run_id = o.run_id), 0)::bigint
    + coalesce((SELECT sum(octet_length(g.payload)) FROM signals AS g WHERE g.run_id = o.run_id), 0)::bigint AS bytes
FROM oldest AS o ORDER BY o.created_at, o.run_id;

-- name: note_stored_bytes
-- What was measured, and when.
UPDATE namespaces SET stored_bytes = :stored_bytes::bigint, stored_bytes_at = :now::bigint WHERE namespace = :namespace::text;

-- name: any_run_of_namespace
-- Whether a namespace has runs.
SELECT 1 FROM runs WHERE namespace = :namespace::text AND created_at >= 0 LIMIT 1;

-- name: remove_namespace
-- The last of it: its name is free again.
DELETE FROM namespaces WHERE namespace = :namespace::text AND purging;

-- name: note_starts
-- When the next start of these namespaces is due.
UPDATE namespaces AS n SET next_start_at = g.at FROM unnest(:namespaces::text[], :times::bigint[]) AS g (namespace, at)
WHERE n.namespace = g.namespace;

-- name: lock_session_limit
-- Of a namespace that limits its workers, or is being deleted.
SELECT sessions_limit, deleting_at FROM namespaces
WHERE namespace = :namespace::text AND (sessions_limit IS NOT NULL OR deleting_at IS NOT NULL) FOR UPDATE;

-- name: count_sessions
-- Other workers that are there and were heard of lately, counted no further than the limit.
SELECT count(*) AS sessions FROM (
    SELECT 1 FROM workers
    WHERE namespace = :namespace::text AND status <> {WORKER.OFFLINE} AND worker_id <> :worker_id::text AND last_heartbeat_at >= :heard_since::bigint LIMIT :limit::bigint
) AS counted;

-- name: part_removal
-- A bit of what belonged to a namespace.
WITH gone AS (
    DELETE FROM {table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM {table} WHERE namespace = :namespace::text LIMIT :limit::bigint))
    RETURNING 1
)
SELECT count(*) AS removed FROM gone
