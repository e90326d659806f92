-- name: start_runs
-- New runs with their payloads and labels, in the order of their ids so that two servers cannot wait for each other.
-- Left out are ids and requests that are taken, and namespaces that are unknown, disabled or limited: they are looked at after.
WITH g AS MATERIALIZED (
    SELECT * FROM unnest(
        $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::smallint[], $9::smallint[],
        $10::smallint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::text[], $16::bigint[],
        $17::bigint[], $18::text[], $19::text[]
    ) AS g (
        run_id, namespace, workflow_id, workflow_type, request_id, version, priority, status, wait_reason, ready_at,
        due_at, deadline_at, lease, worker_id, nonce, lease_until, retry, labels
    )
), made AS (
    INSERT INTO runs (
        run_id, namespace, workflow_id, workflow_type, request_id, version, priority, status, wait_reason, ready_at,
        due_at, deadline_at, lease, worker_id, nonce, lease_until, retry, labels, created_at, started_at, claimed_at,
        watched, parent_run_id, parent_step_id, on_close
    )
    SELECT g.run_id, g.namespace, g.workflow_id, g.workflow_type, g.request_id, g.version, g.priority, g.status,
        g.wait_reason, g.ready_at, g.due_at, g.deadline_at, g.lease, g.worker_id, g.nonce, g.lease_until, g.retry::json,
        g.labels::json, $1::bigint, CASE WHEN g.lease > 0 THEN $1 END, CASE WHEN g.lease > 0 THEN $1 END,
        p.run_id IS NOT NULL, p.parent_run_id, p.parent_step_id, p.on_close
    FROM g
    LEFT JOIN unnest($29::uuid[], $30::uuid[], $31::text[], $32::smallint[])
        AS p (run_id, parent_run_id, parent_step_id, on_close) ON p.run_id = g.run_id
    JOIN namespaces AS n ON n.namespace = g.namespace AND n.enabled AND (n.open_runs_limit IS NULL OR $20::bool)
    ORDER BY g.namespace COLLATE "C", g.workflow_id COLLATE "C", g.request_id COLLATE "C"
    ON CONFLICT DO NOTHING
    RETURNING run_id, namespace
), payloads AS (
    INSERT INTO steps (run_id, step_id, name, kind, status, begun_seq, created_at, finished_at, output, output_meta)
    SELECT made.run_id, p.step_id, p.step_id, p.kind, 3, 0, $1, $1, p.data, p.metadata::json
    FROM unnest($21::uuid[], $22::text[], $23::smallint[], $24::bytea[], $25::text[])
        AS p (run_id, step_id, kind, data, metadata)
    JOIN made USING (run_id)
), labelled AS (
    INSERT INTO run_labels (namespace, key, value, run_id)
    SELECT made.namespace, l.key, l.value, made.run_id
    FROM unnest($26::uuid[], $27::text[], $28::text[]) AS l (run_id, key, value)
    JOIN made USING (run_id)
), signalled AS (
    INSERT INTO signals (run_id, number, received_at, name, request_id, payload, payload_meta)
    SELECT made.run_id, 1, $1, s.name, s.request_id, s.payload, s.metadata::json
    FROM unnest($33::uuid[], $34::text[], $35::text[], $36::bytea[], $37::text[])
        AS s (run_id, name, request_id, payload, metadata)
    JOIN made USING (run_id)
)
SELECT array_agg(run_id::text) AS run_ids FROM made;

-- name: find_starts
-- Why a start made no run: whoever has its request id, or its workflow id, and how the namespace is set.
SELECT g.n, n.namespace IS NOT NULL AS known, n.enabled, n.open_runs_limit,
    q.run_id::text AS request_run_id, q.workflow_id AS request_workflow_id, q.status AS request_status,
    o.run_id::text AS open_run_id, o.workflow_type AS open_type, o.status AS open_status,
    c.run_id::text AS completed_run_id, c.workflow_type AS completed_type
FROM unnest($1::text[], $2::text[], $3::text[], $4::bool[]) WITH ORDINALITY
    AS g (namespace, workflow_id, request_id, or_completed, n)
LEFT JOIN namespaces AS n ON n.namespace = g.namespace
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
SELECT namespace, open_runs_limit, running_runs_limit FROM namespaces
WHERE namespace = ANY ($1::text[]) ORDER BY namespace FOR UPDATE;

-- name: count_open_runs
-- How many open runs a namespace has, counted no further than its limit.
SELECT count(*) AS runs FROM (
    SELECT 1 FROM runs WHERE namespace = $1::text AND status IN (1, 2, 3, 7) LIMIT $2::bigint
) AS counted;

-- name: terminate_run
-- It ends now, without its worker being asked.
UPDATE runs SET status = 6, finished_at = $2::bigint, error = $3::text::json, seq = seq + 1, lease_until = NULL,
    ready_at = NULL, due_at = NULL, wait_reason = NULL, pause_requested = false, diverged = false,
    cascade_due = cascade_due OR has_children
WHERE run_id = $1::uuid AND status + 0 IN (1, 2, 3, 7)
RETURNING run_id::text AS run_id;
