-- name: part_mark_columns
-- The position and status of a run.
run_id, namespace, seq, status, created_at, finished_at, status_text, progress, pause_requested, pause_reason,
cancel_requested_at IS NOT NULL,
(SELECT s.finished_at FROM steps AS s WHERE s.run_id = runs.run_id AND s.step_id = '$state')

-- name: mark_of
-- One run.
SELECT {mark_columns} FROM runs WHERE run_id = ? AND namespace = ?;

-- name: markers_of
-- Watched runs.
SELECT {mark_columns} FROM runs WHERE run_id IN (SELECT value FROM json_each(?));

-- name: numbers_after
-- One seq, one event: begins (1) and results (2) of steps after a seq, and those (3, 4) of failed attempts.
SELECT begun_seq AS number, {SOURCE.BEGUN} AS source, step_id, 0 AS begun FROM steps INDEXED BY steps_begun
WHERE run_id = :run_id AND begun_seq > :after AND kind < {KIND.FIRST_PAYLOAD} AND seq <> begun_seq
UNION ALL
SELECT seq, {SOURCE.RESULT}, step_id, 0 FROM steps WHERE run_id = :run_id AND seq > :after AND kind < {KIND.FIRST_PAYLOAD} AND status IN ({STEP.COMPLETED}, {STEP.FAILED})
UNION ALL
SELECT begun_seq, {SOURCE.ATTEMPT_BEGUN}, step_id, begun_seq FROM step_attempts WHERE run_id = :run_id AND begun_seq > :after
UNION ALL
SELECT seq, {SOURCE.ATTEMPT_FAILED}, step_id, begun_seq FROM step_attempts WHERE run_id = :run_id AND seq > :after
ORDER BY number, source DESC LIMIT :limit;

-- name: event_of_step
-- The content of an event from a step's row.
SELECT name, kind, status, attempt, started_at, finished_at, wake_at, child_run_id, output, output_meta, error FROM steps
WHERE run_id = ? AND step_id = ?;

-- name: event_of_attempt
-- The content of an event from a failed attempt.
SELECT attempt, started_at, finished_at, retry_at, error FROM step_attempts WHERE run_id = ? AND step_id = ? AND begun_seq = ?;

-- name: first_wake_of
-- The note of the first wake of a step: until when it was to wait.
SELECT error FROM step_attempts WHERE run_id = ? AND step_id = ? AND json_extract(error, '$.subject_id') = ? ORDER BY begun_seq LIMIT 1;
