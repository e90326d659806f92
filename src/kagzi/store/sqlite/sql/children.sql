-- name: adopt_run
-- A run just created is a child: its end notifies the step that started it.
UPDATE runs SET parent_run_id = ?, parent_step_id = ?, on_close = ?, watched = 1 WHERE run_id = ?;

-- name: find_relatives
-- What a child start refers to: the run with its request id, and its parent; and the run with its workflow id.
SELECT q.run_id, q.workflow_type, q.status, q.parent_run_id, q.parent_step_id, o.run_id, o.workflow_type, o.status
FROM (SELECT :namespace AS namespace) AS n
LEFT JOIN runs AS q ON q.namespace = n.namespace AND q.request_id = :request_id
LEFT JOIN runs AS o ON o.namespace = n.namespace AND o.workflow_id = :workflow_id AND o.finished_at IS NULL;

-- name: link_child
-- A step waits for the end of a run it did not start.
INSERT INTO child_links (namespace, child_run_id, parent_run_id, parent_step_id) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: watch_run
-- A step or run waits for its end.
UPDATE runs SET watched = 1 WHERE run_id = ? AND namespace = ?;

-- name: ended_run
-- A run that has just ended, and what depends on it.
SELECT namespace, status, error, watched, has_children, parent_run_id, parent_step_id FROM runs WHERE run_id = ?;

-- name: ended_child
-- How a run ended that another one of its namespace waits for.
SELECT status, error, workflow_type, workflow_id FROM runs WHERE run_id = ? AND namespace = ?;

-- name: links_of
-- Steps that wait for a run they did not start.
SELECT parent_run_id, parent_step_id FROM child_links WHERE namespace = ? AND child_run_id = ?
ORDER BY parent_run_id, parent_step_id;

-- name: unlink
-- They have been notified.
DELETE FROM child_links WHERE namespace = ? AND child_run_id = ?;

-- name: unblock_runs
-- Runs that were to begin after this one: a sleeping one is PENDING; a paused one will be when it is resumed.
UPDATE runs SET blocked_by = NULL, due_at = NULL, wait_reason = NULL, ready_at = iif(status = {RUN.SLEEPING}, :now, ready_at),
                status = iif(status = {RUN.SLEEPING}, {RUN.PENDING}, status)
WHERE blocked_by = :run_id AND +namespace = :namespace AND finished_at IS NULL
RETURNING run_id, namespace, workflow_type, status, lease, nonce, worker_id;

-- name: waiting_parent
-- A step that still waits for this child, and the run it belongs to, unless that has ended.
SELECT r.run_id, r.namespace, r.workflow_type, r.status, r.lease, r.nonce, r.worker_id FROM steps AS s CROSS JOIN runs AS r ON r.run_id = s.run_id
WHERE s.run_id = ? AND r.namespace = ? AND s.step_id = ? AND s.kind = {KIND.CHILD} AND s.status = {STEP.RUNNING} AND s.child_run_id = ?
  AND r.finished_at IS NULL;

-- name: give_child_result
-- A copy of the child's output, or how it failed.
UPDATE steps SET status = iif(:error IS NULL, {STEP.COMPLETED}, {STEP.FAILED}), seq = :seq, error = :error, finished_at = :now,
                 (output, output_meta) = (SELECT o.output, o.output_meta FROM runs AS c CROSS JOIN steps AS o ON o.run_id = c.run_id
                                          WHERE c.run_id = :child_run_id AND c.namespace = :namespace
                                            AND o.step_id = '$output' AND :error IS NULL)
WHERE run_id = :run_id AND step_id = :step_id AND status = {STEP.RUNNING};

-- name: cascade_due
-- Its children may have to be cancelled. The mark is indexed, so that it is found again after a crash.
UPDATE runs SET cascade_due = 1 WHERE run_id = ?;

-- name: cascade_done
-- No child is left to cancel.
UPDATE runs SET cascade_due = 0 WHERE run_id = ?;

-- name: cascades
-- Runs with children that may have to be cancelled.
SELECT run_id, namespace, finished_at IS NOT NULL, cancel_requested_at IS NOT NULL FROM runs INDEXED BY runs_cascade
WHERE cascade_due = 1 ORDER BY run_id LIMIT ?;

-- name: children_to_cancel
-- Open children to cancel with their parent; if that continues, only those whose step was abandoned or deleted.
SELECT c.run_id FROM runs AS c INDEXED BY runs_by_parent
WHERE c.namespace = :namespace AND c.parent_run_id = :run_id AND c.finished_at IS NULL AND c.cancel_requested_at IS NULL
  AND c.on_close = {ON_CLOSE.CANCEL} AND (:all OR NOT EXISTS (SELECT 1 FROM steps AS s WHERE s.run_id = :run_id AND s.step_id = c.parent_step_id
                                             AND s.child_run_id = c.run_id AND s.status <> {STEP.ABANDONED}))
ORDER BY c.created_at, c.run_id LIMIT :limit;
