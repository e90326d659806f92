-- name: part_step_state
-- A step as commands are decided on it, without payloads.
s.step_id, s.name, s.kind, s.status, s.begun_seq, s.lease, s.nonce, s.created_at, s.attempt, s.seq, s.started_at, s.finished_at,
s.retry_at, s.wake_at, s.retry, s.timeout_ms, s.once, s.worker_id, s.parent_step_id, s.parallel_group_id, s.child_run_id

-- name: run_state
-- A run as commands are decided on it.
SELECT namespace, status, lease, nonce, seq, attempt, ready_at, due_at, wait_reason, deadline_at, finished_at, cancel_requested_at,
       worker_id, retry, watched, has_children, cascade_due, pause_requested, cancel_reason, cancel_lease, continued_as, unread_signals
FROM runs WHERE run_id = ?;

-- name: step_state
-- One step of a run that was read.
SELECT {step_state} FROM steps AS s WHERE s.run_id = ? AND s.step_id = ?;

-- name: step_with_payloads
-- The same, for commands whose response may contain the payloads.
SELECT {step_state}, s.output, s.output_meta, s.error, s.details, s.details_meta FROM steps AS s WHERE s.run_id = ? AND s.step_id = ?;

-- name: failed_attempt
-- A failure that led to a retry, to recognise its repeat.
SELECT begun_seq, seq, started_at, finished_at, retry_at FROM step_attempts
WHERE run_id = ? AND step_id = ? AND attempt = ? AND lease = ? AND nonce = ?;

-- name: count_steps
-- Only used for runs whose seq shows that they may be near the limit.
SELECT count(*) FROM steps WHERE run_id = ? AND begun_seq > 0;

-- name: next_waits
-- Of the named waits, or all: the next one with a time; the next retry; one for a signal, or else a child, without a
-- time. A run with ten thousand waits reads no more of them.
SELECT {step_state} FROM steps AS s WHERE s.run_id = :run_id AND s.rowid IN (
    (SELECT rowid FROM steps INDEXED BY steps_timed WHERE run_id = :run_id AND status = {STEP.RUNNING} AND wake_at IS NOT NULL
       AND (:names IS NULL OR step_id IN (SELECT value FROM json_each(:names))) ORDER BY wake_at, kind LIMIT 1),
    (SELECT rowid FROM steps INDEXED BY steps_retries WHERE run_id = :run_id AND status = {STEP.PENDING}
       AND (:names IS NULL OR step_id IN (SELECT value FROM json_each(:names))) ORDER BY retry_at LIMIT 1),
    (SELECT rowid FROM steps INDEXED BY steps_waiting WHERE run_id = :run_id AND status = {STEP.RUNNING} AND kind IN ({KIND.SIGNAL}, {KIND.CHILD}) AND wake_at IS NULL
       AND (:names IS NULL OR step_id IN (SELECT value FROM json_each(:names))) ORDER BY kind LIMIT 1));

-- name: due_waits
-- Waits with a time that has come.
SELECT {step_state} FROM steps AS s INDEXED BY steps_timed WHERE s.run_id = :run_id AND s.status = {STEP.RUNNING} AND s.wake_at <= :now
  AND (:names IS NULL OR step_id IN (SELECT value FROM json_each(:names)));

-- name: due_retries
-- Retries whose time has come.
SELECT {step_state} FROM steps AS s INDEXED BY steps_retries WHERE s.run_id = :run_id AND s.status = {STEP.PENDING} AND s.retry_at <= :now
  AND (:names IS NULL OR step_id IN (SELECT value FROM json_each(:names)));

-- name: last_result
-- The highest seq of a result, to know whether the worker has seen all.
SELECT coalesce(max(seq), 0) FROM steps WHERE run_id = ? AND kind < {KIND.FIRST_PAYLOAD};

-- name: results_after
-- Results the worker has not seen, in order, without payloads: sorting would read all of them for every page.
SELECT step_id FROM steps WHERE run_id = ? AND kind < {KIND.FIRST_PAYLOAD} AND status <> {STEP.ABANDONED} AND seq > ? ORDER BY seq LIMIT ?;

