-- name: start_runs
-- New runs with their payloads and labels, in the order of their ids so that two servers cannot wait for each other.
-- Left out are ids and requests that are taken, and namespaces that are unknown, disabled or limited, and types that refuse
-- runs or send others away when they are full: they are looked at after. Where running runs are limited nothing is born leased:
-- a claim counts. Runs without a key have an empty one where keys take turns.
WITH g AS MATERIALIZED (
    SELECT * FROM unnest(
        $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::smallint[], $9::smallint[],
        $10::smallint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::text[], $16::bigint[],
        $17::bigint[], $18::text[], $19::text[], $38::text[], $39::text[], $40::uuid[], $41::text[]
    ) AS g (
        run_id, namespace, workflow_id, workflow_type, request_id, version, priority, status, wait_reason, ready_at,
        due_at, deadline_at, lease, worker_id, nonce, lease_until, retry, labels, concurrency_key, schedule_id, blocked_by,
        pinned
    )
), made AS (
    INSERT INTO runs (
        run_id, namespace, workflow_id, workflow_type, request_id, version, priority, status, wait_reason, ready_at,
        due_at, deadline_at, lease, worker_id, nonce, lease_until, retry, labels, created_at, started_at, claimed_at,
        watched, parent_run_id, parent_step_id, on_close, concurrency_key, schedule_id, blocked_by
    )
    SELECT g.run_id, g.namespace, g.workflow_id, g.workflow_type, g.request_id, CASE WHEN a.waits THEN g.pinned ELSE g.version END,
        g.priority, CASE WHEN a.waits THEN 1 ELSE g.status END, g.wait_reason, CASE WHEN a.waits THEN $1::bigint ELSE g.ready_at END,
        g.due_at, g.deadline_at, CASE WHEN a.waits THEN 0 ELSE g.lease END, CASE WHEN NOT a.waits THEN g.worker_id END,
        CASE WHEN a.waits THEN 0 ELSE g.nonce END, CASE WHEN NOT a.waits THEN g.lease_until END, g.retry::json,
        g.labels::json, $1, CASE WHEN a.leased THEN $1 END, CASE WHEN a.leased THEN $1 END,
        p.run_id IS NOT NULL, p.parent_run_id, p.parent_step_id, p.on_close,
        CASE WHEN t.max_running_per_key IS NOT NULL OR t.starts_per_second_per_key IS NOT NULL
            THEN coalesce(g.concurrency_key, '') ELSE g.concurrency_key END,
        g.schedule_id, g.blocked_by
    FROM g
    LEFT JOIN unnest($29::uuid[], $30::uuid[], $31::text[], $32::smallint[])
        AS p (run_id, parent_run_id, parent_step_id, on_close) ON p.run_id = g.run_id
    JOIN namespaces AS n ON n.namespace = g.namespace AND (n.enabled OR p.run_id IS NOT NULL)
        AND (NOT n.limiting OR $20::bool)
    LEFT JOIN workflow_types AS t ON t.namespace = g.namespace AND t.workflow_type = g.workflow_type AND t.limiting
    CROSS JOIN LATERAL (
        SELECT g.lease > 0 AND (t.limiting IS TRUE OR n.running_runs_limit IS NOT NULL) AS waits,
            g.lease > 0 AND t.limiting IS NOT TRUE AND n.running_runs_limit IS NULL AS leased
    ) AS a
    WHERE t.when_full = 'queue' IS NOT FALSE OR $20
    ORDER BY g.namespace COLLATE "C", g.workflow_id COLLATE "C", g.request_id COLLATE "C"
    ON CONFLICT DO NOTHING
    RETURNING run_id, namespace, status
), payloads AS (
    INSERT INTO steps (run_id, step_id, name, kind, status, begun_seq, created_at, finished_at, output, output_meta)
    SELECT made.run_id, p.step_id, p.step_id, p.kind, 3, 0, $1, $1, p.data, p.metadata::json
    FROM unnest($21::uuid[], $22::text[], $23::smallint[], $24::bytea[], $25::text[])
        AS p (run_id, step_id, kind, data, metadata)
    JOIN made USING (run_id)
), labelled AS (
    INSERT INTO run_labels (namespace, key, value, created_at, run_id)
    SELECT made.namespace, l.key, l.value, $1, made.run_id
    FROM unnest($26::uuid[], $27::text[], $28::text[]) AS l (run_id, key, value)
    JOIN made USING (run_id)
), signalled AS (
    INSERT INTO signals (run_id, number, received_at, name, request_id, payload, payload_meta)
    SELECT made.run_id, 1, $1, s.name, s.request_id, s.payload, s.metadata::json
    FROM unnest($33::uuid[], $34::text[], $35::text[], $36::bytea[], $37::text[])
        AS s (run_id, name, request_id, payload, metadata)
    JOIN made USING (run_id)
)
SELECT array_agg(run_id::text) AS run_ids, array_agg(run_id::text) FILTER (WHERE status = 1) AS waiting FROM made;

