-- name: renew_leases
-- Locked rows are skipped: a transaction that writes to a run renews it anyway. Leases that are no longer current are
-- lost. Also returns steps that should have been reported by now.
WITH g AS MATERIALIZED (
    SELECT * FROM unnest(:run_ids::uuid[], :namespaces::text[], :leases::bigint[], :nonces::bigint[]) WITH ORDINALITY
        AS g (run_id, namespace, lease, nonce, n)
), mine AS MATERIALIZED (
    SELECT r.run_id FROM g JOIN runs AS r ON r.run_id = g.run_id
    WHERE r.namespace IS NOT DISTINCT FROM g.namespace AND r.lease = g.lease AND r.nonce = g.nonce AND r.status + 0 = {RUN.RUNNING}
    FOR UPDATE OF r SKIP LOCKED
), renewed AS (
    UPDATE runs AS r SET lease_until = :until::bigint FROM mine WHERE r.run_id = mine.run_id
)
SELECT g.n, r.run_id IS NULL AS lost, r.cancel_requested_at IS NOT NULL AS cancelling, r.cancel_reason,
    coalesce(r.pause_requested, false) AS pausing, s.step_id, s.attempt, s.timeout_ms
FROM g
LEFT JOIN runs AS r ON r.run_id = g.run_id AND r.namespace IS NOT DISTINCT FROM g.namespace AND r.lease = g.lease AND r.nonce = g.nonce
    AND r.status + 0 = {RUN.RUNNING}
LEFT JOIN LATERAL (
    SELECT step_id, attempt, timeout_ms FROM steps
    WHERE run_id = r.run_id AND due_at IS NOT NULL AND due_at <= :overdue_at::bigint AND kind = {KIND.FUNCTION} AND status = {STEP.RUNNING}
        AND lease = r.lease AND nonce = r.nonce
) AS s ON true
WHERE r.run_id IS NULL OR r.cancel_requested_at IS NOT NULL OR r.pause_requested OR s.step_id IS NOT NULL
ORDER BY g.n;

-- name: shorten_leases
-- A session closed: its leases end soon. Returns those that could not be shortened because their row is locked.
WITH g AS MATERIALIZED (
    SELECT * FROM unnest(:run_ids::uuid[], :namespaces::text[], :leases::bigint[], :nonces::bigint[]) WITH ORDINALITY
        AS g (run_id, namespace, lease, nonce, n)
), mine AS MATERIALIZED (
    SELECT r.run_id, g.n FROM g JOIN runs AS r ON r.run_id = g.run_id
    WHERE r.namespace IS NOT DISTINCT FROM g.namespace AND r.lease = g.lease AND r.nonce = g.nonce AND r.status + 0 = {RUN.RUNNING}
        AND r.lease_until > :until::bigint
    FOR UPDATE OF r SKIP LOCKED
), shortened AS (
    UPDATE runs AS r SET lease_until = :until FROM mine WHERE r.run_id = mine.run_id
)
SELECT g.n FROM g JOIN runs AS r ON r.run_id = g.run_id
WHERE r.namespace IS NOT DISTINCT FROM g.namespace AND r.lease = g.lease AND r.nonce = g.nonce AND r.status + 0 = {RUN.RUNNING} AND r.lease_until > :until
    AND g.n NOT IN (SELECT mine.n FROM mine);

-- name: release_leases
-- Handed back: PENDING at once, not counted as lost (PAUSED if requested). Returns the types woken, and the leases
-- whose row is locked.
WITH g AS MATERIALIZED (
    SELECT * FROM unnest(:run_ids::uuid[], :namespaces::text[], :leases::bigint[], :nonces::bigint[]) WITH ORDINALITY
        AS g (run_id, namespace, lease, nonce, n)
), mine AS MATERIALIZED (
    SELECT r.run_id, g.n FROM g JOIN runs AS r ON r.run_id = g.run_id
    WHERE r.namespace IS NOT DISTINCT FROM g.namespace AND r.lease = g.lease AND r.nonce = g.nonce AND r.status + 0 = {RUN.RUNNING}
    FOR UPDATE OF r SKIP LOCKED
), released AS (
    UPDATE runs AS r
    SET status = CASE WHEN r.pause_requested THEN {RUN.PAUSED} ELSE {RUN.PENDING} END,
        ready_at = CASE WHEN r.pause_requested THEN NULL ELSE :now::bigint END,
        pause_requested = false, lease_until = NULL, seq = r.seq + 1
    FROM mine WHERE r.run_id = mine.run_id
    RETURNING r.namespace, r.workflow_type, r.status
)
SELECT NULL::bigint AS n, namespace, workflow_type FROM released WHERE status + 0 = {RUN.PENDING}
UNION
SELECT g.n, r.namespace, r.workflow_type FROM g JOIN runs AS r ON r.run_id = g.run_id
WHERE r.namespace IS NOT DISTINCT FROM g.namespace AND r.lease = g.lease AND r.nonce = g.nonce AND r.status + 0 = {RUN.RUNNING}
    AND g.n NOT IN (SELECT mine.n FROM mine);

-- name: lost_before_ack
-- A stream broke before the worker confirmed these runs. The first time, a run is PENDING at once, and that is counted;
-- one that has lost a worker since its last progress keeps its lease for a grace period. Returns rows like
-- release_leases.
WITH g AS MATERIALIZED (
    SELECT * FROM unnest(:run_ids::uuid[], :namespaces::text[], :leases::bigint[], :nonces::bigint[], :untils::bigint[]) WITH ORDINALITY
        AS g (run_id, namespace, lease, nonce, until, n)
), mine AS MATERIALIZED (
    SELECT r.run_id, g.n, g.until FROM g JOIN runs AS r ON r.run_id = g.run_id
    WHERE r.namespace IS NOT DISTINCT FROM g.namespace AND r.lease = g.lease AND r.nonce = g.nonce AND r.status + 0 = {RUN.RUNNING}
    ORDER BY r.run_id FOR UPDATE OF r SKIP LOCKED
), lost AS (
    UPDATE runs AS r
    SET status = CASE WHEN r.lost_leases > 0 THEN {RUN.RUNNING} WHEN r.pause_requested THEN {RUN.PAUSED} ELSE {RUN.PENDING} END,
        ready_at = CASE WHEN r.lost_leases > 0 OR r.pause_requested THEN NULL ELSE :now::bigint END,
        pause_requested = r.pause_requested AND r.lost_leases > 0, lost_leases = greatest(r.lost_leases, 1),
        lease_until = CASE WHEN r.lost_leases > 0 THEN least(r.lease_until, mine.until) END, seq = r.seq + 1
    FROM mine WHERE r.run_id = mine.run_id
    RETURNING r.namespace, r.workflow_type, r.status
)
SELECT NULL::bigint AS n, namespace, workflow_type FROM lost WHERE status + 0 = {RUN.PENDING}
UNION
SELECT g.n, r.namespace, r.workflow_type FROM g JOIN runs AS r ON r.run_id = g.run_id
WHERE r.namespace IS NOT DISTINCT FROM g.namespace AND r.lease = g.lease AND r.nonce = g.nonce AND r.status + 0 = {RUN.RUNNING}
    AND g.n NOT IN (SELECT mine.n FROM mine);

-- name: runs_leased_by
-- The runs that a worker holds, to hand them back.
SELECT run_id::text AS run_id, lease, nonce FROM runs
WHERE namespace = :namespace::text AND worker_id = :worker_id::text AND lease_until IS NOT NULL ORDER BY run_id;
