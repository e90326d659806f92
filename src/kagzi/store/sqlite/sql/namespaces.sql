-- name: part_namespace_columns
-- A tenant and its limits.
namespace, enabled, created_at, open_runs_limit, running_runs_limit, starts_per_second_limit, stored_bytes_limit,
sessions_limit, schedules_limit, retention, deleting_at, next_start_at, stored_bytes, stored_bytes_at

-- name: get_namespace
-- A tenant and its limits.
SELECT {namespace_columns} FROM namespaces WHERE namespace = ?;

-- name: list_namespaces_after
-- A page by name; the cursor is the last one seen.
SELECT {namespace_columns} FROM namespaces WHERE namespace > ? ORDER BY namespace LIMIT ?;

-- name: list_namespaces_before
-- The page before, nearest first: the reader turns it around.
SELECT {namespace_columns} FROM namespaces WHERE namespace < ? ORDER BY namespace DESC LIMIT ?;

-- name: ensure_namespace
-- It comes into being with its first start or worker.
INSERT INTO namespaces (namespace, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING;

-- name: put_namespace
-- Insert or replace, limits and all; the time of creation stays.
INSERT INTO namespaces (namespace, enabled, created_at, open_runs_limit, running_runs_limit, starts_per_second_limit,
                        stored_bytes_limit, sessions_limit, schedules_limit, retention)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (namespace) DO UPDATE SET enabled = excluded.enabled, open_runs_limit = excluded.open_runs_limit,
    running_runs_limit = excluded.running_runs_limit, starts_per_second_limit = excluded.starts_per_second_limit,
    stored_bytes_limit = excluded.stored_bytes_limit, sessions_limit = excluded.sessions_limit,
    schedules_limit = excluded.schedules_limit, retention = excluded.retention;

-- name: count_enabled_schedules
-- Counted no further than anybody wants to know.
SELECT count(*) FROM (SELECT 1 FROM schedules WHERE namespace = ? AND enabled = 1 LIMIT ?);

-- name: grant_deletion
-- It takes nothing new from now on, and its rows may go.
UPDATE namespaces SET deleting_at = coalesce(deleting_at, ?), enabled = 0 WHERE namespace = ?;

-- name: namespace_chores
-- One of those that are being removed; and one that limits what it keeps and has not been measured for a while.
SELECT (SELECT namespace FROM namespaces WHERE deleting_at IS NOT NULL ORDER BY deleting_at, namespace LIMIT 1),
       (SELECT namespace FROM namespaces WHERE stored_bytes_limit IS NOT NULL AND measured_until <= ?
        ORDER BY measured_until LIMIT 1);

-- name: claim_measurement
-- Nobody else need measure it until then.
UPDATE namespaces SET measured_until = ? WHERE namespace = ?;

-- name: measure_runs
-- What some runs keep, the oldest first: payloads of their histories and signals, and errors.
SELECT r.run_id, r.created_at,
       coalesce((SELECT sum(coalesce(length(s.input), 0) + coalesce(length(s.output), 0) + coalesce(length(s.details), 0)
                            + coalesce(length(CAST(s.error AS BLOB)), 0)) FROM steps AS s WHERE s.run_id = r.run_id), 0)
       + coalesce((SELECT sum(length(g.payload)) FROM signals AS g WHERE g.run_id = r.run_id), 0)
FROM runs AS r INDEXED BY runs_by_created
WHERE r.namespace = :namespace AND (r.created_at, r.run_id) > (:at, :run_id) ORDER BY r.created_at, r.run_id LIMIT :limit;

-- name: note_stored_bytes
-- What was measured, and when.
UPDATE namespaces SET stored_bytes = ?, stored_bytes_at = ? WHERE namespace = ?;

-- name: any_run_of_namespace
-- Whether a namespace has runs.
SELECT 1 FROM runs INDEXED BY runs_by_created WHERE namespace = ? LIMIT 1;

-- name: count_sessions
-- Other workers that are there and were heard of lately, counted no further than the limit.
SELECT count(*) FROM (SELECT 1 FROM workers WHERE namespace = ? AND status <> 'offline' AND worker_id <> ?
                      AND last_heartbeat_at >= ? LIMIT ?);

-- name: part_removal
-- A bit of what belonged to a namespace, in the order of its key.
DELETE FROM {table} WHERE namespace = :namespace AND {column} <= coalesce(
    (SELECT {column} FROM {table} WHERE namespace = :namespace ORDER BY {column} LIMIT 1 OFFSET :limit),
    (SELECT max({column}) FROM {table} WHERE namespace = :namespace))

-- name: remove_namespace
-- The last of it: its name is free again.
DELETE FROM namespaces WHERE namespace = ? AND deleting_at IS NOT NULL;

-- name: note_start
-- When the next start of a namespace is due.
UPDATE namespaces SET next_start_at = ? WHERE namespace = ?;
