-- name: claim_runs
-- Lock and lease wanted runs: each group is a type, a set of versions, a build and a number; locked rows are skipped.
-- History is read by the next statement: this one locks new rows but would read with an old snapshot. Runs of
-- namespaces that limit running runs are marked: unless that namespace is locked, the claim is rolled back. So are runs
-- of types with limits, of which one is enough to tell. Stops after about :most_bytes bytes (input, context and first
-- step of each run, which are read whole); `truncated`: there are more.
WITH groups AS MATERIALIZED (
    SELECT g.*,
        (SELECT array_agg(v.version) FROM rows(:versions) AS v (n int, version text) WHERE v.n = g.n) AS versions,
        n.running_runs_limit AS run_limit, t.limiting IS TRUE AS type_limited
    FROM rows(:groups) WITH ORDINALITY AS g (namespace text, workflow_type text, first_version text, build_id text, wanted bigint, n)
    LEFT JOIN namespaces AS n ON n.namespace = g.namespace
    LEFT JOIN workflow_types AS t ON t.namespace = g.namespace AND t.workflow_type = g.workflow_type
), picked AS MATERIALIZED (
    SELECT groups.n, groups.run_limit IS NOT NULL AS limited, groups.type_limited, p.run_id, p.ready_at AS was_ready_at,
        row_number() OVER (PARTITION BY groups.n ORDER BY p.priority DESC, p.ready_at, p.run_id) AS place
    FROM groups
    CROSS JOIN LATERAL (
        SELECT r.run_id, r.priority, r.ready_at FROM runs AS r
        WHERE r.namespace = groups.namespace AND r.workflow_type = groups.workflow_type AND r.ready_at IS NOT NULL
            AND (r.version IS NULL OR r.version = ANY (groups.versions)) AND (r.pinned_build IS NULL OR r.pinned_build = groups.build_id)
            AND (r.deadline_at > :now::bigint) IS NOT FALSE
        ORDER BY r.priority DESC, r.ready_at, r.run_id
        LIMIT CASE
            WHEN groups.type_limited THEN 1
            WHEN groups.run_limit IS NULL THEN groups.wanted
            ELSE greatest(0, least(groups.wanted, groups.run_limit - (
                SELECT count(*) FROM runs AS c WHERE c.namespace = groups.namespace AND c.lease_until IS NOT NULL
            )))
        END
        FOR UPDATE SKIP LOCKED
    ) AS p
), sized AS MATERIALIZED (
    SELECT picked.*, sum(payload.bytes) OVER (ORDER BY picked.n, picked.place) - payload.bytes AS before
    FROM picked CROSS JOIN LATERAL (
        SELECT coalesce(sum(octet_length(s.output) + coalesce(octet_length(s.details), 0)), 0) AS bytes
        FROM (
            SELECT output, details FROM steps WHERE steps.run_id = picked.run_id AND begun_seq >= 0
            ORDER BY begun_seq LIMIT 3
        ) AS s
    ) AS payload
), taken AS (
    UPDATE runs AS r
    SET status = {RUN.RUNNING}, lease = r.lease + 1, nonce = :nonce::bigint, lease_until = :until::bigint, worker_id = w.worker_id,
        version = coalesce(r.version, groups.first_version), ready_at = NULL, claimed_at = :now,
        started_at = coalesce(r.started_at, :now), queued_us = r.queued_us + greatest(:now - r.ready_at, 0),
        queued_at = CASE WHEN r.started_at IS NULL THEN coalesce(r.queued_at, r.ready_at) ELSE r.queued_at END,
        own_traces_from = CASE
            WHEN r.own_traces_from = 0 AND (r.created_at < :old_before::bigint OR r.seq >= :long_seq::bigint) THEN r.lease + 1
            ELSE r.own_traces_from
        END
    FROM sized AS picked
    JOIN groups ON groups.n = picked.n
    JOIN rows(:shares) AS w (n int, worker_id text, after bigint, until bigint)
        ON w.n = picked.n AND picked.place > w.after AND picked.place <= w.until
    WHERE r.run_id = picked.run_id AND picked.before < :most_bytes::bigint
    RETURNING r.*, picked.n, picked.place, picked.limited, picked.type_limited, picked.was_ready_at
)
SELECT run_id::text AS run_id, namespace, lease, nonce, worker_id, workflow_id, workflow_type, version, attempt, labels,
    created_at, started_at, was_ready_at, deadline_at, seq, cancel_requested_at, cancel_reason, parent_run_id::text AS parent_run_id, own_traces_from,
    limited, type_limited,
    EXISTS (SELECT 1 FROM sized WHERE sized.before >= :most_bytes) AS truncated
