-- name: insert_successor
-- Copies what belongs to the chain of runs, and nothing of the history. A request to pause takes effect at once.
INSERT INTO runs ({run.continued}, watched, unread_signals, run_id, version, status, ready_at, created_at, pause_reason)
SELECT {run.continued}, :watched, unread_signals, :new_run_id, :version, iif(:paused, {RUN.PAUSED}, {RUN.PENDING}), iif(:paused, NULL, :now), :now,
       iif(:paused, pause_reason, NULL)
FROM runs WHERE run_id = :run_id;

-- name: copy_labels
-- For lists by label.
INSERT INTO run_labels (namespace, key, value, created_at, run_id)
SELECT r.namespace, label.key, label.value, :now, r.run_id FROM runs AS r CROSS JOIN json_each(r.labels) AS label
WHERE r.run_id = :run_id AND r.labels IS NOT NULL;

-- name: copy_context
-- Unlike the input, the context is kept.
INSERT INTO steps (run_id, step_id, name, kind, status, begun_seq, output, output_meta, created_at, finished_at)
SELECT :new_run_id, '$context', '$context', {KIND.CONTEXT}, {STEP.COMPLETED}, 0, c.data, c.metadata, :now, :now
FROM ({context_of_run}) AS c;

-- name: copy_state
-- A reader of the chain sees the last state until the new run sets its own.
INSERT INTO steps (run_id, step_id, name, kind, status, begun_seq, output, output_meta, created_at, finished_at)
SELECT :new_run_id, step_id, name, kind, status, 0, output, output_meta, :now, finished_at FROM steps
WHERE run_id = :run_id AND step_id = '$state';

-- name: context_metadata
-- When a context is replaced, the server's own metadata is kept.
SELECT metadata FROM ({context_of_run});

-- name: move_signals
-- Those that no step has received.
UPDATE signals SET run_id = :new_run_id WHERE run_id = :run_id AND step_id IS NULL;

-- name: waiting_steps_of
-- Steps that wait for a run, whether they started it or not.
SELECT parent_run_id, parent_step_id FROM runs WHERE run_id = :run_id AND parent_run_id IS NOT NULL
UNION ALL SELECT parent_run_id, parent_step_id FROM child_links WHERE namespace = :namespace AND child_run_id = :run_id;

-- name: follow_child
-- The step now waits for the successor.
UPDATE steps SET child_run_id = :new_run_id WHERE run_id = :parent_run_id AND step_id = :step_id AND kind = {KIND.CHILD} AND status = {STEP.RUNNING}
  AND child_run_id = :run_id AND EXISTS (SELECT 1 FROM runs AS p WHERE p.run_id = :parent_run_id AND p.namespace = :namespace);

-- name: move_links
-- The same for steps that attached.
UPDATE child_links SET child_run_id = :new_run_id WHERE namespace = :namespace AND child_run_id = :run_id;

-- name: move_blocked
-- The same for runs that begin after it.
UPDATE runs SET blocked_by = :new_run_id WHERE blocked_by = :run_id AND +namespace = :namespace;

-- name: unwatch_run
-- Nothing waits for its end any more.
UPDATE runs SET watched = 0 WHERE run_id = ?;
