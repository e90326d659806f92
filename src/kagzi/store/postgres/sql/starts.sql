-- name: part_new_runs
-- Inserts runs with their payloads and labels, in the order of their ids to avoid deadlocks between servers. Leaves out
-- starts whose id or request is taken, whose namespace is unknown, disabled or limited, or whose type refuses or evicts
-- runs when it is full: these are checked afterwards. If running runs are limited, none is inserted as leased, because
-- only claims count. If the keys of a type are served in turn, a run without a key gets an empty one.
WITH {run_source}{with_signals}, made AS (
    INSERT INTO runs (
        {run.attributes}, run_id, namespace, workflow_id, request_id, schedule_id, blocked_by, wait_reason, due_at, version,
        status, ready_at, lease, worker_id, nonce, lease_until, created_at, started_at, claimed_at,
        concurrency_key{parent_columns}{signal_columns}
    )
    SELECT {run.attributes:g}, g.run_id, g.namespace, g.workflow_id, g.request_id, g.schedule_id, g.blocked_by, g.wait_reason,
        g.due_at, CASE WHEN a.waits THEN g.pinned ELSE g.version END, CASE WHEN a.waits THEN {RUN.PENDING} ELSE g.status END,
        CASE WHEN a.waits THEN :now::bigint ELSE g.ready_at END, CASE WHEN a.waits THEN 0 ELSE g.lease END,
        CASE WHEN NOT a.waits THEN g.worker_id END, CASE WHEN a.waits THEN 0 ELSE g.nonce END,
        CASE WHEN NOT a.waits THEN g.lease_until END, :now, CASE WHEN a.leased THEN :now END,
        CASE WHEN a.leased THEN :now END,
        CASE WHEN t.max_running_per_key IS NOT NULL OR t.starts_per_second_per_key IS NOT NULL
            THEN coalesce(g.concurrency_key, '') ELSE g.concurrency_key END{parent_values}{signal_values}
    FROM g {with_parents}
    JOIN namespaces AS n ON n.namespace = g.namespace AND {may_start} AND (NOT n.limiting OR :limited::bool)
    LEFT JOIN workflow_types AS t ON t.namespace = g.namespace AND t.workflow_type = g.workflow_type AND t.limiting
    CROSS JOIN LATERAL (
        SELECT g.lease > 0 AND (t.limiting IS TRUE OR n.running_runs_limit IS NOT NULL) AS waits,
            g.lease > 0 AND t.limiting IS NOT TRUE AND n.running_runs_limit IS NULL AS leased
    ) AS a
    WHERE (t.when_full = 'queue' IS NOT FALSE OR :limited){not_signalled_before}{in_order}
    ON CONFLICT DO NOTHING
    RETURNING run_id, namespace, status
), payloads AS (
    INSERT INTO steps (
        run_id, step_id, name, kind, status, begun_seq, created_at, finished_at, output, output_meta, input, input_meta
    )
    SELECT made.run_id, p.step_id, p.step_id, p.kind, {STEP.COMPLETED}, 0, :now, :now, p.data, p.metadata::json, p.beside,
        p.beside_metadata::json
    FROM {payload_source}
)
-- name: part_many_runs
-- Any number of them.
g AS MATERIALIZED (
    SELECT * FROM rows(:runs) AS g (
        {run.new typed}, pinned text
    )
)
-- name: part_many_payloads
-- Of any number of runs.
rows(:payloads) AS p (
        run_id uuid, step_id text, kind smallint, data bytea, metadata text, beside bytea, beside_metadata text
    )
    JOIN made USING (run_id)
-- name: part_order_of_ids
-- The order of locking.
    ORDER BY g.namespace COLLATE "C", g.workflow_id COLLATE "C", g.request_id COLLATE "C"
-- name: part_one_run
-- A single one.
g AS (SELECT {run.new single}, :pinned::text AS pinned)
-- name: part_payloads_of_one
-- Of a single run.
made CROSS JOIN (VALUES ('$input', {KIND.INPUT}, :input::bytea, :input_meta::text, :beside::bytea, :beside_meta::text),
        ('$context', {KIND.CONTEXT}, :context::bytea, :context_meta::text, NULL, NULL)
    ) AS p (step_id, kind, data, metadata, beside, beside_metadata)
    WHERE p.data IS NOT NULL

