-- name: ended_runs
-- Runs to delete, oldest first: the oldest of each status, by the index of ended runs.
SELECT run_id, finished_at FROM (
    SELECT * FROM (SELECT run_id, finished_at FROM runs INDEXED BY runs_finished
                   WHERE namespace = :namespace AND status = {RUN.COMPLETED} AND finished_at BETWEEN :after AND :until ORDER BY finished_at LIMIT :limit)
    WHERE {RUN.COMPLETED} IN (SELECT value FROM json_each(:statuses))
    UNION ALL
    SELECT * FROM (SELECT run_id, finished_at FROM runs INDEXED BY runs_finished
                   WHERE namespace = :namespace AND status = {RUN.FAILED} AND finished_at BETWEEN :after AND :until ORDER BY finished_at LIMIT :limit)
    WHERE {RUN.FAILED} IN (SELECT value FROM json_each(:statuses))
    UNION ALL
    SELECT * FROM (SELECT run_id, finished_at FROM runs INDEXED BY runs_finished
                   WHERE namespace = :namespace AND status = {RUN.CANCELLED} AND finished_at BETWEEN :after AND :until ORDER BY finished_at LIMIT :limit)
    WHERE {RUN.CANCELLED} IN (SELECT value FROM json_each(:statuses)))
ORDER BY finished_at LIMIT :limit;

-- name: runs_to_delete
-- Those that may be deleted now. A run with children still to be cancelled is kept until they are.
SELECT run_id, seq, labels, created_at FROM runs
WHERE run_id IN (SELECT value FROM json_each(:run_ids)) AND +namespace = :namespace AND +finished_at <= :until
  AND +cascade_due = 0;

-- name: delete_links_to
-- Links of steps that waited for runs they did not start.
DELETE FROM child_links WHERE namespace = :namespace AND (child_run_id, parent_run_id) IN (
    SELECT child_run_id, run_id FROM steps WHERE run_id IN (SELECT value FROM json_each(:run_ids)) AND kind = {KIND.CHILD}
      AND child_run_id IS NOT NULL);

-- name: delete_links_from
-- Links of steps that waited for these runs, if any are left.
DELETE FROM child_links WHERE namespace = :namespace AND child_run_id IN (SELECT value FROM json_each(:run_ids));

-- name: delete_labels
-- JSON rows of (key, value, created_at, run_id): the primary key, which is used completely only if all types match.
DELETE FROM run_labels WHERE (namespace, key, value, created_at, run_id) IN (
    SELECT CAST(:namespace AS TEXT), CAST(json_extract(value, '$[0]') AS TEXT), CAST(json_extract(value, '$[1]') AS TEXT),
           CAST(json_extract(value, '$[2]') AS INTEGER), CAST(json_extract(value, '$[3]') AS TEXT) FROM json_each(:labels));

-- name: delete_steps
-- The whole history of short runs.
DELETE FROM steps WHERE run_id IN (SELECT value FROM json_each(:run_ids));

-- name: delete_attempts
-- All attempts of short runs.
DELETE FROM step_attempts WHERE run_id IN (SELECT value FROM json_each(:run_ids));

-- name: delete_signals
-- All signals of short runs.
DELETE FROM signals WHERE run_id IN (SELECT value FROM json_each(:run_ids));

-- name: delete_logs
-- All logs of short runs.
DELETE FROM step_logs WHERE run_id IN (SELECT value FROM json_each(:run_ids));

-- name: delete_forgotten_steps
-- All discarded steps of short runs.
DELETE FROM forgotten_steps WHERE run_id IN (SELECT value FROM json_each(:run_ids));

-- name: delete_runs
-- The runs themselves.
DELETE FROM runs WHERE run_id IN (SELECT value FROM json_each(:run_ids));

-- name: leave_history
-- Long histories are deleted in parts.
INSERT INTO purging (run_id) SELECT value FROM json_each(:run_ids) WHERE true ON CONFLICT DO NOTHING;

-- name: delete_some_attempts
-- See delete_some_steps.
DELETE FROM step_attempts WHERE (run_id, step_id, begun_seq) IN (
    SELECT run_id, step_id, begun_seq FROM step_attempts WHERE run_id = :run_id LIMIT :limit);
