-- name: barrier
-- A commit that waits for the synchronous standbys although no row changes: it needs a transaction id and a WAL record,
-- and this has both. Nobody reads the message itself.
SELECT pg_logical_emit_message(true, 'kagzi', '');

-- name: commit_settings
-- How this session commits, and which standbys commits wait for.
SELECT current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('synchronous_standby_names') AS standby_names;
