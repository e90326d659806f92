-- name: cancel_run
-- The first request is kept. A run that slept or was paused is woken, so that a worker can clean up; one that was never
-- claimed has nothing to clean up. Incrementing its seq invalidates writes based on an earlier read.
UPDATE runs
SET cancel_requested_at = coalesce(cancel_requested_at, :now::bigint), cancel_by = coalesce(cancel_by, :cancel_by::bigint),
    cancel_reason = coalesce(cancel_reason, :reason::text), status = :status::smallint, error = coalesce(:error::text::json, error),
    finished_at = CASE WHEN :status = {RUN.CANCELLED} THEN :now END,
    queued_us = queued_us + CASE WHEN :status = {RUN.CANCELLED} THEN coalesce(greatest(:now - ready_at, 0), 0) ELSE 0 END, nonce = CASE WHEN status IN ({RUN.SLEEPING}, {RUN.PAUSED}) AND :status = {RUN.PENDING} THEN 0 ELSE nonce END,
    ready_at = CASE WHEN :status = {RUN.PENDING} THEN coalesce(ready_at, :now) END,
    problem = CASE WHEN :status = {RUN.PENDING} THEN NULL ELSE problem END, diverged = false, pause_requested = false,
    pause_reason = NULL, cascade_due = cascade_due OR has_children, due_at = NULL, wait_reason = NULL, blocked_by = NULL, seq = seq + 1,
    awaits_signal = CASE WHEN :status = {RUN.CANCELLED} THEN 0 ELSE awaits_signal END,
    retrying_steps = CASE WHEN :status = {RUN.CANCELLED} THEN 0 ELSE retrying_steps END
WHERE run_id = :run_id::uuid
RETURNING cancel_reason;

-- name: pause_run
-- A run that a worker holds gets a request; any other is PAUSED at once. A delayed start stays delayed.
UPDATE runs
SET pause_requested = status = {RUN.RUNNING}, pause_reason = :reason::text, seq = seq + 1,
    queued_us = queued_us + coalesce(greatest(:now::bigint - ready_at, 0), 0),
    paused_due_at = CASE WHEN lease = 0 THEN due_at END,
    status = CASE WHEN status = {RUN.RUNNING} THEN {RUN.RUNNING} ELSE {RUN.PAUSED} END, ready_at = NULL, due_at = NULL, wait_reason = NULL
WHERE run_id = :run_id::uuid
RETURNING status;

-- name: note_pause
-- Records in the history, with a seq of its own, that the run was paused or resumed. Its lease is nobody's, so that it
-- never matches a worker's repeated command.
WITH r AS (
    UPDATE runs SET seq = seq + 1 WHERE run_id = :run_id::uuid RETURNING run_id, seq
)
INSERT INTO step_attempts (
    run_id, step_id, attempt, begun_seq, seq, lease, nonce, finished_at, retry_at, error, forgotten
)
SELECT r.run_id, :what::text, r.seq, r.seq, r.seq, 0, 0, :now::bigint, :now, :note::text::json, r.seq FROM r;

-- name: resume_run
-- PENDING, with its problem cleared, unless it was to begin later or after another run. Or withdraws the request to
-- pause.
UPDATE runs
SET pause_requested = false, pause_reason = NULL, seq = seq + 1, paused_due_at = NULL,
    problem = CASE WHEN status = {RUN.PAUSED} THEN NULL ELSE problem END, diverged = false,
    lost_leases = CASE WHEN status = {RUN.PAUSED} THEN 0 ELSE lost_leases END, tried_builds = NULL,
    nonce = CASE WHEN status = {RUN.PAUSED} THEN 0 ELSE nonce END,
    status = CASE
        WHEN status = {RUN.RUNNING} THEN {RUN.RUNNING}
        WHEN paused_due_at > :now::bigint OR blocked_by IS NOT NULL THEN {RUN.SLEEPING}
        ELSE {RUN.PENDING}
    END,
    ready_at = CASE WHEN status = {RUN.RUNNING} OR paused_due_at > :now OR blocked_by IS NOT NULL THEN NULL ELSE :now END,
    due_at = CASE WHEN status = {RUN.PAUSED} AND paused_due_at > :now AND blocked_by IS NULL THEN paused_due_at END,
    wait_reason = CASE
        WHEN status <> {RUN.PAUSED} THEN NULL
        WHEN blocked_by IS NOT NULL THEN {WAIT.CHILD}
        WHEN paused_due_at > :now THEN {WAIT.TIME}
    END
WHERE run_id = :run_id::uuid
RETURNING status, seq;

-- name: pinned_build
-- Of a run that is locked.
SELECT pinned_build FROM runs WHERE run_id = :run_id::uuid;

-- name: pin_build
-- From now on only workers of this build may claim it; NULL: any build. Incrementing its seq invalidates writes based
-- on an earlier read.
UPDATE runs SET pinned_build = :build_id::text, seq = seq + 1 WHERE run_id = :run_id::uuid;

