-- name: past_deadline
-- Open runs whose deadline has passed, in any open status.
SELECT run_id, namespace, workflow_type, status, lease, nonce, worker_id, has_children, deadline_at
FROM runs INDEXED BY runs_deadline
WHERE finished_at IS NULL AND deadline_at <= ? ORDER BY deadline_at LIMIT ?;

-- name: past_cancel_limit
-- Runs that did not stop in time after a cancel request.
SELECT run_id, namespace, workflow_type, status, lease, nonce, worker_id, has_children, cancel_by, cancel_reason
FROM runs INDEXED BY runs_cancel_by
WHERE finished_at IS NULL AND cancel_by <= ? ORDER BY cancel_by LIMIT ?;

-- name: due_sleepers
-- Runs to wake: sleeps, retries, delayed starts. One row, because every row fetched releases the GIL.
SELECT json_group_array(json_array(run_id, namespace, workflow_type))
FROM (SELECT run_id, namespace, workflow_type FROM runs INDEXED BY runs_due
      WHERE status = {RUN.SLEEPING} AND due_at <= ? ORDER BY due_at LIMIT ?);

-- name: wake_runs
-- PENDING, with as many seqs taken as waits will end. The end of a wait is progress: leases lost before it do not
-- count.
UPDATE runs SET status = {RUN.PENDING}, ready_at = :now, due_at = NULL, wait_reason = NULL, nonce = 0,
                awaits_signal = CASE WHEN awaits_signal > 0 THEN awaits_signal - (
                    SELECT count(*) FROM steps AS s INDEXED BY steps_timed
                    WHERE s.run_id = runs.run_id AND s.status = {STEP.RUNNING} AND s.wake_at <= :now AND s.kind = {KIND.SIGNAL}) ELSE 0 END,
                lost_leases = CASE WHEN lost_leases > 0 AND EXISTS (
                    SELECT 1 FROM steps AS s INDEXED BY steps_timed
                    WHERE s.run_id = runs.run_id AND s.status = {STEP.RUNNING} AND s.wake_at <= :now) THEN 0 ELSE lost_leases END,
                seq = seq + (SELECT count(*) FROM steps AS s INDEXED BY steps_timed
                             WHERE s.run_id = runs.run_id AND s.status = {STEP.RUNNING} AND s.wake_at <= :now)
WHERE run_id IN (SELECT value FROM json_each(:run_ids)) AND status + 0 = {RUN.SLEEPING};