FROM taken ORDER BY n, place;

-- name: first_pages
-- Input, context and the first page of history of claimed runs: whole steps up to the limit of bytes, at least one.
SELECT wanted.n, p.* FROM unnest(:run_ids::uuid[]) WITH ORDINALITY AS wanted (run_id, n)
CROSS JOIN LATERAL (
    SELECT sized.*, sized.total - sized.bytes AS before FROM (
        SELECT s.*, sum(s.bytes) OVER (ORDER BY s.begun_seq, s.step_id) AS total,
            lead(s.begun_seq) OVER (ORDER BY s.begun_seq, s.step_id) IS NOT NULL AS more
        FROM (
            SELECT step_id, kind, status, begun_seq, attempt, seq, coalesce(finished_at, started_at) AS at, output, output_meta, error, retry_at,
                wake_at, child_run_id::text AS child_run_id, details, details_meta,
                CASE WHEN kind = {KIND.INPUT} THEN input END AS context, CASE WHEN kind = {KIND.INPUT} THEN input_meta END AS context_meta,
                CASE WHEN kind >= {KIND.FIRST_PAYLOAD} THEN 0 ELSE :step_bytes::bigint + coalesce(octet_length(output), 0) + octet_length(step_id)
                    + coalesce(octet_length(error::text), 0) + coalesce(octet_length(details), 0) END AS bytes
            FROM steps WHERE steps.run_id = wanted.run_id AND kind NOT IN ({KIND.OUTPUT}, {KIND.STATE}) AND begun_seq >= 0
            ORDER BY steps.begun_seq LIMIT :page_steps::bigint
        ) AS s
    ) AS sized
) AS p
WHERE p.total <= :page_bytes::bigint OR p.before = 0
ORDER BY wanted.n, p.begun_seq;

-- name: next_page
-- A later page of the same, only for the holder of the lease: no row if another worker holds the run. Without the
-- results that it has.
SELECT r.run_id IS NOT NULL AS leased, p.* FROM runs AS r
LEFT JOIN LATERAL (
    SELECT sized.*, sized.total - sized.bytes AS before FROM (
        SELECT s.*, sum(s.bytes) OVER (ORDER BY s.begun_seq) AS total,
            lead(s.begun_seq) OVER (ORDER BY s.begun_seq) IS NOT NULL AS more
        FROM (
            SELECT step_id, kind, status, begun_seq, attempt, seq, coalesce(finished_at, started_at) AS at, n.output, n.output_meta, n.error, retry_at,
                wake_at, child_run_id::text AS child_run_id, n.details, n.details_meta,
                :step_bytes::bigint + coalesce(octet_length(n.output), 0) + octet_length(step_id)
                    + coalesce(octet_length(n.error::text), 0) + coalesce(octet_length(n.details), 0) AS bytes
            FROM steps LEFT JOIN LATERAL (
                SELECT steps.output, steps.output_meta, steps.error, steps.details, steps.details_meta
            ) AS n ON (steps.seq BETWEEN 1 AND :known_seq::bigint) IS NOT TRUE
            WHERE steps.run_id = r.run_id AND kind < {KIND.FIRST_PAYLOAD} AND begun_seq >= 0 AND steps.begun_seq > :after::bigint
            ORDER BY steps.begun_seq LIMIT :page_steps::bigint
        ) AS s
    ) AS sized
) AS p ON p.total <= :page_bytes::bigint OR p.before = 0
WHERE r.run_id = :run_id::uuid AND r.namespace IS NOT DISTINCT FROM :namespace::text AND r.lease = :lease::bigint AND r.nonce = :nonce::bigint AND r.status + 0 = {RUN.RUNNING}
ORDER BY p.begun_seq;

