-- name: claim_runs
-- Lock and lease what is wanted: each group is a type, a set of versions and how many; locked rows are passed over.
-- History is read by the next statement: this one locks new rows but would read with an old snapshot.
-- Runs of namespaces that limit running ones are marked: unless their row is locked, the claim is taken back. So are those of
-- types with limits, of which one is enough to tell.
-- No more are taken than about $14 bytes go (input, context and first step of each, which are read whole); `cut`: there are more.
WITH groups AS MATERIALIZED (
    SELECT g.*,
        (SELECT array_agg(v.version) FROM unnest($8::int[], $9::text[]) AS v (n, version) WHERE v.n = g.n) AS versions,
        n.running_runs_limit AS run_limit, t.limiting IS TRUE AS gated
    FROM unnest($4::text[], $5::text[], $6::text[], $7::bigint[]) WITH ORDINALITY
        AS g (namespace, workflow_type, first_version, wanted, n)
    LEFT JOIN namespaces AS n ON n.namespace = g.namespace
    LEFT JOIN workflow_types AS t ON t.namespace = g.namespace AND t.workflow_type = g.workflow_type
), picked AS MATERIALIZED (
    SELECT groups.n, groups.run_limit IS NOT NULL AS limited, groups.gated, p.run_id,
        row_number() OVER (PARTITION BY groups.n ORDER BY p.priority DESC, p.ready_at, p.run_id) AS place
    FROM groups
    CROSS JOIN LATERAL (
        SELECT r.run_id, r.priority, r.ready_at FROM runs AS r
        WHERE r.namespace = groups.namespace AND r.workflow_type = groups.workflow_type AND r.ready_at IS NOT NULL
            AND (r.version IS NULL OR r.version = ANY (groups.versions))
            AND (r.deadline_at > $1::bigint) IS NOT FALSE
        ORDER BY r.priority DESC, r.ready_at, r.run_id
        LIMIT CASE
            WHEN groups.gated THEN 1
            WHEN groups.run_limit IS NULL THEN groups.wanted
            ELSE greatest(0, least(groups.wanted, groups.run_limit - (
                SELECT count(*) FROM runs AS c WHERE c.namespace = groups.namespace AND c.lease_until IS NOT NULL
            )))
        END
        FOR UPDATE SKIP LOCKED
    ) AS p
), sized AS MATERIALIZED (
    SELECT picked.*, sum(held.bytes) OVER (ORDER BY picked.n, picked.place) - held.bytes AS before
    FROM picked CROSS JOIN LATERAL (
        SELECT coalesce(sum(octet_length(s.output) + coalesce(octet_length(s.details), 0)), 0) AS bytes
        FROM (
            SELECT output, details FROM steps WHERE steps.run_id = picked.run_id AND begun_seq >= 0
            ORDER BY begun_seq LIMIT 3
        ) AS s
    ) AS held
), taken AS (
    UPDATE runs AS r
    SET status = 2, lease = r.lease + 1, nonce = $2::bigint, lease_until = $3::bigint, worker_id = w.worker_id,
        version = coalesce(r.version, groups.first_version), ready_at = NULL, claimed_at = $1,
        started_at = coalesce(r.started_at, $1)
    FROM sized AS picked
    JOIN groups ON groups.n = picked.n
    JOIN unnest($10::int[], $11::text[], $12::bigint[], $13::bigint[]) AS w (n, worker_id, after, until)
        ON w.n = picked.n AND picked.place > w.after AND picked.place <= w.until
    WHERE r.run_id = picked.run_id AND picked.before < $14::bigint
    RETURNING r.*, picked.n, picked.place, picked.limited, picked.gated
)
SELECT run_id::text AS run_id, namespace, lease, nonce, worker_id, workflow_id, workflow_type, version, attempt, labels,
    created_at, deadline_at, seq, cancel_requested_at, cancel_reason, parent_run_id::text AS parent_run_id, limited, gated,
    EXISTS (SELECT 1 FROM sized WHERE sized.before >= $14) AS cut
FROM taken ORDER BY n, place;

