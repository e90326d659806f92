-- name: barrier
-- A commit that waits for the synchronous standbys although no row changes: it needs a transaction id and a record in the
-- log, and this has both. The message itself is for nobody.
SELECT pg_logical_emit_message(true, 'kagzi', '');

-- name: commit_settings
-- How this session commits, and for whom commits wait.
SELECT current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('synchronous_standby_names') AS standby_names;
