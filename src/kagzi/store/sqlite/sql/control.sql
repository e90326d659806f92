-- name: run_to_change
-- What cancel, pause, resume, adopt and terminate depend on.
SELECT run_id, namespace, workflow_type, status, lease, nonce, worker_id, has_children, pause_requested, cancel_requested_at, pinned_build
FROM runs WHERE run_id = ?;

-- name: pause_run
-- A waiting run is PAUSED; a delayed start stays delayed. A run that a worker holds gets a request.
UPDATE runs SET status = CASE WHEN status = {RUN.RUNNING} THEN {RUN.RUNNING} ELSE {RUN.PAUSED} END, pause_requested = (status = {RUN.RUNNING}), pause_reason = :reason,
                paused_due_at = iif(lease = 0, due_at, NULL), queued_us = queued_us + coalesce(max(:now - ready_at, 0), 0), ready_at = NULL, due_at = NULL, wait_reason = NULL
WHERE run_id = :run_id AND status IN ({RUN.PENDING}, {RUN.RUNNING}, {RUN.SLEEPING});

-- name: resume_run
-- PENDING, with its problem cleared; a run that was to begin later or after another run keeps waiting for that.
UPDATE runs SET status = iif(paused_due_at > :now OR blocked_by IS NOT NULL, {RUN.SLEEPING}, {RUN.PENDING}),
                ready_at = iif(paused_due_at > :now OR blocked_by IS NOT NULL, NULL, :now),
                wait_reason = CASE WHEN blocked_by IS NOT NULL THEN {WAIT.CHILD} WHEN paused_due_at > :now THEN {WAIT.TIME} END,
                due_at = iif(blocked_by IS NULL AND paused_due_at > :now, paused_due_at, NULL), paused_due_at = NULL,
                nonce = 0, problem = NULL, tried_builds = NULL, lost_leases = 0, pause_requested = 0, pause_reason = NULL
WHERE run_id = :run_id AND status + 0 = {RUN.PAUSED}
RETURNING status;

-- name: note_pause
-- Records in the history, with a seq of its own, that the run was paused or resumed. Its lease is nobody's, so that it
-- never matches a worker's repeated command.
INSERT INTO step_attempts (run_id, step_id, attempt, begun_seq, seq, lease, nonce, finished_at, error, retry_at)
VALUES (:run_id, :what, :seq, :seq, :seq, 0, 0, :now, :note, :now);

-- name: take_back_pause
-- Withdraws a request to pause.
UPDATE runs SET pause_requested = 0, pause_reason = NULL WHERE run_id = ? AND status + 0 = {RUN.RUNNING};

-- name: pin_build
-- From now on only workers of this build may claim it; NULL: any build.
UPDATE runs SET pinned_build = :build_id WHERE run_id = :run_id;

-- name: resume_diverged
-- Paused because of a divergence, or of a signal that could not be read; not tried by this build, nor pinned to another
-- one. JSON rows of (type, version).
UPDATE runs SET status = {RUN.PENDING}, ready_at = :now, nonce = 0, wait_reason = NULL, due_at = NULL, problem = NULL, lost_leases = 0
WHERE run_id IN (
    SELECT r.run_id FROM runs AS r INDEXED BY runs_by_status
    WHERE r.namespace = :namespace AND r.status = {RUN.PAUSED} AND r.tried_builds IS NOT NULL
      AND (json_extract(r.problem, '$.kind') = 'nondeterminism' OR json_extract(r.problem, '$.subject') = 'signal')
      AND NOT EXISTS (SELECT 1 FROM json_each(r.tried_builds) AS tried WHERE tried.value = :build_id)
      AND (r.pinned_build IS NULL OR r.pinned_build = :build_id)
      AND EXISTS (SELECT 1 FROM json_each(:served) AS served WHERE json_extract(served.value, '$[0]') = r.workflow_type
                  AND (r.version IS NULL OR json_extract(served.value, '$[1]') = r.version)))
RETURNING run_id, workflow_type;

-- name: run_to_wake
-- Until when a run, or one of its steps, waits, and what the same request recorded. Notes of wakes share one step id
-- among the attempts: only they are read.
SELECT r.attempt, r.due_at, r.blocked_by,
       NOT EXISTS (SELECT 1 FROM steps AS s INDEXED BY steps_timed
                   WHERE s.run_id = r.run_id AND s.status = {STEP.RUNNING} AND s.wake_at = r.due_at)
       AND NOT EXISTS (SELECT 1 FROM steps AS s INDEXED BY steps_retries
                       WHERE s.run_id = r.run_id AND s.status = {STEP.PENDING} AND s.retry_at = r.due_at),
       (SELECT a.error FROM step_attempts AS a WHERE a.run_id = r.run_id AND a.step_id = :woken
          AND json_extract(a.error, '$.metadata.request_id') = :request_id LIMIT 1)
FROM runs AS r WHERE r.run_id = :run_id;

-- name: step_to_wake
-- One step, by its id.
SELECT step_id, name, kind, status, attempt, wake_at, retry_at, child_run_id FROM steps
WHERE run_id = ? AND step_id = ? AND kind < {KIND.FIRST_PAYLOAD};

-- name: steps_to_wake
-- Pending sleeps and retries, nearest first.
SELECT step_id, name, kind, status, attempt, wake_at, retry_at, child_run_id FROM (
    SELECT * FROM (SELECT *, wake_at AS at FROM steps INDEXED BY steps_timed
                   WHERE run_id = :run_id AND status = {STEP.RUNNING} AND wake_at IS NOT NULL AND kind = {KIND.SLEEP} ORDER BY wake_at LIMIT :limit)
    UNION ALL
    SELECT * FROM (SELECT *, retry_at AS at FROM steps INDEXED BY steps_retries
                   WHERE run_id = :run_id AND status = {STEP.PENDING} ORDER BY retry_at LIMIT :limit))
ORDER BY at LIMIT :limit;

-- name: make_due
-- A sleep, or a step that waits for its next attempt.
UPDATE steps SET wake_at = iif(kind = {KIND.SLEEP}, :now, wake_at), retry_at = iif(status = {STEP.PENDING}, :now, NULL)
WHERE run_id = :run_id AND step_id = :step_id;

-- name: number_wake
-- The next seq, for a record of the wake.
UPDATE runs SET seq = seq + 1 WHERE run_id = ? RETURNING seq;

-- name: note_wake
-- Its lease is nobody's, so that it never matches a worker's repeated command.
INSERT INTO step_attempts (run_id, step_id, attempt, begun_seq, seq, lease, nonce, finished_at, error, retry_at)
VALUES (:run_id, :woken, :attempt, :seq, :seq, 0, 0, :now, :note, :due_at);