-- name: first_pages
-- Input, context and the first page of history of claimed runs: whole steps until the bytes are used up, at least one.
SELECT given.n, p.* FROM unnest($1::uuid[]) WITH ORDINALITY AS given (run_id, n)
CROSS JOIN LATERAL (
    SELECT sized.*, sized.total - sized.bytes AS before FROM (
        SELECT s.*, sum(s.bytes) OVER (ORDER BY s.begun_seq, s.step_id) AS total,
            lead(s.begun_seq) OVER (ORDER BY s.begun_seq, s.step_id) IS NOT NULL AS more
        FROM (
            SELECT step_id, kind, status, begun_seq, attempt, seq, finished_at, output, output_meta, error, retry_at,
                wake_at, child_run_id::text AS child_run_id, details, details_meta,
                CASE WHEN kind >= 100 THEN 0 ELSE $2::bigint + coalesce(octet_length(output), 0) + octet_length(step_id)
                    + coalesce(octet_length(error::text), 0) + coalesce(octet_length(details), 0) END AS bytes
            FROM steps WHERE steps.run_id = given.run_id AND kind <> 102 AND begun_seq >= 0
            ORDER BY steps.begun_seq LIMIT $4::bigint
        ) AS s
    ) AS sized
) AS p
WHERE p.total <= $3::bigint OR p.before = 0
ORDER BY given.n, p.begun_seq;

-- name: next_page
-- A later page of the same, for the holder of the lease only: no row at all if somebody else holds the run. Without what it knows.
SELECT r.run_id IS NOT NULL AS held, p.* FROM runs AS r
LEFT JOIN LATERAL (
    SELECT sized.*, sized.total - sized.bytes AS before FROM (
        SELECT s.*, sum(s.bytes) OVER (ORDER BY s.begun_seq) AS total,
            lead(s.begun_seq) OVER (ORDER BY s.begun_seq) IS NOT NULL AS more
        FROM (
            SELECT step_id, kind, status, begun_seq, attempt, seq, finished_at, n.output, n.output_meta, n.error, retry_at,
                wake_at, child_run_id::text AS child_run_id, n.details, n.details_meta,
                $6::bigint + coalesce(octet_length(n.output), 0) + octet_length(step_id)
                    + coalesce(octet_length(n.error::text), 0) + coalesce(octet_length(n.details), 0) AS bytes
            FROM steps LEFT JOIN LATERAL (
                SELECT steps.output, steps.output_meta, steps.error, steps.details, steps.details_meta
            ) AS n ON (steps.seq BETWEEN 1 AND $9::bigint) IS NOT TRUE
            WHERE steps.run_id = r.run_id AND kind < 100 AND begun_seq >= 0 AND steps.begun_seq > $5::bigint
            ORDER BY steps.begun_seq LIMIT $8::bigint
        ) AS s
    ) AS sized
) AS p ON p.total <= $7::bigint OR p.before = 0
WHERE r.run_id = $2::uuid AND r.namespace IS NOT DISTINCT FROM $1::text AND r.lease = $3::bigint AND r.nonce = $4::bigint AND r.status + 0 = 2
ORDER BY p.begun_seq;

-- name: lock_types
-- Limits are kept exactly: whoever counts against those of a type holds its row until the runs are made or claimed.
SELECT t.* FROM workflow_types AS t
WHERE (t.namespace, t.workflow_type) IN (SELECT * FROM unnest($1::text[], $2::text[])) AND t.limiting
ORDER BY t.namespace, t.workflow_type FOR UPDATE;

-- name: running_of_type
-- Who holds permits of a type, by key. A namespace has no more running runs than its workers have slots.
SELECT coalesce(concurrency_key, '') AS key, count(*) AS runs FROM runs
WHERE namespace = $1::text AND workflow_type = $2::text AND lease_until IS NOT NULL GROUP BY 1;

-- name: count_running_runs
-- How many permits of its own a namespace has given.
SELECT count(*) AS runs FROM runs WHERE namespace = $1::text AND lease_until IS NOT NULL;

-- name: pending_of_type
-- The first of a queue, of all or only of those never claimed.
SELECT run_id::text AS run_id, '' AS key, priority, ready_at, lease = 0 AS first, 0 AS place FROM runs
WHERE namespace = $1::text AND workflow_type = $2::text AND ready_at IS NOT NULL
    AND (version IS NULL OR version = ANY ($3::text[])) AND (deadline_at > $4::bigint) IS NOT FALSE
    AND (lease = 0 OR NOT $6::bool)
ORDER BY priority DESC, ready_at, run_id LIMIT $5::bigint;

