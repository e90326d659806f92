-- name: lock_due_runs
-- Everything that is due, nearest first; locked rows are left to the transactions that hold them.
WITH due AS MATERIALIZED (
    (SELECT run_id, due_at AS at FROM runs WHERE due_at IS NOT NULL AND due_at <= :now::bigint ORDER BY due_at LIMIT :limit::bigint)
    UNION ALL
    (SELECT run_id, deadline_at FROM runs
     WHERE deadline_at IS NOT NULL AND deadline_at <= :now AND finished_at IS NULL ORDER BY deadline_at LIMIT :limit)
    UNION ALL
    (SELECT run_id, cancel_by FROM runs
     WHERE cancel_by IS NOT NULL AND cancel_by <= :now AND finished_at IS NULL ORDER BY cancel_by LIMIT :limit)
    UNION ALL
    (SELECT run_id, lease_until FROM runs WHERE lease_until IS NOT NULL AND lease_until <= :leases_ended_by::bigint
     ORDER BY lease_until LIMIT :limit)
), nearest AS MATERIALIZED (
    SELECT run_id FROM due GROUP BY run_id ORDER BY min(at), run_id LIMIT :limit
)
SELECT r.run_id::text AS run_id, r.namespace, r.workflow_type, r.workflow_id, r.status, r.lease, r.nonce, r.worker_id, r.due_at, r.deadline_at,
    r.cancel_by, r.cancel_reason, r.lease_until, r.watched, r.has_children, r.lost_leases, r.pause_requested, r.unread_signals
FROM nearest JOIN runs AS r ON r.run_id = nearest.run_id
WHERE (r.status + 0 = {RUN.SLEEPING} AND r.due_at <= :now) OR (r.status + 0 = {RUN.RUNNING} AND r.lease_until <= :now)
    OR (r.status + 0 IN ({RUN.OPEN}) AND (r.deadline_at <= :now OR r.cancel_by <= :now))
ORDER BY r.run_id
FOR UPDATE OF r SKIP LOCKED;

-- name: keep_lost_attempts
-- Before leases of locked runs end: attempts begun under them are kept as lost, each with a seq of its own. Only the
-- last seqs of a run are searched, so that a long history costs no more than a short one. A step that may run only once
-- fails when it is begun again. They are `forgotten` at their own begin: they match no repeated command, and the next
-- attempt has the same number.
WITH r AS MATERIALIZED (
    SELECT run_id, seq, lease, nonce FROM runs WHERE run_id = ANY (:run_ids::uuid[])
), lost AS (
    INSERT INTO step_attempts (
        run_id, step_id, attempt, begun_seq, seq, lease, nonce, started_at, finished_at, retry_at, worker_id, error, forgotten
    )
    SELECT s.run_id, s.step_id, s.attempt, s.begun_seq, r.seq + row_number() OVER (PARTITION BY s.run_id ORDER BY s.begun_seq), s.lease, 0,
        s.started_at, :now::bigint, :retry_at::bigint, s.worker_id, :error::text::json, s.begun_seq
    FROM r JOIN steps AS s ON s.run_id = r.run_id AND s.begun_seq >= 0 AND s.begun_seq > r.seq - :most_attempts::bigint
    WHERE s.kind = {KIND.FUNCTION} AND s.status = {STEP.RUNNING} AND NOT s.once AND s.lease = r.lease AND s.nonce = r.nonce
    ON CONFLICT DO NOTHING
    RETURNING run_id, seq
)
UPDATE runs AS r SET seq = l.seq FROM (SELECT run_id, max(seq) AS seq FROM lost GROUP BY run_id) AS l WHERE r.run_id = l.run_id;