-- name: lock_types
-- Limits hold exactly: a transaction that counts against those of a type holds this lock until its runs are created or
-- claimed.
SELECT t.* FROM workflow_types AS t
WHERE (t.namespace, t.workflow_type) IN (SELECT * FROM unnest(:namespaces::text[], :workflow_types::text[])) AND t.limiting
ORDER BY t.namespace, t.workflow_type FOR UPDATE;

-- name: running_of_type
-- Used permits of a type, by key. A namespace has no more running runs than its workers have slots.
SELECT coalesce(concurrency_key, '') AS key, count(*) AS runs FROM runs
WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text AND lease_until IS NOT NULL GROUP BY 1;

-- name: count_running_runs
-- How many runs of a namespace are running.
SELECT count(*) AS runs FROM runs WHERE namespace = :namespace::text AND lease_until IS NOT NULL;

-- name: pending_of_type
-- The head of a queue: of all runs, or only of those never claimed.
SELECT run_id::text AS run_id, '' AS key, priority, ready_at, lease = 0 AS first, 0 AS place FROM runs
WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text AND ready_at IS NOT NULL
    AND (version IS NULL OR version = ANY (:versions::text[])) AND (pinned_build IS NULL OR pinned_build = :build_id::text)
    AND (deadline_at > :now::bigint) IS NOT FALSE
    AND (lease = 0 OR NOT :only_new::bool)
ORDER BY priority DESC, ready_at, run_id LIMIT :limit::bigint;

-- name: going_on_of_type
-- The first runs that were claimed before: rates do not count them.
SELECT run_id::text AS run_id, coalesce(concurrency_key, '') AS key, priority, ready_at, false AS first FROM runs
WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text AND ready_at IS NOT NULL AND lease > 0
    AND (version IS NULL OR version = ANY (:versions::text[])) AND (pinned_build IS NULL OR pinned_build = :build_id::text)
    AND (deadline_at > :now::bigint) IS NOT FALSE
ORDER BY priority DESC, ready_at, run_id LIMIT :limit::bigint;