-- name: going_on_of_type
-- The first of those that were claimed before: rates do not count them.
SELECT run_id::text AS run_id, coalesce(concurrency_key, '') AS key, priority, ready_at, false AS first FROM runs
WHERE namespace = $1::text AND workflow_type = $2::text AND ready_at IS NOT NULL AND lease > 0
    AND (version IS NULL OR version = ANY ($3::text[])) AND (deadline_at > $4::bigint) IS NOT FALSE
ORDER BY priority DESC, ready_at, run_id LIMIT $5::bigint;

-- name: pending_by_key
-- Who holds permits of a type, by key (rows without a place); and the first runs of one key after the other, from the one after
-- $6 on and around to it. Where a key is full nothing of it is read, however long its queue is: the key alone says that it was
-- passed. No further than is needed ($7), beyond the keys that are full. Runs without a key that were started before their type
-- had limits by key have no place in turn (0): they are looked for at the head of the queue.
WITH RECURSIVE running AS MATERIALIZED (
    SELECT coalesce(concurrency_key, '') AS key, count(*) AS runs FROM runs
    WHERE namespace = $1::text AND workflow_type = $2::text AND lease_until IS NOT NULL GROUP BY 1
), room AS MATERIALIZED (
    SELECT count(*) AS keys, ($9::bigint IS NULL OR coalesce(sum(runs), 0) < $9) AS some FROM running
), keys (key, wrapped, place) AS (
    (
        SELECT n.key, n.wrapped, 1 FROM (
            (
                SELECT r.concurrency_key AS key, false AS wrapped FROM runs AS r
                WHERE r.namespace = $1 AND r.workflow_type = $2 AND r.ready_at IS NOT NULL AND r.concurrency_key IS NOT NULL
                    AND r.concurrency_key > $6::text
                ORDER BY r.namespace, r.workflow_type, r.concurrency_key LIMIT 1
            )
            UNION ALL
            (
                SELECT r.concurrency_key, true FROM runs AS r
                WHERE r.namespace = $1 AND r.workflow_type = $2 AND r.ready_at IS NOT NULL AND r.concurrency_key IS NOT NULL
                    AND r.concurrency_key <= $6
                ORDER BY r.namespace, r.workflow_type, r.concurrency_key LIMIT 1
            )
        ) AS n, room WHERE room.some LIMIT 1
    )
    UNION ALL
    SELECT n.key, n.wrapped, k.place + 1 FROM keys AS k CROSS JOIN room CROSS JOIN LATERAL (
        (
            SELECT r.concurrency_key AS key, k.wrapped FROM runs AS r
            WHERE r.namespace = $1 AND r.workflow_type = $2 AND r.ready_at IS NOT NULL AND r.concurrency_key IS NOT NULL
                AND r.concurrency_key > k.key AND (NOT k.wrapped OR r.concurrency_key <= $6)
            ORDER BY r.namespace, r.workflow_type, r.concurrency_key LIMIT 1
        )
        UNION ALL
        (
            SELECT r.concurrency_key, true FROM runs AS r
            WHERE NOT k.wrapped AND r.namespace = $1 AND r.workflow_type = $2 AND r.ready_at IS NOT NULL
                AND r.concurrency_key IS NOT NULL AND r.concurrency_key <= $6
            ORDER BY r.namespace, r.workflow_type, r.concurrency_key LIMIT 1
        )
        LIMIT 1
    ) AS n
    WHERE k.place < $7::bigint + room.keys
)
SELECT k.key, k.place, p.run_id::text AS run_id, p.priority, p.ready_at, p.first, 0 AS runs FROM keys AS k
LEFT JOIN running ON running.key = k.key
LEFT JOIN LATERAL (
    SELECT r.run_id, r.priority, r.ready_at, r.lease = 0 AS first FROM runs AS r
    WHERE r.namespace = $1 AND r.workflow_type = $2 AND r.concurrency_key IS NOT NULL AND r.concurrency_key = k.key
        AND r.ready_at IS NOT NULL AND (r.version IS NULL OR r.version = ANY ($3::text[]))
        AND (r.deadline_at > $4::bigint) IS NOT FALSE
    ORDER BY r.priority DESC, r.ready_at, r.run_id
    LIMIT CASE WHEN k.key <> '' AND running.runs >= $8::bigint THEN 0 ELSE $5::bigint END
) AS p ON true
UNION ALL
SELECT '', 0, h.run_id::text, h.priority, h.ready_at, h.lease = 0, 0 FROM room CROSS JOIN LATERAL (
    SELECT r.run_id, r.priority, r.ready_at, r.lease, r.version, r.deadline_at, r.concurrency_key FROM runs AS r
    WHERE r.namespace = $1 AND r.workflow_type = $2 AND r.ready_at IS NOT NULL AND room.some
    ORDER BY r.priority DESC, r.ready_at, r.run_id LIMIT 100
) AS h
WHERE h.concurrency_key IS NULL AND (h.version IS NULL OR h.version = ANY ($3)) AND (h.deadline_at > $4) IS NOT FALSE
UNION ALL
SELECT running.key, NULL, NULL, NULL, NULL, NULL, running.runs FROM running
ORDER BY 2 NULLS FIRST;

