-- name: server_settings
-- What the server is and how durable it is set to be, before any setting of ours.
SELECT current_setting('server_version_num')::int AS version, current_setting('fsync') AS fsync,
    coalesce(
        (SELECT s.reset_val FROM pg_settings AS s WHERE s.name = 'synchronous_commit'),
        current_setting('synchronous_commit')
    ) AS synchronous_commit;

-- name: applied_migrations
-- What was applied, with checksums, so that an edited migration is noticed.
SELECT version, name, checksum FROM schema_migrations ORDER BY version;

-- name: schema_table
-- Whether anything was ever applied: asked before the table is read.
SELECT to_regclass('schema_migrations') IS NOT NULL AS exists;

-- name: create_schema_table
-- The record of what was applied, for the first time.
CREATE TABLE IF NOT EXISTS schema_migrations (
    version integer PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- name: lock_schema
-- One migrator at a time; the others wait here and then find nothing to do. The number is "kagzi" in messages' places.
SELECT pg_advisory_xact_lock(11010726);

-- name: note_migration
-- In the transaction that applied it.
INSERT INTO schema_migrations (version, name, checksum) VALUES (:version::int, :name::text, :checksum::text);

-- name: notify
-- Wake the other servers: names only.
SELECT pg_notify(:channel::text, :payload::text);
