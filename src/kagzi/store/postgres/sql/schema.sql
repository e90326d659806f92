-- name: server_settings
-- The version of the server and its durability settings, before we change any.
SELECT current_setting('server_version_num')::int AS version, current_setting('fsync') AS fsync,
    coalesce(
        (SELECT s.reset_val FROM pg_settings AS s WHERE s.name = 'synchronous_commit'),
        current_setting('synchronous_commit')
    ) AS synchronous_commit;

-- name: applied_migrations
-- Applied migrations with checksums, so that an edited one is detected.
SELECT version, name, checksum FROM schema_migrations ORDER BY version;

-- name: schema_table
-- Whether the table exists, before it is read.
SELECT to_regclass('schema_migrations') IS NOT NULL AS exists;

-- name: create_schema_table
-- The table of applied migrations, when it is first needed.
CREATE TABLE IF NOT EXISTS schema_migrations (
    version integer PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- name: lock_schema
-- One migrator at a time; the others wait here and then find nothing to do. The number spells "kagzi".
SELECT pg_advisory_xact_lock(11010726);

-- name: note_migration
-- In the transaction that applied it.
INSERT INTO schema_migrations (version, name, checksum) VALUES (:version::int, :name::text, :checksum::text);

-- name: notify
-- Wakes the other servers; the message contains names only.
SELECT pg_notify(:channel::text, :payload::text);
