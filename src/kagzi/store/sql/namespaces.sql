-- name: create_namespace
-- A namespace is created by its first start, worker, schedule or limit.
INSERT INTO namespaces (namespace, created_at) VALUES (:namespace::text, :now::bigint) ON CONFLICT DO NOTHING;

-- name: get_namespace
-- A namespace with its limits.
SELECT * FROM namespaces WHERE namespace = :namespace::text;

-- name: lock_namespace
-- A transaction that counts what is in a namespace, or changes some of its fields, holds this lock.
SELECT * FROM namespaces WHERE namespace = :namespace::text FOR UPDATE;

-- name: list_namespaces
-- By name.
SELECT * FROM namespaces WHERE namespace {>|<} :cursor::text ORDER BY namespace {ASC|DESC} LIMIT :limit::bigint;

-- name: namespaces_after
-- By name, for chores that go through all of them.
SELECT * FROM namespaces WHERE namespace > :namespace::text ORDER BY namespace LIMIT :limit::bigint;

-- name: put_namespace
-- Insert or replace (:only_insert: only insert) with all limits; the time of creation stays.
INSERT INTO namespaces (
    namespace, enabled, created_at, open_runs_limit, running_runs_limit, starts_per_second_limit, stored_bytes_limit,
    sessions_limit, schedules_limit, retention
)
VALUES (
    :namespace::text, :enabled::bool, :created_at::bigint, :open_runs_limit::bigint, :running_runs_limit::bigint,
    :starts_per_second_limit::double precision, :stored_bytes_limit::bigint, :sessions_limit::bigint,
    :schedules_limit::bigint, :retention::text::json
)
ON CONFLICT (namespace) DO UPDATE
SET enabled = excluded.enabled, open_runs_limit = excluded.open_runs_limit,
    running_runs_limit = excluded.running_runs_limit, starts_per_second_limit = excluded.starts_per_second_limit,
    stored_bytes_limit = excluded.stored_bytes_limit, sessions_limit = excluded.sessions_limit,
    schedules_limit = excluded.schedules_limit, retention = excluded.retention
WHERE NOT :only_insert::bool AND namespaces.deleting_at IS NULL
RETURNING 1;

-- name: count_enabled_schedules
-- Counting stops at the cap.
SELECT count(*) AS schedules FROM (
    SELECT 1 FROM schedules WHERE namespace = :namespace::text AND enabled LIMIT :cap::bigint
) AS counted;

-- name: namespace_to_purge
-- One namespace that is being deleted.
SELECT namespace FROM namespaces WHERE {being_purged} ORDER BY deleting_at, namespace LIMIT 1;

-- name: claim_measurement
-- A namespace that limits its storage and has not been measured for a while.
UPDATE namespaces SET measured_until = :measured_until::bigint
WHERE namespace = (
    SELECT namespace FROM namespaces WHERE stored_bytes_limit IS NOT NULL AND measured_until <= :now::bigint
    ORDER BY measured_until LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING namespace;

-- name: measure_runs
-- What some runs store, oldest first.
WITH oldest AS MATERIALIZED (
    SELECT run_id, created_at FROM runs /* INDEXED BY runs_by_created */
    WHERE namespace = :namespace::text AND created_at >= 0
        AND (created_at, run_id) > (:after_at::bigint, :after_run_id::uuid)
    ORDER BY created_at, run_id LIMIT :limit::bigint
)
SELECT oldest.run_id::text AS run_id, oldest.created_at, {bytes_of_run} AS bytes FROM oldest
ORDER BY oldest.created_at, oldest.run_id;

-- name: note_stored_bytes
-- The measured size, and when it was measured.
UPDATE namespaces SET stored_bytes = :stored_bytes::bigint, stored_bytes_at = :now::bigint
WHERE namespace = :namespace::text;

-- name: any_run_of_namespace
-- Whether a namespace has runs.
SELECT 1 FROM runs /* INDEXED BY runs_by_created */ WHERE namespace = :namespace::text AND created_at >= 0 LIMIT 1;

-- name: lock_session_limit
-- If the namespace limits its workers, or is being deleted.
SELECT sessions_limit, deleting_at FROM namespaces
WHERE namespace = :namespace::text AND (sessions_limit IS NOT NULL OR deleting_at IS NOT NULL) FOR UPDATE;

-- name: count_sessions
-- Other workers that are connected and sent a heartbeat recently. Counting stops at the limit.
SELECT count(*) AS sessions FROM (
    SELECT 1 FROM workers
    WHERE namespace = :namespace::text AND status <> {WORKER.OFFLINE} AND worker_id <> :worker_id::text
        AND last_heartbeat_at >= :alive_since::bigint LIMIT :limit::bigint
) AS counted;

-- name: remove_namespace
-- The last row: its name is free again.
DELETE FROM namespaces WHERE namespace = :namespace::text AND {being_purged};