-- name: find_starts
-- Why a start made no run: whoever has its request id, or its workflow id, and how the namespace is set.
SELECT g.n, n.namespace IS NOT NULL AS known, n.enabled, n.limiting, n.deleting_at IS NOT NULL AS deleting, t.when_full = 'queue' IS FALSE AS guarded,
    q.run_id::text AS request_run_id, q.workflow_id AS request_workflow_id, q.status AS request_status,
    o.run_id::text AS open_run_id, o.workflow_type AS open_type, o.status AS open_status,
    c.run_id::text AS completed_run_id, c.workflow_type AS completed_type
FROM unnest($1::text[], $2::text[], $3::text[], $4::bool[], $5::text[]) WITH ORDINALITY
    AS g (namespace, workflow_id, request_id, or_completed, workflow_type, n)
LEFT JOIN namespaces AS n ON n.namespace = g.namespace
LEFT JOIN workflow_types AS t ON t.namespace = g.namespace AND t.workflow_type = g.workflow_type AND t.limiting
LEFT JOIN runs AS q ON q.namespace = g.namespace AND q.request_id = g.request_id
LEFT JOIN runs AS o ON o.namespace = g.namespace AND o.workflow_id = g.workflow_id AND o.status IN (1, 2, 3, 7)
LEFT JOIN LATERAL (
    SELECT r.run_id, r.workflow_type, r.status FROM runs AS r
    WHERE g.or_completed AND r.namespace = g.namespace AND r.workflow_id = g.workflow_id AND r.status IN (4, 5, 6)
    ORDER BY r.created_at DESC LIMIT 1
) AS c ON c.status = 4
ORDER BY g.n;

-- name: lock_namespaces
-- Limits are kept exactly: whoever counts against one holds the row until the runs are made or claimed.
SELECT namespace, open_runs_limit, running_runs_limit, starts_per_second_limit, stored_bytes_limit, next_start_at, stored_bytes
FROM namespaces
WHERE namespace = ANY ($1::text[]) ORDER BY namespace FOR UPDATE;

-- name: count_open_runs
-- How many open runs a namespace has, counted no further than its limit.
SELECT count(*) AS runs FROM (
    SELECT 1 FROM runs WHERE namespace = $1::text AND status IN (1, 2, 3, 7) LIMIT $2::bigint
) AS counted;

-- name: count_in_queue
-- How many runs of a type, or of a key of it, run or wait and are not on their way out; counted no further than needed.
SELECT count(*) AS runs FROM (
    (
        SELECT 1 FROM runs
        WHERE namespace = $1::text AND workflow_type = $2::text AND ready_at IS NOT NULL AND cancel_requested_at IS NULL
            AND ($3::text IS NULL OR concurrency_key = $3) LIMIT $4::bigint
    )
    UNION ALL
    (
        SELECT 1 FROM runs
        WHERE namespace = $1 AND workflow_type = $2 AND lease_until IS NOT NULL AND cancel_requested_at IS NULL
            AND ($3 IS NULL OR concurrency_key = $3) LIMIT $4
    )
) AS counted;

-- name: oldest_in_queue
-- The oldest of the same: ids grow with time.
SELECT run_id::text AS run_id FROM (
    SELECT run_id FROM runs
    WHERE namespace = $1::text AND workflow_type = $2::text AND ready_at IS NOT NULL AND cancel_requested_at IS NULL
        AND ($3::text IS NULL OR concurrency_key = $3)
    UNION ALL
    SELECT run_id FROM runs
    WHERE namespace = $1 AND workflow_type = $2 AND lease_until IS NOT NULL AND cancel_requested_at IS NULL
        AND ($3 IS NULL OR concurrency_key = $3)
) AS inside
ORDER BY run_id LIMIT $4::bigint;

-- name: lock_blockers
-- Runs that new ones wait behind: those that are open are watched from now on. Their seq says that something has changed.
UPDATE runs AS r SET watched = true, seq = r.seq + 1
WHERE r.run_id = ANY (ARRAY(
    SELECT b.run_id FROM runs AS b
    JOIN unnest($1::text[], $2::uuid[]) AS g (namespace, run_id) ON g.run_id = b.run_id
        AND g.namespace IS NOT DISTINCT FROM b.namespace
    ORDER BY b.run_id FOR UPDATE OF b
)) AND r.status + 0 IN (1, 2, 3, 7)
RETURNING r.run_id::text AS run_id;

-- name: terminate_run
-- It ends now, without its worker being asked.
UPDATE runs SET status = 6, finished_at = $2::bigint, error = $3::text::json, seq = seq + 1, lease_until = NULL,
    ready_at = NULL, due_at = NULL, wait_reason = NULL, pause_requested = false, diverged = false, blocked_by = NULL,
    cascade_due = cascade_due OR has_children
WHERE run_id = $1::uuid AND status + 0 IN (1, 2, 3, 7)
RETURNING run_id::text AS run_id;
