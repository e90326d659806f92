-- name: source_run
-- What a retry or a fork starts from.
SELECT namespace, workflow_id, workflow_type, retry_request_id, status, seq, error, finished_at FROM runs WHERE run_id = ?;

-- name: source_step
-- What a step is, and when it began and ended.
SELECT kind, status, begun_seq, seq FROM steps WHERE run_id = ? AND step_id = ?;

-- name: step_of_error
-- The step that an error names, or that waited for the child that it names.
SELECT step_id FROM steps WHERE run_id = :run_id AND kind < {KIND.FIRST_PAYLOAD} AND (step_id = :subject_id OR child_run_id = :subject_id)
ORDER BY step_id <> :subject_id, seq DESC LIMIT 1;

-- name: restart_steps
-- They stay begun without a child: the next start under their id makes another one. A failed child counts as an
-- attempt.
UPDATE steps SET status = {STEP.RUNNING}, child_run_id = NULL, attempt = iif(status = {STEP.FAILED}, attempt + 1, attempt), seq = 0, lease = 0, nonce = 0, output = NULL, output_meta = NULL,
                 error = NULL, finished_at = NULL
WHERE run_id = :run_id AND step_id IN (SELECT value FROM json_each(:step_ids));

-- name: steps_to_undo
-- Results after a position, steps begun after it, and the step itself.
SELECT step_id, kind, child_run_id, begun_seq, status FROM steps
WHERE run_id = :run_id AND kind < {KIND.FIRST_PAYLOAD}
  AND (step_id = :step_id OR seq > :after OR (status IN ({STEP.PENDING}, {STEP.RUNNING}) AND begun_seq > :after));

-- name: lost_children
-- Steps that wait for a child that was cancelled with this run, or is about to be, or was deleted: they start another
-- one.
SELECT s.step_id, s.child_run_id FROM steps AS s INDEXED BY steps_waiting LEFT JOIN runs AS c
    ON c.run_id = s.child_run_id AND c.namespace = :namespace
WHERE s.run_id = :run_id AND s.status = {STEP.RUNNING} AND s.kind IN ({KIND.SIGNAL}, {KIND.CHILD}) AND s.kind = {KIND.CHILD} AND s.child_run_id IS NOT NULL
  AND (c.run_id IS NULL OR c.status = {RUN.CANCELLED} OR (c.finished_at IS NULL AND c.cancel_requested_at IS NOT NULL));

-- name: ended_children
-- Steps that wait for a child that ended without notifying them.
SELECT s.child_run_id, s.step_id FROM steps AS s INDEXED BY steps_waiting CROSS JOIN runs AS c
    ON c.run_id = s.child_run_id AND c.namespace = :namespace
WHERE s.run_id = :run_id AND s.status = {STEP.RUNNING} AND s.kind IN ({KIND.SIGNAL}, {KIND.CHILD}) AND s.kind = {KIND.CHILD} AND c.status IN ({RUN.ENDED}) AND c.continued_as IS NULL;

-- name: keep_failures
-- Failures stay in the history, as earlier attempts.
INSERT INTO step_attempts (run_id, step_id, attempt, begun_seq, seq, lease, nonce, started_at, finished_at, error, retry_at, worker_id,
                           input, input_meta)
SELECT run_id, step_id, attempt, begun_seq, seq, lease, nonce, started_at, finished_at, error, :now, worker_id,
       iif(kind = {KIND.FUNCTION}, input, NULL), iif(kind = {KIND.FUNCTION}, input_meta, NULL) FROM steps
WHERE run_id = :run_id AND step_id IN (SELECT value FROM json_each(:step_ids)) AND status = {STEP.FAILED}
ON CONFLICT DO NOTHING;

-- name: keep_forgotten_steps
-- What is discarded is kept for people, the newest steps that fit, but not again if a step has not begun since the last
-- retry.
INSERT INTO forgotten_steps (run_id, retry_seq, retried_at, step_id, name, kind, status, attempt, begun_seq, seq, claim, bytes, retry,
                             timeout_ms, created_at, started_at, finished_at, wake_at, child_run_id, parent_step_id,
                             parallel_group_id, worker_id, error, input, input_meta, output, output_meta, details, details_meta)
SELECT s.run_id, :retry_seq, :now, s.step_id, s.name, s.kind, iif(s.status < {STEP.COMPLETED}, {STEP.ABANDONED}, s.status), s.attempt, s.begun_seq, s.seq, s.lease,
       newest.bytes, s.retry, s.timeout_ms, s.created_at, s.started_at, iif(s.status < {STEP.COMPLETED}, :finished_at, s.finished_at), s.wake_at,
       s.child_run_id, nullif(s.parent_step_id, ''), nullif(s.parallel_group_id, ''), s.worker_id, s.error, s.input, s.input_meta,
       s.output, s.output_meta, s.details, s.details_meta
FROM (SELECT step_id, bytes, row_number() OVER w AS place, sum(bytes) OVER w AS total FROM (
          SELECT s.step_id, s.begun_seq, coalesce(length(s.input), 0) + coalesce(length(s.output), 0)
                 + coalesce(length(s.details), 0) + coalesce(length(CAST(s.error AS BLOB)), 0) AS bytes
          FROM steps AS s WHERE s.run_id = :run_id AND s.step_id IN (SELECT value FROM json_each(:step_ids))
            AND (s.status >= {STEP.COMPLETED} OR {begun_since}))
      WINDOW w AS (ORDER BY begun_seq DESC, step_id)) AS newest
CROSS JOIN steps AS s ON s.run_id = :run_id AND s.step_id = newest.step_id
WHERE newest.place <= :most_steps AND newest.total <= :most_bytes;