-- name: pending_by_key
-- Used permits of a type, by key (rows without a place); and the first runs of one key after the other, from the one
-- after :after_key on and around to it. Of a full key nothing is read, however long its queue is: the key alone shows
-- that it was passed. At most :most_keys keys beyond the full ones are read. Runs without a key that were started
-- before their type had limits by key have no place in turn (0): they are taken from the head of the queue.
WITH RECURSIVE running AS MATERIALIZED (
    SELECT coalesce(concurrency_key, '') AS key, count(*) AS runs FROM runs
    WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text AND lease_until IS NOT NULL GROUP BY 1
), capacity AS MATERIALIZED (
    SELECT count(*) AS keys, (:max_running::bigint IS NULL OR coalesce(sum(runs), 0) < :max_running) AS some FROM running
), keys (key, wrapped, place) AS (
    (
        SELECT n.key, n.wrapped, 1 FROM (
            (
                SELECT r.concurrency_key AS key, false AS wrapped FROM runs AS r
                WHERE r.namespace = :namespace AND r.workflow_type = :workflow_type AND r.ready_at IS NOT NULL AND r.concurrency_key IS NOT NULL
                    AND r.concurrency_key > :after_key::text
                ORDER BY r.namespace, r.workflow_type, r.concurrency_key LIMIT 1
            )
            UNION ALL
            (
                SELECT r.concurrency_key, true FROM runs AS r
                WHERE r.namespace = :namespace AND r.workflow_type = :workflow_type AND r.ready_at IS NOT NULL AND r.concurrency_key IS NOT NULL
                    AND r.concurrency_key <= :after_key
                ORDER BY r.namespace, r.workflow_type, r.concurrency_key LIMIT 1
            )
        ) AS n, capacity WHERE capacity.some LIMIT 1
    )
    UNION ALL
    SELECT n.key, n.wrapped, k.place + 1 FROM keys AS k CROSS JOIN capacity CROSS JOIN LATERAL (
        (
            SELECT r.concurrency_key AS key, k.wrapped FROM runs AS r
            WHERE r.namespace = :namespace AND r.workflow_type = :workflow_type AND r.ready_at IS NOT NULL AND r.concurrency_key IS NOT NULL
                AND r.concurrency_key > k.key AND (NOT k.wrapped OR r.concurrency_key <= :after_key)
            ORDER BY r.namespace, r.workflow_type, r.concurrency_key LIMIT 1
        )
        UNION ALL
        (
            SELECT r.concurrency_key, true FROM runs AS r
            WHERE NOT k.wrapped AND r.namespace = :namespace AND r.workflow_type = :workflow_type AND r.ready_at IS NOT NULL
                AND r.concurrency_key IS NOT NULL AND r.concurrency_key <= :after_key
            ORDER BY r.namespace, r.workflow_type, r.concurrency_key LIMIT 1
        )
        LIMIT 1
    ) AS n
    WHERE k.place < :most_keys::bigint + capacity.keys
)
SELECT k.key, k.place, p.run_id::text AS run_id, p.priority, p.ready_at, p.first, 0 AS runs FROM keys AS k
LEFT JOIN running ON running.key = k.key
LEFT JOIN LATERAL (
    SELECT r.run_id, r.priority, r.ready_at, r.lease = 0 AS first FROM runs AS r
    WHERE r.namespace = :namespace AND r.workflow_type = :workflow_type AND r.concurrency_key IS NOT NULL AND r.concurrency_key = k.key
        AND r.ready_at IS NOT NULL AND (r.version IS NULL OR r.version = ANY (:versions::text[]))
        AND (r.pinned_build IS NULL OR r.pinned_build = :build_id::text)
        AND (r.deadline_at > :now::bigint) IS NOT FALSE
    ORDER BY r.priority DESC, r.ready_at, r.run_id
    LIMIT CASE WHEN k.key <> '' AND running.runs >= :max_running_per_key::bigint THEN 0 ELSE :limit::bigint END
) AS p ON true
UNION ALL
SELECT '', 0, h.run_id::text, h.priority, h.ready_at, h.lease = 0, 0 FROM capacity CROSS JOIN LATERAL (
    SELECT r.run_id, r.priority, r.ready_at, r.lease, r.version, r.pinned_build, r.deadline_at, r.concurrency_key FROM runs AS r
    WHERE r.namespace = :namespace AND r.workflow_type = :workflow_type AND r.ready_at IS NOT NULL AND capacity.some
    ORDER BY r.priority DESC, r.ready_at, r.run_id LIMIT 100
) AS h
WHERE h.concurrency_key IS NULL AND (h.version IS NULL OR h.version = ANY (:versions))
    AND (h.pinned_build IS NULL OR h.pinned_build = :build_id) AND (h.deadline_at > :now) IS NOT FALSE
UNION ALL
SELECT running.key, NULL, NULL, NULL, NULL, NULL, running.runs FROM running
ORDER BY 2 NULLS FIRST;

-- name: key_rates
-- When these keys may start their next run.
SELECT concurrency_key AS key, next_start_at FROM workflow_keys
WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text AND concurrency_key = ANY (:keys::text[]);

