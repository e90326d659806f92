-- name: cancel_run
-- The first request counts; what slept or was paused is woken, so that a worker can clean up; what was never claimed has
-- nothing to clean up. Its seq says so to whoever has read it and is about to write.
UPDATE runs
SET cancel_requested_at = coalesce(cancel_requested_at, :now::bigint), cancel_by = coalesce(cancel_by, :cancel_by::bigint),
    cancel_reason = coalesce(cancel_reason, :reason::text), status = :status::smallint, error = coalesce(:error::text::json, error),
    finished_at = CASE WHEN :status = {RUN.CANCELLED} THEN :now END, nonce = CASE WHEN status IN ({RUN.SLEEPING}, {RUN.PAUSED}) AND :status = {RUN.PENDING} THEN 0 ELSE nonce END,
    ready_at = CASE WHEN :status = {RUN.PENDING} THEN coalesce(ready_at, :now) END,
    problem = CASE WHEN :status = {RUN.PENDING} THEN NULL ELSE problem END, diverged = false, pause_requested = false,
    pause_reason = NULL, cascade_due = cascade_due OR has_children, due_at = NULL, wait_reason = NULL, blocked_by = NULL, seq = seq + 1
WHERE run_id = :run_id::uuid
RETURNING cancel_reason;

-- name: pause_run
-- Whoever holds it is asked; otherwise it is PAUSED at once. A start that was to come later still is.
UPDATE runs
SET pause_requested = status = {RUN.RUNNING}, pause_reason = :reason::text, seq = seq + 1,
    paused_due_at = CASE WHEN lease = 0 THEN due_at END,
    status = CASE WHEN status = {RUN.RUNNING} THEN {RUN.RUNNING} ELSE {RUN.PAUSED} END, ready_at = NULL, due_at = NULL, wait_reason = NULL
WHERE run_id = :run_id::uuid
RETURNING status;

-- name: resume_run
-- PENDING, with nothing held against it, unless it was to begin later, or after another run; or the request to pause is
-- taken back.
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

-- name: resume_diverged
-- Paused because other code did not fit, and not yet tried by this build.
WITH fitting AS MATERIALIZED (
    SELECT r.run_id FROM runs AS r
    JOIN unnest(:workflow_types::text[], :versions::text[]) AS served (workflow_type, version)
        ON served.workflow_type = r.workflow_type AND served.version = r.version
    WHERE r.diverged AND r.namespace = :namespace::text AND NOT (coalesce(r.tried_builds, '{}') @> ARRAY[:build_id::text])
    ORDER BY r.run_id FOR UPDATE OF r
)
UPDATE runs AS r
SET status = {RUN.PENDING}, ready_at = :now::bigint, problem = NULL, diverged = false, lost_leases = 0, nonce = 0, seq = r.seq + 1
FROM fitting WHERE r.run_id = fitting.run_id
RETURNING r.namespace, r.workflow_type;

-- name: lock_cascading
-- Parents some of whose children may have to be cancelled.
SELECT run_id::text AS run_id FROM runs WHERE cascade_due ORDER BY run_id LIMIT :limit::bigint FOR UPDATE SKIP LOCKED;

-- name: children_to_cancel
-- Open children that go with their parent: it has ended, or was to be cancelled after they were started, or no step has them any
-- more, because a race was decided against it or a retry forgot it.
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
-- Those that nobody else holds.
SELECT run_id::text AS run_id, namespace, workflow_type, status, lease, nonce, worker_id, has_children,
    parent_run_id::text AS parent_run_id
FROM runs WHERE run_id = ANY (:run_ids::uuid[]) ORDER BY run_id FOR UPDATE SKIP LOCKED;

-- name: end_cascade
-- Nothing is left to be cancelled.
UPDATE runs SET cascade_due = false WHERE run_id = ANY (:run_ids::uuid[]);