-- name: insert_step
-- A new step, of any kind and in any status.
INSERT INTO steps (run_id, step_id, name, kind, retry, timeout_ms, input, input_meta, wake_at, parent_step_id, parallel_group_id, once,
                   created_at, status, attempt, begun_seq, seq, lease, nonce, output, output_meta, error, retry_at, child_run_id,
                   started_at, finished_at, worker_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: update_step
-- The new state of a step. An input or output that was not read is left alone.
UPDATE steps SET status = ?, attempt = ?, begun_seq = ?, seq = ?, lease = ?, nonce = ?, output = coalesce(?, output),
                 output_meta = coalesce(?, output_meta), error = ?, retry_at = ?, child_run_id = ?, started_at = ?, finished_at = ?,
                 worker_id = ?, wake_at = ?, retry = ?, timeout_ms = ?, once = ?, input = coalesce(?, input), input_meta = iif(?, ?, input_meta)
WHERE run_id = ? AND step_id = ?;

-- name: set_details
-- The progress of a long step.
UPDATE steps SET details = ?, details_meta = ? WHERE run_id = ? AND step_id = ?;

-- name: save_attempt
-- A failed attempt that is followed by another.
INSERT INTO step_attempts (run_id, step_id, attempt, begun_seq, seq, lease, nonce, started_at, finished_at, error, retry_at, worker_id,
                           input, input_meta)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: has_children
-- Marks the parent: its end or cancellation may concern children.
UPDATE runs SET has_children = 1 WHERE run_id = ?;

-- name: set_status
-- For users; the last value wins.
UPDATE runs SET status_text = ?, progress = ? WHERE run_id = ?;

-- name: save_state
-- The state that the workflow publishes; the last value wins.
INSERT INTO steps (run_id, step_id, name, kind, status, begun_seq, lease, nonce, created_at, finished_at, output, output_meta)
VALUES (?, ?, ?, {KIND.STATE}, {STEP.COMPLETED}, 0, ?, ?, ?, ?, ?, ?)
ON CONFLICT (run_id, step_id) DO UPDATE SET lease = excluded.lease, nonce = excluded.nonce, finished_at = excluded.finished_at,
    output = excluded.output, output_meta = excluded.output_meta;

-- name: park_run
-- Frees slot and lease; a timer, a signal or a child wakes the run.
UPDATE runs SET status = {RUN.SLEEPING}, wait_reason = ?, due_at = ?, worker_id = NULL, lease_until = NULL
WHERE run_id = ? AND lease = ? AND nonce = ? AND status + 0 = {RUN.RUNNING};

-- name: leave_run
-- The worker releases the run.
UPDATE runs SET status = :status, seq = :seq, attempt = :attempt, wait_reason = :wait_reason, due_at = :due_at, ready_at = :ready_at,
                finished_at = :finished_at, error = :error, cascade_due = :cascade_due, continued_as = :continued_as,
                worker_id = NULL, lease_until = NULL, pause_requested = 0,
                awaits_signal = iif(:finished_at IS NULL, awaits_signal + :waits, 0),
                retrying_steps = iif(:finished_at IS NULL, retrying_steps + :retries, 0), unread_signals = unread_signals + :unread
WHERE run_id = :run_id AND lease = :lease AND nonce = :nonce AND status + 0 = {RUN.RUNNING};

-- name: note_divergence
-- The code does not fit the history: other builds may try. The latest are remembered, each once: under `kagzi dev`
-- every saved file is a build of its own.
UPDATE runs SET problem = :problem, tried_builds = json_insert((
                    SELECT json_group_array(others.value) FROM (
                        SELECT latest.value FROM (
                            SELECT b.key, b.value FROM json_each(coalesce(runs.tried_builds, '[]')) AS b
                            WHERE b.value <> :build_id ORDER BY b.key DESC LIMIT :others) AS latest
                        ORDER BY latest.key) AS others), '$[#]', :build_id),
                pinned_build = iif(:unpin_build, NULL, pinned_build)
WHERE run_id = :run_id;