-- name: part_parents
-- Of runs that have one: a parent may start children in a namespace that accepts no other runs.
LEFT JOIN rows(:parents) AS p (run_id uuid, parent_run_id uuid, parent_step_id text, on_close smallint) ON p.run_id = g.run_id

-- name: part_signals
-- Signals that new runs begin with.
, sent AS MATERIALIZED (
    SELECT * FROM rows(:signals) AS s (run_id uuid, name text, request_id text, payload bytea, metadata text)
)

-- name: part_unless_signalled
-- If an ended run of the workflow id already has the signal that the new one would begin with, the start is checked
-- afterwards, too.
    AND NOT EXISTS (
        SELECT 1 FROM sent AS s CROSS JOIN LATERAL (
            SELECT b.run_id FROM runs AS b
            WHERE b.namespace = g.namespace AND b.workflow_id = g.workflow_id AND b.status IN ({RUN.ENDED})
            ORDER BY b.created_at DESC LIMIT :most_runs::bigint
        ) AS e
        JOIN signals AS h ON h.run_id = e.run_id AND h.request_id = s.request_id
        WHERE s.run_id = g.run_id
    )

-- name: start_runs
-- See part_new_runs.
{new_family_runs}, labelled AS (
    INSERT INTO run_labels (namespace, key, value, created_at, run_id)
    SELECT made.namespace, l.key, l.value, :now, made.run_id
    FROM rows(:labels) AS l (run_id uuid, key text, value text)
    JOIN made USING (run_id)
), signalled AS (
    INSERT INTO signals (run_id, number, received_at, name, request_id, payload, payload_meta)
    SELECT made.run_id, 1, :now, s.name, s.request_id, s.payload, s.metadata::json FROM sent AS s JOIN made USING (run_id)
)
SELECT array_agg(run_id::text) AS run_ids, array_agg(run_id::text) FILTER (WHERE status = {RUN.PENDING}) AS waiting FROM made;

-- name: start_plain_runs
-- The same without parents, labels and signals, which few have: every part of a statement costs time even if it has
-- nothing to do.
{new_plain_runs}
SELECT array_agg(run_id::text) AS run_ids, array_agg(run_id::text) FILTER (WHERE status = {RUN.PENDING}) AS waiting FROM made;

-- name: start_lone_run
-- The same for one run, without arrays: a lone caller waits for this round trip.
{new_lone_run}
SELECT status = {RUN.PENDING} AS waits FROM made;

-- name: find_starts
-- Why a start created no run: the runs with its request id or workflow id, and the settings of the namespace.
SELECT g.n, n.namespace IS NOT NULL AS known, n.enabled, n.limiting, n.deleting_at IS NOT NULL AS deleting, t.when_full = 'queue' IS FALSE AS guarded,
    q.run_id::text AS request_run_id, q.workflow_id AS request_workflow_id, q.workflow_type AS request_type, q.status AS request_status,
    o.run_id::text AS open_run_id, o.workflow_type AS open_type, o.status AS open_status,
    c.run_id::text AS completed_run_id, c.workflow_type AS completed_type
FROM rows(:starts) WITH ORDINALITY AS g (
    namespace text, workflow_id text, request_id text, or_completed bool, workflow_type text, n
)
LEFT JOIN namespaces AS n ON n.namespace = g.namespace
LEFT JOIN workflow_types AS t ON t.namespace = g.namespace AND t.workflow_type = g.workflow_type AND t.limiting
LEFT JOIN runs AS q ON q.namespace = g.namespace AND q.request_id = g.request_id
LEFT JOIN runs AS o ON o.namespace = g.namespace AND o.workflow_id = g.workflow_id AND o.status IN ({RUN.OPEN})
LEFT JOIN LATERAL (
    SELECT r.run_id, r.workflow_type, r.status FROM runs AS r
    WHERE g.or_completed AND r.namespace = g.namespace AND r.workflow_id = g.workflow_id AND r.status IN ({RUN.ENDED})
    ORDER BY r.created_at DESC LIMIT 1
) AS c ON c.status = {RUN.COMPLETED}
ORDER BY g.n;

-- name: lock_namespaces
-- Limits hold exactly: a transaction that counts against one holds this lock until its runs are created or claimed.
SELECT namespace, open_runs_limit, running_runs_limit, starts_per_second_limit, stored_bytes_limit, next_start_at, stored_bytes
FROM namespaces
WHERE namespace = ANY (:namespaces::text[]) ORDER BY namespace FOR UPDATE;