-- name: part_timeout_error
-- The error of a wait for a signal that timed out, as JSON of an ErrorDetail: the same as in core/run/parking.py.
json_object('code', 'timeout', 'kind', 'timeout', 'type', 'TimeoutError', 'subject', 'step', 'subject_id', steps.step_id,
            'message', 'signal ''' || name || ''' did not arrive before '
            || strftime('%Y-%m-%dT%H:%M:%S', wake_at / 1000000, 'unixepoch') || printf('.%06dZ', wake_at % 1000000))

-- name: end_due_waits
-- Sleeps of woken runs complete, waits with a limit fail, in the order of their times, with the seqs that wake_runs
-- took for them.
UPDATE steps SET status = CASE kind WHEN {KIND.SLEEP} THEN {STEP.COMPLETED} ELSE {STEP.FAILED} END, error = CASE kind WHEN {KIND.SLEEP} THEN NULL ELSE {timeout_error} END,
                 seq = due.seq, finished_at = :now
FROM (SELECT s.run_id, s.step_id,
             r.seq - count(*) OVER (PARTITION BY s.run_id)
                   + row_number() OVER (PARTITION BY s.run_id ORDER BY s.wake_at, s.begun_seq) AS seq
      FROM json_each(:run_ids) AS woken
      CROSS JOIN steps AS s INDEXED BY steps_timed ON s.run_id = woken.value AND s.status = {STEP.RUNNING} AND s.wake_at <= :now
      CROSS JOIN runs AS r ON r.run_id = s.run_id) AS due
WHERE steps.run_id = due.run_id AND steps.step_id = due.step_id;

-- name: expired_leases
-- Leases that were not renewed.
SELECT run_id, namespace, workflow_type, status, lease, nonce, worker_id, has_children, workflow_id, lost_leases, pause_requested
FROM runs INDEXED BY runs_lease
WHERE status = {RUN.RUNNING} AND lease_until <= ? ORDER BY lease_until LIMIT ?;

-- name: keep_lost_attempts
-- Before leases end: attempts begun under them are kept as lost, each with a seq of its own. Only the last seqs of a
-- run are searched, so that a long history costs no more than a short one. A step that may run only once fails when it
-- is begun again.
INSERT INTO step_attempts (run_id, step_id, attempt, begun_seq, seq, lease, nonce, started_at, finished_at, error, retry_at, worker_id)
SELECT s.run_id, s.step_id, s.attempt, s.begun_seq, r.seq + row_number() OVER (PARTITION BY s.run_id ORDER BY s.begun_seq), s.lease, 0,
       s.started_at, :now, :error, :retry_at, s.worker_id
FROM json_each(:run_ids) AS wanted
CROSS JOIN runs AS r ON r.run_id = wanted.value AND r.status + 0 = {RUN.RUNNING}
CROSS JOIN steps AS s INDEXED BY steps_begun ON s.run_id = r.run_id AND s.begun_seq > r.seq - :numbers
WHERE s.kind = {KIND.FUNCTION} AND s.status = {STEP.RUNNING} AND s.once = 0 AND s.lease = r.lease AND s.nonce = r.nonce
ON CONFLICT DO NOTHING;

-- name: number_lost_attempts
-- The seqs that these took.
UPDATE runs SET seq = max(seq, coalesce((SELECT max(a.seq) FROM step_attempts AS a WHERE a.run_id = runs.run_id), 0))
WHERE run_id IN (SELECT value FROM json_each(:run_ids)) AND status + 0 = {RUN.RUNNING};

-- name: end_leases
-- Back to PENDING, counted as lost. Nonce 0: no repeated command of the worker matches.
UPDATE runs SET status = {RUN.PENDING}, ready_at = :now, nonce = 0, worker_id = NULL, lease_until = NULL, lost_leases = lost_leases + 1
WHERE run_id IN (SELECT value FROM json_each(:run_ids)) AND status + 0 = {RUN.RUNNING};

-- name: end_lease_paused
-- The same for a run that was to be paused, or is quarantined (then it has a problem).
UPDATE runs SET status = {RUN.PAUSED}, nonce = 0, worker_id = NULL, lease_until = NULL, lost_leases = lost_leases + 1, pause_requested = 0,
                problem = :problem
WHERE run_id = :run_id AND status + 0 = {RUN.RUNNING};

-- name: poll
-- One statement: the store's clock (it ticks in milliseconds; the middle of the tick), the next due time, and the types
-- with pending runs by a loose index scan: one seek for each type, however many runs there are. It begins after the
-- last type of the previous poll, because a poll returns only some and no type may wait for ever.
WITH RECURSIVE pending (pair, n) AS (
    SELECT (SELECT json_array(namespace, workflow_type) FROM runs INDEXED BY runs_pending
            WHERE status = {RUN.PENDING} AND (namespace, workflow_type) > (:namespace, :workflow_type)
            ORDER BY namespace, workflow_type LIMIT 1), 1
    UNION ALL
    SELECT (SELECT json_array(r.namespace, r.workflow_type) FROM runs AS r INDEXED BY runs_pending
            WHERE r.status = {RUN.PENDING}
              AND (r.namespace, r.workflow_type) > (json_extract(pending.pair, '$[0]'), json_extract(pending.pair, '$[1]'))
            ORDER BY r.namespace, r.workflow_type LIMIT 1), n + 1
    FROM pending WHERE pending.pair IS NOT NULL AND n < :limit
)
SELECT CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000 + 500,
       (SELECT min(due_at) FROM runs INDEXED BY runs_due WHERE status = {RUN.SLEEPING} AND due_at IS NOT NULL),
       (SELECT min(lease_until) FROM runs INDEXED BY runs_lease WHERE status = {RUN.RUNNING}),
       (SELECT min(deadline_at) FROM runs INDEXED BY runs_deadline WHERE finished_at IS NULL AND deadline_at IS NOT NULL),
       (SELECT min(cancel_by) FROM runs INDEXED BY runs_cancel_by WHERE finished_at IS NULL AND cancel_by IS NOT NULL),
       (SELECT json_group_array(json(pair)) FROM pending WHERE pair IS NOT NULL),
       EXISTS (SELECT 1 FROM runs INDEXED BY runs_cascade WHERE cascade_due = 1),
       EXISTS (SELECT 1 FROM bulk_operations INDEXED BY bulk_operations_open WHERE finished_at IS NULL),
       (SELECT min(due_at) FROM schedules INDEXED BY schedules_by_due WHERE due_at IS NOT NULL);

-- name: note_heartbeats
-- JSON rows of (worker_id, active, completed, failed, at, namespace).
UPDATE workers SET active_count = CASE status WHEN 'offline' THEN 0 ELSE wanted.active END,
                   total_completed = total_completed + wanted.completed,
                   total_failed = total_failed + wanted.failed, last_heartbeat_at = max(last_heartbeat_at, wanted.at)
FROM (SELECT json_extract(value, '$[0]') AS worker_id, json_extract(value, '$[1]') AS active,
             json_extract(value, '$[2]') AS completed, json_extract(value, '$[3]') AS failed,
             json_extract(value, '$[4]') AS at, json_extract(value, '$[5]') AS namespace
      FROM json_each(:rows)) AS wanted
WHERE workers.namespace = wanted.namespace AND workers.worker_id = wanted.worker_id;