-- name: fire_runs
-- For locked runs: wake sleeping ones, whose due sleeps complete and whose due waits for a signal fail, in the order of
-- their times; end runs; end leases; pause runs that lost too many. core/run/parking.py has the same error for a wait
-- that failed. Nonce 0: no repeated command of the last worker matches.
WITH g AS MATERIALIZED (
    SELECT * FROM rows(:runs) AS g (run_id uuid, status smallint, error text, lost int)
), due AS MATERIALIZED (
    SELECT s.run_id, s.step_id, row_number() OVER (PARTITION BY s.run_id ORDER BY s.due_at, s.begun_seq) AS place,
        CASE WHEN s.kind = {KIND.SIGNAL} THEN json_build_object(
            'code', 'timeout', 'kind', 'timeout', 'type', 'TimeoutError', 'subject', 'step', 'subject_id', s.step_id,
            'message', 'signal ''' || s.name || ''' did not arrive before ' || to_char(
                timestamp 'epoch' + s.wake_at * interval '1 microsecond', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'
            )
        ) END AS error
    FROM g JOIN steps AS s ON s.run_id = g.run_id
    WHERE g.status = {RUN.PENDING} AND g.lost = 0 AND s.due_at <= :now::bigint AND s.kind IN ({KIND.SLEEP}, {KIND.SIGNAL})
), changed AS (
    UPDATE runs AS r
    SET status = g.status, seq = r.seq + 1 + coalesce(d.count, 0),
        result_seq = CASE WHEN d.count > 0 THEN r.seq + d.count ELSE r.result_seq END,
        queued_us = r.queued_us + coalesce(greatest(:now - r.ready_at, 0), 0),
        ready_at = CASE WHEN g.status = {RUN.PENDING} THEN :now END, finished_at = CASE WHEN g.status IN ({RUN.FAILED}, {RUN.CANCELLED}) THEN :now END,
        error = CASE WHEN g.status IN ({RUN.FAILED}, {RUN.CANCELLED}) THEN g.error::json ELSE r.error END,
        problem = CASE WHEN g.status = {RUN.PAUSED} THEN g.error::json ELSE r.problem END,
        lost_leases = CASE WHEN d.count > 0 THEN 0 ELSE r.lost_leases + g.lost END,
        cascade_due = r.cascade_due OR (g.status IN ({RUN.FAILED}, {RUN.CANCELLED}) AND r.has_children), pause_requested = false,
        nonce = CASE WHEN g.status IN ({RUN.PENDING}, {RUN.PAUSED}) THEN 0 ELSE r.nonce END,
        diverged = false, lease_until = NULL, due_at = NULL, wait_reason = NULL, blocked_by = NULL,
        awaits_signal = CASE WHEN g.status IN ({RUN.FAILED}, {RUN.CANCELLED}) THEN 0 ELSE r.awaits_signal - coalesce(d.signals, 0) END,
        retrying_steps = CASE WHEN g.status IN ({RUN.FAILED}, {RUN.CANCELLED}) THEN 0 ELSE r.retrying_steps END
    FROM g LEFT JOIN (SELECT run_id, count(*) AS count, count(error) AS signals FROM due GROUP BY run_id) AS d ON d.run_id = g.run_id
    WHERE r.run_id = g.run_id
    RETURNING r.run_id, r.seq - 1 - coalesce(d.count, 0) AS base
)
UPDATE steps AS s
SET status = CASE WHEN due.error IS NULL THEN {STEP.COMPLETED} ELSE {STEP.FAILED} END, error = due.error, seq = c.base + due.place,
    finished_at = :now, due_at = NULL
FROM due JOIN changed AS c ON c.run_id = due.run_id
WHERE s.run_id = due.run_id AND s.step_id = due.step_id;

-- name: poll
-- The store's clock, the next due time, and the types with pending runs by skipping from one to the next in the index.
-- It begins after the last type of the previous poll, because a poll returns only some and no type may wait for ever.
-- The same statement records the heartbeats since the last poll: an idle server issues no other statement. The standbys
-- that commits wait for may have changed since.
WITH RECURSIVE beaten AS (
    UPDATE workers AS w
    SET active_count = CASE WHEN w.status = {WORKER.OFFLINE} THEN 0 ELSE b.active_count END, total_completed = w.total_completed + b.completed,
        total_failed = w.total_failed + b.failed, last_heartbeat_at = greatest(w.last_heartbeat_at, b.at)
    FROM rows(:heartbeats) AS b (
        worker_id text, active_count int, completed bigint, failed bigint, at bigint, namespace text
    )
    WHERE w.namespace = b.namespace AND w.worker_id = b.worker_id
    RETURNING w.namespace, w.worker_id, w.status
), pending (namespace, workflow_type, place) AS (
    (SELECT namespace, workflow_type, 1 FROM runs
     WHERE ready_at IS NOT NULL AND (namespace, workflow_type) > (:namespace::text, :workflow_type::text)
     ORDER BY namespace, workflow_type LIMIT 1)
    UNION ALL
    SELECT n.namespace, n.workflow_type, p.place + 1 FROM pending AS p CROSS JOIN LATERAL (
        SELECT r.namespace, r.workflow_type FROM runs AS r
        WHERE r.ready_at IS NOT NULL AND (r.namespace, r.workflow_type) > (p.namespace, p.workflow_type)
        ORDER BY r.namespace, r.workflow_type LIMIT 1
    ) AS n
    WHERE p.place < :most_types::int
)
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS store_now,
    least(
        (SELECT min(due_at) FROM runs WHERE due_at IS NOT NULL),
        (SELECT min(deadline_at) FROM runs WHERE deadline_at IS NOT NULL AND finished_at IS NULL),
        (SELECT min(cancel_by) FROM runs WHERE cancel_by IS NOT NULL AND finished_at IS NULL),
        (SELECT min(lease_until) FROM runs WHERE lease_until IS NOT NULL)
    ) AS next_due_at,
    (SELECT min(due_at) FROM schedules WHERE due_at IS NOT NULL) AS next_schedule_at,
    EXISTS (SELECT 1 FROM runs WHERE cascade_due) AS cascade,
    (SELECT array_agg(ARRAY[namespace, worker_id]) FROM beaten WHERE status = {WORKER.DRAINING}) AS draining,
    EXISTS (SELECT 1 FROM bulk_operations WHERE finished_at IS NULL) AS bulk,
    (SELECT array_agg(namespace ORDER BY place) FROM pending) AS namespaces,
    (SELECT array_agg(workflow_type ORDER BY place) FROM pending) AS workflow_types,
    current_setting('synchronous_standby_names') AS standby_names;