-- name: claim_chosen
-- Lease the runs that the limits allow, unless another transaction has locked them or they were adopted to another
-- build. Also records where the next claim continues, and when the next start is due: if nothing could be leased,
-- nothing was started.
WITH picked AS MATERIALIZED (
    SELECT r.run_id, r.ready_at AS was_ready_at, g.place, g.worker_id FROM runs AS r
    JOIN unnest(:run_ids::uuid[], :worker_ids::text[]) WITH ORDINALITY AS g (run_id, worker_id, place) ON g.run_id = r.run_id
    WHERE r.status + 0 = {RUN.PENDING} AND (r.pinned_build IS NULL OR r.pinned_build = :build_id::text)
    FOR UPDATE OF r SKIP LOCKED
), turned AS (
    UPDATE workflow_types SET next_start_at = :next_start_at::bigint, turn = :turn::text
    WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text AND (next_start_at, turn) <> (:next_start_at, :turn)
        AND EXISTS (SELECT 1 FROM picked)
), taken AS (
    UPDATE runs AS r
    SET status = {RUN.RUNNING}, lease = r.lease + 1, nonce = :nonce::bigint, lease_until = :until::bigint, worker_id = picked.worker_id,
        version = coalesce(r.version, :version::text), ready_at = NULL, claimed_at = :now::bigint,
        started_at = coalesce(r.started_at, :now), queued_us = r.queued_us + greatest(:now - r.ready_at, 0),
        queued_at = CASE WHEN r.started_at IS NULL THEN coalesce(r.queued_at, r.ready_at) ELSE r.queued_at END,
        own_traces_from = CASE
            WHEN r.own_traces_from = 0 AND (r.created_at < :old_before::bigint OR r.seq >= :long_seq::bigint) THEN r.lease + 1
            ELSE r.own_traces_from
        END
    FROM picked WHERE r.run_id = picked.run_id
    RETURNING r.*, picked.place, picked.was_ready_at
)
SELECT run_id::text AS run_id, namespace, lease, nonce, worker_id, workflow_id, workflow_type, version, attempt, labels,
    created_at, started_at, was_ready_at, deadline_at, seq, cancel_requested_at, cancel_reason, parent_run_id::text AS parent_run_id, own_traces_from
FROM taken ORDER BY place;

-- name: note_turn
-- Where the next claim continues, and when the next start is due.
UPDATE workflow_types SET next_start_at = :next_start_at::bigint, turn = :turn::text
WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text;

-- name: note_key_rates
-- When these keys may start their next run. Rows whose time has passed are deleted, a few at a time.
WITH gone AS (
    DELETE FROM workflow_keys AS k
    USING (
        SELECT concurrency_key FROM workflow_keys
        WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text AND next_start_at < :now::bigint
            AND concurrency_key <> ALL (:keys::text[])
        ORDER BY namespace, workflow_type, next_start_at LIMIT 100
    ) AS past
    WHERE k.namespace = :namespace AND k.workflow_type = :workflow_type AND k.concurrency_key = past.concurrency_key
)
INSERT INTO workflow_keys (namespace, workflow_type, concurrency_key, next_start_at)
SELECT :namespace, :workflow_type, g.key, g.at FROM unnest(:keys, :times::bigint[]) AS g (key, at)
ON CONFLICT (namespace, workflow_type, concurrency_key) DO UPDATE SET next_start_at = excluded.next_start_at;

-- name: types_that_wait
-- Those of these types that have a pending run.
SELECT g.namespace, g.workflow_type FROM unnest(:namespaces::text[], :workflow_types::text[]) AS g (namespace, workflow_type)
WHERE EXISTS (
    SELECT 1 FROM runs AS r
    WHERE r.namespace = g.namespace AND r.workflow_type = g.workflow_type AND r.ready_at IS NOT NULL
);