-- name: count_open_runs
-- How many open runs a namespace has. Counting stops at its limit.
SELECT count(*) AS runs FROM (
    SELECT 1 FROM runs WHERE namespace = :namespace::text AND status IN ({RUN.OPEN}) LIMIT :limit::bigint
) AS counted;

-- name: count_in_queue
-- How many runs of a type, or of one of its keys, run or wait and are not being cancelled. Counting stops when enough
-- are found.
SELECT count(*) AS runs FROM (
    (
        SELECT 1 FROM runs
        WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text AND ready_at IS NOT NULL AND cancel_requested_at IS NULL
            AND (:concurrency_key::text IS NULL OR concurrency_key = :concurrency_key) LIMIT :limit::bigint
    )
    UNION ALL
    (
        SELECT 1 FROM runs
        WHERE namespace = :namespace AND workflow_type = :workflow_type AND lease_until IS NOT NULL AND cancel_requested_at IS NULL
            AND (:concurrency_key IS NULL OR concurrency_key = :concurrency_key) LIMIT :limit
    )
) AS counted;

-- name: oldest_open_of_type
-- The oldest open runs of a type that are not being cancelled, whatever they wait for: those that a new one replaces.
-- Not starts whose time has not come. Ids grow with time. Few runs are paused: an index by type would read all that have
-- ended.
SELECT run_id::text AS run_id FROM (
    SELECT run_id FROM runs
    WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text AND ready_at IS NOT NULL AND cancel_requested_at IS NULL
    UNION ALL
    SELECT run_id FROM runs
    WHERE namespace = :namespace AND workflow_type = :workflow_type AND lease_until IS NOT NULL AND cancel_requested_at IS NULL
    UNION ALL
    (
        SELECT run_id FROM runs
        WHERE namespace = :namespace AND workflow_type = :workflow_type AND created_at >= 0 AND status = {RUN.SLEEPING}
            AND lease > 0 AND cancel_requested_at IS NULL
        ORDER BY created_at, run_id LIMIT :limit
    )
    UNION ALL
    (
        SELECT run_id FROM runs
        WHERE namespace = :namespace AND workflow_type || '' = :workflow_type AND created_at >= 0 AND status = {RUN.PAUSED}
            AND cancel_requested_at IS NULL
        ORDER BY created_at, run_id LIMIT :limit
    )
) AS inside
ORDER BY run_id LIMIT :limit::bigint;

-- name: oldest_open_of_key
-- The same for one of its keys.
SELECT run_id::text AS run_id FROM runs
WHERE namespace = :namespace AND workflow_type = :workflow_type AND concurrency_key = :concurrency_key AND finished_at IS NULL
    AND cancel_requested_at IS NULL AND (status + 0 <> {RUN.SLEEPING} OR lease > 0)
ORDER BY run_id LIMIT :limit::bigint;

-- name: lock_blockers
-- Runs that new ones wait for: those that are open are watched from now on. Incrementing their seq shows that they have
-- changed.
UPDATE runs AS r SET watched = true, seq = r.seq + 1
WHERE r.run_id = ANY (ARRAY(
    SELECT b.run_id FROM runs AS b
    JOIN unnest(:namespaces::text[], :run_ids::uuid[]) AS g (namespace, run_id) ON g.run_id = b.run_id
        AND g.namespace IS NOT DISTINCT FROM b.namespace
    ORDER BY b.run_id FOR UPDATE OF b
)) AND r.status + 0 IN ({RUN.OPEN})
RETURNING r.run_id::text AS run_id;

-- name: terminate_run
-- Ends the run now, without its worker.
UPDATE runs SET status = {RUN.CANCELLED}, finished_at = :now::bigint, error = :error::text::json, seq = seq + 1, lease_until = NULL,
    queued_us = queued_us + coalesce(greatest(:now - ready_at, 0), 0), ready_at = NULL, due_at = NULL, wait_reason = NULL, pause_requested = false, diverged = false, blocked_by = NULL,
    cascade_due = cascade_due OR has_children, awaits_signal = 0, retrying_steps = 0
WHERE run_id = :run_id::uuid AND status + 0 IN ({RUN.OPEN})
RETURNING run_id::text AS run_id;