-- name: key_rates
-- When the next start of these keys is due.
SELECT concurrency_key AS key, next_start_at FROM workflow_keys
WHERE namespace = $1::text AND workflow_type = $2::text AND concurrency_key = ANY ($3::text[]);

-- name: claim_chosen
-- Lease the runs that the limits allow, unless somebody has locked them; and note where the next claim goes on, and when the
-- next start is due: if nothing could be leased, nothing was started.
WITH picked AS MATERIALIZED (
    SELECT r.run_id, g.place, g.worker_id FROM runs AS r
    JOIN unnest($5::uuid[], $6::text[]) WITH ORDINALITY AS g (run_id, worker_id, place) ON g.run_id = r.run_id
    WHERE r.status + 0 = 1
    FOR UPDATE OF r SKIP LOCKED
), turned AS (
    UPDATE workflow_types SET next_start_at = $9::bigint, turn = $10::text
    WHERE namespace = $7::text AND workflow_type = $8::text AND (next_start_at, turn) <> ($9, $10)
        AND EXISTS (SELECT 1 FROM picked)
), taken AS (
    UPDATE runs AS r
    SET status = 2, lease = r.lease + 1, nonce = $2::bigint, lease_until = $3::bigint, worker_id = picked.worker_id,
        version = coalesce(r.version, $4::text), ready_at = NULL, claimed_at = $1::bigint,
        started_at = coalesce(r.started_at, $1)
    FROM picked WHERE r.run_id = picked.run_id
    RETURNING r.*, picked.place
)
SELECT run_id::text AS run_id, namespace, lease, nonce, worker_id, workflow_id, workflow_type, version, attempt, labels,
    created_at, deadline_at, seq, cancel_requested_at, cancel_reason, parent_run_id::text AS parent_run_id
FROM taken ORDER BY place;

-- name: note_turn
-- Where the next claim goes on, and when the next start is due.
UPDATE workflow_types SET next_start_at = $3::bigint, turn = $4::text
WHERE namespace = $1::text AND workflow_type = $2::text;

-- name: note_key_rates
-- When the next start of these keys is due. Those whose time is past say nothing any more and go, a few at a time.
WITH gone AS (
    DELETE FROM workflow_keys AS k
    USING (
        SELECT concurrency_key FROM workflow_keys
        WHERE namespace = $1::text AND workflow_type = $2::text AND next_start_at < $5::bigint
            AND concurrency_key <> ALL ($3::text[])
        ORDER BY namespace, workflow_type, next_start_at LIMIT 100
    ) AS past
    WHERE k.namespace = $1 AND k.workflow_type = $2 AND k.concurrency_key = past.concurrency_key
)
INSERT INTO workflow_keys (namespace, workflow_type, concurrency_key, next_start_at)
SELECT $1, $2, g.key, g.at FROM unnest($3, $4::bigint[]) AS g (key, at)
ON CONFLICT (namespace, workflow_type, concurrency_key) DO UPDATE SET next_start_at = excluded.next_start_at;

-- name: types_that_wait
-- Of these types those with a pending run.
SELECT g.namespace, g.workflow_type FROM unnest($1::text[], $2::text[]) AS g (namespace, workflow_type)
WHERE EXISTS (
    SELECT 1 FROM runs AS r
    WHERE r.namespace = g.namespace AND r.workflow_type = g.workflow_type AND r.ready_at IS NOT NULL
);
