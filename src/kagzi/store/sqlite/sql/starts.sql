-- name: run_of_request
-- A repeated start returns the run that it created, in any status.
SELECT run_id, workflow_id, workflow_type, status FROM runs WHERE namespace = ? AND request_id = ?;

-- name: active_run
-- The open run with the workflow_id.
SELECT run_id, workflow_id, workflow_type, status FROM runs WHERE namespace = ? AND workflow_id = ? AND finished_at IS NULL;

-- name: last_completed_run
-- For on_conflict = existing_or_completed.
SELECT run_id, workflow_id, workflow_type, status FROM runs
WHERE namespace = ? AND workflow_id = ? AND workflow_type = ? AND status + 0 = {RUN.COMPLETED}
ORDER BY created_at DESC, run_id DESC LIMIT 1;

-- name: run_with_id
-- A run id used twice is a bug, or a start repeated without its request id.
SELECT run_id, workflow_id, workflow_type, status FROM runs WHERE namespace = ? AND run_id = ?;

-- name: count_open_runs
-- Counting stops at the limit.
SELECT count(*) FROM (SELECT 1 FROM runs INDEXED BY runs_active WHERE namespace = ? AND finished_at IS NULL LIMIT ?);

-- name: count_running_runs
-- Counting stops at the limit.
SELECT count(*) FROM (SELECT 1 FROM runs INDEXED BY runs_by_status WHERE namespace = ? AND status = {RUN.RUNNING} LIMIT ?);

-- name: watch_blocker
-- If this run is open, a new one waits for it.
UPDATE runs SET watched = 1, seq = seq + 1 WHERE run_id = ? AND namespace = ? AND finished_at IS NULL;

-- name: end_run
-- End a run without its worker (terminate, deadline, cancel). The worker records nothing more, and is told how the run
-- ended.
UPDATE runs SET status = :status, error = :error, finished_at = :now, seq = seq + 1, worker_id = NULL,
                lease_until = NULL, queued_us = queued_us + coalesce(max(:now - ready_at, 0), 0), ready_at = NULL, due_at = NULL,
                wait_reason = NULL, pause_requested = 0,
                blocked_by = NULL, awaits_signal = 0, retrying_steps = 0
WHERE run_id = :run_id AND finished_at IS NULL;