-- name: resume_diverged
-- Paused because of a divergence, not yet tried by this build, and not pinned to another one.
WITH fitting AS MATERIALIZED (
    SELECT r.run_id FROM runs AS r
    JOIN unnest(:workflow_types::text[], :versions::text[]) AS served (workflow_type, version)
        ON served.workflow_type = r.workflow_type AND served.version = r.version
    WHERE r.diverged AND r.namespace = :namespace::text AND NOT (coalesce(r.tried_builds, '{}') @> ARRAY[:build_id::text])
        AND (r.pinned_build IS NULL OR r.pinned_build = :build_id)
    ORDER BY r.run_id FOR UPDATE OF r
), resumed AS (
    UPDATE runs AS r
    SET status = {RUN.PENDING}, ready_at = :now::bigint, problem = NULL, diverged = false, lost_leases = 0, nonce = 0, seq = r.seq + 1
    FROM fitting WHERE r.run_id = fitting.run_id
    RETURNING r.run_id, r.namespace, r.workflow_type, r.seq
), noted AS (
    INSERT INTO step_attempts (
        run_id, step_id, attempt, begun_seq, seq, lease, nonce, finished_at, retry_at, error, forgotten
    )
    SELECT run_id, :resumed::text, seq, seq, seq, 0, 0, :now, :now, :note::text::json, seq FROM resumed
)
SELECT namespace, workflow_type FROM resumed;

-- name: lock_cascading
-- Parents with children that may have to be cancelled.
SELECT run_id::text AS run_id FROM runs WHERE cascade_due ORDER BY run_id LIMIT :limit::bigint FOR UPDATE SKIP LOCKED;

-- name: children_to_cancel
-- Open children to cancel with their parent: it has ended, or was cancelled after they were started, or they no longer
-- belong to a step, because they lost a race or a retry deleted the step.
WITH p AS MATERIALIZED (
    SELECT run_id, namespace, finished_at, cancel_requested_at FROM runs WHERE run_id = ANY (:parents::uuid[])
), c AS MATERIALIZED (
    SELECT p.run_id AS parent, p.finished_at IS NOT NULL OR p.cancel_requested_at >= c.created_at AS goes, c.run_id,
        c.parent_step_id
    FROM p CROSS JOIN LATERAL (
        SELECT run_id, parent_step_id, created_at FROM runs
        WHERE parent_run_id = p.run_id AND namespace IS NOT DISTINCT FROM p.namespace AND on_close = {ON_CLOSE.CANCEL} AND finished_at IS NULL AND cancel_requested_at IS NULL OFFSET 0
    ) AS c
)
SELECT c.run_id::text AS run_id FROM c
LEFT JOIN steps AS s ON s.run_id = c.parent AND s.step_id = c.parent_step_id AND s.child_run_id = c.run_id
WHERE c.goes OR s.status = {STEP.ABANDONED} OR s.status IS NULL
ORDER BY c.run_id LIMIT :limit::bigint;

-- name: lock_children
-- Those that no other transaction has locked.
SELECT run_id::text AS run_id, namespace, workflow_type, status, lease, nonce, worker_id, has_children, unread_signals,
    parent_run_id::text AS parent_run_id
FROM runs WHERE run_id = ANY (:run_ids::uuid[]) ORDER BY run_id FOR UPDATE SKIP LOCKED;

-- name: end_cascade
-- No child is left to cancel.
UPDATE runs SET cascade_due = false WHERE run_id = ANY (:run_ids::uuid[]);

-- name: run_to_wake
-- Until when a run, or one of its steps, waits, and what the same request recorded. Notes of wakes share one step id
-- among the attempts: only they are read.
SELECT r.attempt, r.due_at, r.blocked_by::text AS blocked_by,
    NOT EXISTS (SELECT 1 FROM steps AS s WHERE s.run_id = r.run_id AND s.due_at = r.due_at) AS waits_itself,
    (SELECT a.error FROM step_attempts AS a WHERE a.run_id = r.run_id AND a.step_id = :woken::text
        AND a.error -> 'metadata' ->> 'request_id' = :request_id::text LIMIT 1) AS known
FROM runs AS r WHERE r.run_id = :run_id::uuid;

-- name: step_to_wake
-- One step, by its id.
SELECT step_id, name, kind, status, attempt, wake_at, retry_at, child_run_id::text AS child_run_id FROM steps
WHERE run_id = :run_id::uuid AND step_id = :step_id::text AND kind < {KIND.FIRST_PAYLOAD};

-- name: steps_to_wake
-- Pending sleeps and retries, nearest first.
SELECT step_id, name, kind, status, attempt, wake_at, retry_at, child_run_id::text AS child_run_id FROM steps
WHERE run_id = :run_id::uuid AND due_at IS NOT NULL AND due_at < :never::bigint
    AND ((kind = {KIND.SLEEP} AND status = {STEP.RUNNING}) OR (kind = {KIND.FUNCTION} AND status = {STEP.PENDING}))
ORDER BY due_at LIMIT :limit::bigint;

-- name: note_wake
-- Makes the step (if there is one) due now, and records that with a seq of its own. The lease of the note is nobody's,
-- so that it never matches a worker's repeated command. It is `forgotten` at its own seq, so that one attempt can have
-- several.
WITH r AS (
    UPDATE runs SET seq = seq + 1 WHERE run_id = :run_id::uuid RETURNING run_id, seq
), s AS (
    UPDATE steps AS s
    SET due_at = :now::bigint, wake_at = CASE WHEN s.kind = {KIND.SLEEP} THEN :now ELSE s.wake_at END,
        retry_at = CASE WHEN s.status = {STEP.PENDING} THEN :now END
    FROM r WHERE s.run_id = r.run_id AND s.step_id = :step_id::text
)
INSERT INTO step_attempts (
    run_id, step_id, attempt, begun_seq, seq, lease, nonce, finished_at, retry_at, error, forgotten
)
SELECT r.run_id, :woken::text, :attempt::int, r.seq, r.seq, 0, 0, :now, :due_at::bigint, :note::text::json, r.seq FROM r;