-- name: forget_steps
-- They begin again as if for the first time.
DELETE FROM steps WHERE run_id = :run_id AND step_id IN (SELECT value FROM json_each(:step_ids));

-- name: reopen_steps
-- They were begun before results that are kept, and stay begun; their results are delivered again. A step that may run
-- only once waits for its next begin, since an open begin would count as lost.
UPDATE steps SET status = iif(once, {STEP.PENDING}, {STEP.RUNNING}), retry_at = iif(once, :now, NULL), attempt = 1, seq = 0, lease = 0, nonce = 0, output = NULL,
                 output_meta = NULL, error = NULL, finished_at = NULL
WHERE run_id = :run_id AND step_id IN (SELECT value FROM json_each(:step_ids));

-- name: open_waits
-- Steps that wait for signals, oldest first.
SELECT step_id, name FROM steps INDEXED BY steps_waiting
WHERE run_id = ? AND status = {STEP.RUNNING} AND kind IN ({KIND.SIGNAL}, {KIND.CHILD}) AND kind = {KIND.SIGNAL} ORDER BY begun_seq;

-- name: open_children
-- Steps that wait for a child.
SELECT step_id, child_run_id FROM steps INDEXED BY steps_waiting
WHERE run_id = ? AND status = {STEP.RUNNING} AND kind IN ({KIND.SIGNAL}, {KIND.CHILD}) AND kind = {KIND.CHILD} AND child_run_id IS NOT NULL;

-- name: unbind_signals
-- Signals of deleted waits are buffered again, in their old order.
UPDATE signals SET step_id = NULL WHERE run_id = :run_id AND step_id IN (SELECT value FROM json_each(:step_ids));

-- name: disown_children
-- The step may start another child: a repeated start must not find this one.
UPDATE runs SET request_id = NULL, watched = 0 WHERE run_id IN (SELECT value FROM json_each(:children))
  AND +namespace = :namespace AND parent_run_id = :run_id;

-- name: reopen_run
-- The only transition out of FAILED. A deadline that has passed is dropped.
UPDATE runs SET status = {RUN.PENDING}, ready_at = :now, finished_at = NULL, error = NULL, problem = NULL, seq = seq + 1, nonce = 0,
                lost_leases = 0, pause_requested = 0, retry_request_id = :request_id,
                cancel_requested_at = NULL, cancel_by = NULL, cancel_reason = NULL, cancel_lease = NULL, cascade_due = 0,
                deadline_at = iif(deadline_at <= :now, NULL, deadline_at)
WHERE run_id = :run_id AND status + 0 = {RUN.FAILED};

-- name: first_begun
-- When a step was first begun, according to its attempts.
SELECT min(s.begun_seq, coalesce((SELECT min(a.begun_seq) FROM step_attempts AS a
                                              WHERE a.run_id = s.run_id AND a.step_id = s.step_id AND a.retry_at <> 0),
                                 s.begun_seq))
FROM steps AS s WHERE s.run_id = ? AND s.step_id = ? AND s.kind < {KIND.FIRST_PAYLOAD};

-- name: fork_steps
-- Steps begun before this one: with the result if there was one by then, else open. Children are referenced. Without a
-- lease, so that they match no repeated command.
INSERT INTO steps (run_id, step_id, name, kind, status, attempt, begun_seq, seq, retry, timeout_ms, input, input_meta, output, output_meta,
                   error, retry_at, wake_at, child_run_id, details, details_meta, parent_step_id, parallel_group_id, once, created_at,
                   started_at, finished_at, worker_id)
SELECT :new_run_id, step_id, name, kind, iif(kept, status, iif(once, {STEP.PENDING}, {STEP.RUNNING})), iif(kept, attempt, 1), begun_seq, iif(kept, seq, 0), retry,
       timeout_ms, input, input_meta, iif(kept, output, NULL), iif(kept, output_meta, NULL), iif(kept, error, NULL),
       iif(kept OR NOT once, NULL, :now), wake_at, child_run_id, details, details_meta, parent_step_id, parallel_group_id, once,
       created_at, started_at, iif(kept, finished_at, NULL), worker_id
FROM (SELECT *, status IN ({STEP.COMPLETED}, {STEP.FAILED}, {STEP.ABANDONED}) AND seq > 0 AND seq < :before AS kept FROM steps
      WHERE run_id = :run_id AND kind < {KIND.FIRST_PAYLOAD} AND begun_seq < :before AND step_id <> :from_step);

-- name: fork_attempts
-- The attempts that led to the results. Lost attempts (retry_at 0) do not count.
INSERT INTO step_attempts (run_id, step_id, attempt, begun_seq, seq, lease, nonce, started_at, finished_at, error, retry_at, worker_id,
                           input, input_meta)
SELECT a.run_to, a.step_id, a.attempt, a.begun_seq, a.seq, 0, 0, a.started_at, a.finished_at, a.error, a.retry_at, a.worker_id,
       a.input, a.input_meta
FROM (SELECT :new_run_id AS run_to, step_attempts.* FROM step_attempts WHERE run_id = :run_id AND retry_at <> 0) AS a
WHERE EXISTS (SELECT 1 FROM steps AS s WHERE s.run_id = :new_run_id AND s.step_id = a.step_id AND s.status IN ({STEP.COMPLETED}, {STEP.FAILED}, {STEP.ABANDONED}));

-- name: replace_output
-- Replaces a result in the fork.
UPDATE steps SET status = {STEP.COMPLETED}, output = :output, output_meta = :output_meta, error = NULL
WHERE run_id = :run_id AND step_id = :step_id AND status IN ({STEP.COMPLETED}, {STEP.FAILED});

-- name: mark_fork
-- The source of its history; its own seqs follow.
UPDATE runs SET forked_from = ?, seq = ? WHERE run_id = ?;
