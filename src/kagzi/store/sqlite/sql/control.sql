-- name: run_to_change
-- What cancel, pause, resume and terminate depend on.
SELECT run_id, namespace, workflow_type, status, lease, nonce, worker_id, has_children, pause_requested, cancel_requested_at
FROM runs WHERE run_id = ?;

-- name: pause_run
-- Who waits is PAUSED; a start that was to come later still is. Who is held is asked.
UPDATE runs SET status = CASE WHEN status = {RUN.RUNNING} THEN {RUN.RUNNING} ELSE {RUN.PAUSED} END, pause_requested = (status = {RUN.RUNNING}), pause_reason = :reason,
                paused_due_at = iif(lease = 0, due_at, NULL), ready_at = NULL, due_at = NULL, wait_reason = NULL
WHERE run_id = :run_id AND status IN ({RUN.PENDING}, {RUN.RUNNING}, {RUN.SLEEPING});

-- name: resume_run
-- PENDING, with a clean sheet; but who was to begin later, or after another run, goes on waiting for that.
UPDATE runs SET status = iif(paused_due_at > :now OR blocked_by IS NOT NULL, {RUN.SLEEPING}, {RUN.PENDING}),
                ready_at = iif(paused_due_at > :now OR blocked_by IS NOT NULL, NULL, :now),
                wait_reason = CASE WHEN blocked_by IS NOT NULL THEN {WAIT.CHILD} WHEN paused_due_at > :now THEN {WAIT.TIME} END,
                due_at = iif(blocked_by IS NULL AND paused_due_at > :now, paused_due_at, NULL), paused_due_at = NULL,
                nonce = 0, problem = NULL, tried_builds = NULL, lost_leases = 0, pause_requested = 0, pause_reason = NULL
WHERE run_id = :run_id AND status + 0 = {RUN.PAUSED}
RETURNING status;

-- name: take_back_pause
-- Nobody is to be paused after all.
UPDATE runs SET pause_requested = 0, pause_reason = NULL WHERE run_id = ? AND status + 0 = {RUN.RUNNING};

-- name: resume_diverged
-- Paused because other code did not fit, or could not read a signal, and not tried by this build. JSON rows of (type, version).
UPDATE runs SET status = {RUN.PENDING}, ready_at = :now, nonce = 0, wait_reason = NULL, due_at = NULL, problem = NULL, lost_leases = 0
WHERE run_id IN (
    SELECT r.run_id FROM runs AS r INDEXED BY runs_by_status
    WHERE r.namespace = :namespace AND r.status = {RUN.PAUSED} AND r.tried_builds IS NOT NULL
      AND (json_extract(r.problem, '$.kind') = 'nondeterminism' OR json_extract(r.problem, '$.subject') = 'signal')
      AND NOT EXISTS (SELECT 1 FROM json_each(r.tried_builds) AS tried WHERE tried.value = :build_id)
      AND EXISTS (SELECT 1 FROM json_each(:served) AS served WHERE json_extract(served.value, '$[0]') = r.workflow_type
                  AND (r.version IS NULL OR json_extract(served.value, '$[1]') = r.version)))
RETURNING workflow_type;
