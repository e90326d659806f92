-- name: wave
-- The hot one: fence each run by updating its row (a join or FOR SHARE is no fence), then record its steps, in one round trip.
-- `status + 0` and IS NOT DISTINCT FROM keep other indexes than that of run_id out of a plan that may have been made on
-- empty tables. Groups come sorted by run_id, which is the order of locking. What concerns other runs (the end of a child or
-- of a parent) and what a cancelled run begins is not for this path. A step with a timeout that is not over yet is due: that
-- concerns few, and only they are in the index.
WITH g AS MATERIALIZED (
    SELECT * FROM unnest(
        $4::uuid[], $5::text[], $6::bigint[], $7::bigint[], $8::int[], $9::int[], $10::int[], $11::int[], $12::bool[]
    ) WITH ORDINALITY AS g (run_id, namespace, lease, nonce, taken, rows, begins, result, ends, n)
), held AS (
    UPDATE runs AS r
    SET seq = r.seq + g.taken,
        result_seq = CASE WHEN g.result > 0 THEN r.seq + g.result ELSE r.result_seq END,
        steps = r.steps + coalesce(g.begins, 0),
        status = CASE WHEN g.ends THEN 4 ELSE 2 END,
        finished_at = CASE WHEN g.ends THEN $1::bigint END,
        lost_leases = CASE WHEN g.result > 0 THEN 0 ELSE r.lost_leases END,
        pause_requested = r.pause_requested AND g.ends IS NULL,
        lease_until = CASE WHEN g.ends THEN NULL WHEN r.lease_until < $3::bigint THEN $2::bigint ELSE r.lease_until END
    FROM g
    WHERE r.run_id = g.run_id AND r.namespace IS NOT DISTINCT FROM g.namespace AND r.lease = g.lease AND r.nonce = g.nonce
        AND r.status + 0 = 2 AND (r.deadline_at > $1) IS NOT FALSE AND r.steps + coalesce(g.begins, 0) <= $13::int
        AND (g.begins IS NULL OR r.cancel_requested_at IS NULL) AND (g.ends IS NULL OR NOT (r.watched OR r.has_children))
    RETURNING g.n, g.rows, r.run_id, r.seq - g.taken AS base, r.lease, r.nonce, r.worker_id
), begun AS (
    INSERT INTO steps AS s (
        run_id, step_id, name, kind, status, begun_seq, seq, lease, nonce, created_at, started_at, finished_at,
        due_at, timeout_ms, worker_id, parent_step_id, parallel_group_id, retry, input, input_meta, output, output_meta
    )
    SELECT h.run_id, b.step_id, b.name, coalesce(b.kind, 1), CASE WHEN b.result > 0 THEN 3 ELSE 2 END, h.base + b.begun,
        CASE WHEN b.result > 0 THEN h.base + b.result ELSE 0 END, h.lease, h.nonce, $1, $1,
        CASE WHEN b.result > 0 THEN $1 END, CASE WHEN b.result IS NULL THEN $1 + b.timeout_ms * 1000 END,
        coalesce(b.timeout_ms, 0), h.worker_id, b.parent_step_id, b.parallel_group_id,
        b.retry::json, b.input, b.input_meta::json, b.output, b.output_meta::json
    FROM unnest(
        $14::int[], $15::text[], $16::text[], $17::smallint[], $18::int[], $19::int[], $20::bigint[], $21::text[],
        $22::text[], $23::text[], $24::bytea[], $25::text[], $26::bytea[], $27::text[]
    ) AS b (
        n, step_id, name, kind, begun, result, timeout_ms, parent_step_id, parallel_group_id, retry, input, input_meta,
        output, output_meta
    )
    JOIN held AS h ON h.n = b.n
    ON CONFLICT (run_id, step_id) DO UPDATE
    SET status = excluded.status, begun_seq = excluded.begun_seq, seq = excluded.seq, lease = excluded.lease,
        nonce = excluded.nonce, started_at = excluded.started_at, finished_at = excluded.finished_at,
        due_at = CASE WHEN excluded.status = 2 AND s.timeout_ms > 0 THEN excluded.started_at + s.timeout_ms * 1000 END,
        worker_id = excluded.worker_id, output = excluded.output, output_meta = excluded.output_meta
    WHERE s.kind = excluded.kind AND s.kind = 1 AND s.status = 2 AND s.attempt = 1 AND NOT s.once
        AND (s.lease, s.nonce) <> (excluded.lease, excluded.nonce)
    RETURNING 1
), completed AS (
    UPDATE steps AS s
    SET status = 3, seq = h.base + c.result, finished_at = $1, output = c.output, output_meta = c.output_meta::json,
        lease = h.lease, nonce = h.nonce, worker_id = h.worker_id, due_at = NULL
    FROM unnest($28::int[], $29::text[], $30::int[], $31::int[], $32::bytea[], $33::text[])
        AS c (n, step_id, attempt, result, output, output_meta)
    JOIN held AS h ON h.n = c.n
    WHERE s.run_id = h.run_id AND s.step_id = c.step_id AND s.kind = 1 AND s.status = 2 AND s.attempt = c.attempt
    RETURNING 1
)
-- Steps that do not all fit (a repeat, most often) divide by zero: nothing is kept, and each command is looked at alone.
SELECT array_agg(n) AS groups, array_agg(base) AS bases,
    1 / (sum(rows) = (SELECT count(*) FROM begun) + (SELECT count(*) FROM completed))::int AS fits
FROM held;

-- name: lone_step
-- A wave of one step that begins and completes: the same rules without arrays, since a lone run waits for this round trip.
WITH held AS (
    UPDATE runs AS r
    SET seq = r.seq + 2, result_seq = r.seq + 2, steps = r.steps + 1, lost_leases = 0,
        lease_until = CASE WHEN r.lease_until < $3::bigint THEN $2::bigint ELSE r.lease_until END
    WHERE r.run_id = $4::uuid AND r.namespace IS NOT DISTINCT FROM $5::text AND r.lease = $6::bigint AND r.nonce = $7::bigint
        AND r.status + 0 = 2 AND (r.deadline_at > $1::bigint) IS NOT FALSE AND r.steps + 1 <= $8::int
        AND r.cancel_requested_at IS NULL
    RETURNING r.run_id, r.seq - 2 AS base, r.lease, r.nonce, r.worker_id
), begun AS (
    INSERT INTO steps AS s (
        run_id, step_id, name, kind, status, begun_seq, seq, lease, nonce, created_at, started_at, finished_at,
        timeout_ms, worker_id, parent_step_id, parallel_group_id, retry, input, input_meta, output, output_meta
    )
    SELECT h.run_id, $9::text, $10::text, 1, 3, h.base + 1, h.base + 2, h.lease, h.nonce, $1, $1, $1,
        $11::bigint, h.worker_id, $12::text, $13::text, $14::text::json, $15::bytea, $16::text::json, $17::bytea,
        $18::text::json
    FROM held AS h
    ON CONFLICT (run_id, step_id) DO UPDATE
    SET status = excluded.status, begun_seq = excluded.begun_seq, seq = excluded.seq, lease = excluded.lease,
        nonce = excluded.nonce, started_at = excluded.started_at, finished_at = excluded.finished_at, due_at = NULL,
        worker_id = excluded.worker_id, output = excluded.output, output_meta = excluded.output_meta
    WHERE s.kind = 1 AND s.status = 2 AND s.attempt = 1 AND NOT s.once
        AND (s.lease, s.nonce) <> (excluded.lease, excluded.nonce)
    RETURNING 1
)
SELECT base, 1 / (SELECT count(*) FROM begun) AS fits FROM held;  -- nothing is kept, as above

-- name: read_for_write
-- A run and the steps that commands name; for one that parks also its open waits, and results its worker has not seen, oldest first.
-- Payloads only of what is told to the worker, and only as far as the page of its run ($11) and the answers of the batch ($12) go,
-- in the order in which the commands came (place); `withheld` marks the others. The first of all is never withheld.
-- What is joined is kept: the planner takes lists of commands to be short, and would make it anew for each of them.
WITH g AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::int[], $5::int[]) WITH ORDINALITY
        AS g (run_id, namespace, known_seq, begins, place, n)
), named AS MATERIALIZED (
    SELECT * FROM unnest($6::int[], $7::text[], $8::int[], $9::bool[]) AS named (n, step_id, attempt, told)
), r AS MATERIALIZED (
    SELECT g.n, g.known_seq, g.place, r.*,
        CASE
            WHEN r.steps + g.begins <= $10::int THEN r.steps
            ELSE (SELECT count(*)::int FROM steps AS s WHERE s.run_id = r.run_id AND s.kind < 100)
        END AS step_count
    FROM g JOIN runs AS r ON r.run_id = g.run_id AND r.namespace IS NOT DISTINCT FROM g.namespace
), wanted AS (
    SELECT r.n, r.run_id, r.place, w.step_id, bool_or(w.told) AS told
    FROM r JOIN (
        SELECT n, step_id, told FROM named
        UNION ALL
        SELECT r.n, s.step_id, false FROM r JOIN steps AS s ON s.run_id = r.run_id
        WHERE r.known_seq IS NOT NULL AND s.due_at IS NOT NULL
        UNION ALL
        SELECT r.n, s.step_id, true FROM r CROSS JOIN LATERAL (
            SELECT step_id FROM steps
            WHERE steps.run_id = r.run_id AND steps.seq > r.known_seq AND steps.kind < 100 AND steps.status <> 5
            ORDER BY steps.seq LIMIT $13::bigint
        ) AS s
        WHERE r.result_seq > r.known_seq
    ) AS w USING (n)
    GROUP BY r.n, r.run_id, r.place, w.step_id
), sized AS (
    SELECT w.n, w.place, w.told, s.*,
        CASE WHEN w.told THEN 200 + octet_length(s.step_id) + coalesce(octet_length(s.output), 0)
            + coalesce(octet_length(s.error::text), 0) + coalesce(octet_length(s.details), 0) ELSE 0 END AS bytes
    FROM wanted AS w JOIN steps AS s ON s.run_id = w.run_id AND s.step_id = w.step_id
), s AS MATERIALIZED (
    SELECT sized.*, NOT told OR sum(bytes) OVER everything = bytes
        OR (sum(bytes) OVER everything <= $12::bigint
            AND (sum(bytes) OVER page <= $11::bigint OR sum(bytes) OVER page = bytes)) AS given
    FROM sized
    WINDOW everything AS (ORDER BY place, n, seq, step_id), page AS (PARTITION BY n ORDER BY seq, step_id)
), a AS MATERIALIZED (
    SELECT w.n, a.* FROM (SELECT DISTINCT n, step_id, attempt FROM named) AS w
    JOIN r USING (n)
    JOIN steps AS c ON c.run_id = r.run_id AND c.step_id = w.step_id
    JOIN step_attempts AS a ON a.run_id = r.run_id AND a.step_id = w.step_id AND a.forgotten = 0
        AND a.attempt = CASE WHEN w.attempt = 0 THEN c.attempt - 1 ELSE w.attempt END
), found AS MATERIALIZED (
    SELECT r.n AS number, s.*, a.attempt AS a_attempt, a.begun_seq AS a_begun_seq, a.seq AS a_seq, a.lease AS a_lease,
        a.nonce AS a_nonce, a.started_at AS a_started_at, a.finished_at AS a_finished_at, a.retry_at AS a_retry_at,
        s.told AND s.given AND row_number() OVER (PARTITION BY r.n, s.step_id) = 1 AS shown
    FROM r LEFT JOIN s ON s.n = r.n LEFT JOIN a ON a.n = s.n AND a.step_id = s.step_id
)
SELECT r.n, r.namespace, r.run_id::text AS run_id, r.status AS run_status, r.lease AS run_lease, r.nonce AS run_nonce,
    r.seq AS run_seq, r.result_seq, r.step_count, r.attempt AS run_attempt, r.ready_at,
    r.due_at AS run_due_at, r.wait_reason, r.deadline_at, r.finished_at AS run_finished_at, r.cancel_requested_at,
    r.worker_id AS run_worker_id, r.retry AS run_retry, r.watched, r.has_children, r.cascade_due, r.pause_requested,
    r.cancel_reason, (r.cancel_requested_at >= coalesce(r.claimed_at, 0)) IS TRUE AS cancel_unseen,
    r.continued_as::text AS continued_as,
    s.step_id, s.name, s.kind, s.status, s.attempt, s.begun_seq, s.seq, s.lease, s.nonce, s.created_at, s.started_at,
    s.finished_at, s.retry_at, s.wake_at, s.retry, s.timeout_ms, s.once, s.worker_id, s.parent_step_id,
    s.parallel_group_id, s.child_run_id::text AS child_run_id, NOT s.given AS withheld, s.shown,
    CASE WHEN s.shown OR s.status < 3 THEN s.error END AS error,
    CASE WHEN s.shown THEN s.output END AS output, CASE WHEN s.shown THEN s.output_meta END AS output_meta,
    CASE WHEN s.shown THEN s.details END AS details, CASE WHEN s.shown THEN s.details_meta END AS details_meta,
    s.a_attempt, s.a_begun_seq, s.a_seq, s.a_lease, s.a_nonce, s.a_started_at, s.a_finished_at, s.a_retry_at
FROM r JOIN found AS s ON s.number = r.n;

-- name: unbound_signals
-- The oldest signals that nobody has waited for yet, as many of each name as are asked for; what they hold as far as the bytes go.
SELECT n, number, name, withheld, CASE WHEN NOT withheld THEN payload END AS payload,
    CASE WHEN NOT withheld THEN payload_meta END AS payload_meta
FROM (
    SELECT g.n, s.number, s.name, s.payload, s.payload_meta,
        sum(octet_length(s.payload)) OVER earlier > $6::bigint
            AND sum(octet_length(s.payload)) OVER earlier > octet_length(s.payload) AS withheld
    FROM unnest($1::int[], $2::uuid[], $3::text[], $4::bigint[], $5::int[]) AS g (n, run_id, name, wanted, place)
    CROSS JOIN LATERAL (
        SELECT * FROM signals
        WHERE signals.run_id = g.run_id AND signals.name = g.name AND signals.step_id IS NULL
        ORDER BY signals.number LIMIT g.wanted
    ) AS s
    WINDOW earlier AS (ORDER BY g.place, g.n, s.number)
) AS found
ORDER BY n, number;

-- name: settle
-- Write what was decided after reading, on condition that nothing was recorded since: seq is the run's version number.
WITH g AS MATERIALIZED (
    SELECT * FROM unnest(
        $4::uuid[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::int[],
        $12::int[], $13::smallint[], $14::smallint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::text[],
        $19::text[], $20::bool[], $21::bool[], $22::bool[], $23::bool[], $24::bool[], $25::uuid[], $26::text[],
        $27::double precision[], $28::text[]
    ) WITH ORDINALITY AS g (
        run_id, namespace, lease, nonce, read_seq, seq, result_seq, steps, attempt, status, wait_reason, due_at,
        ready_at, finished_at, error, problem, progressed, has_children, cascade_due, pause_requested, diverged,
        continued_as, status_text, progress, tried_build, n
    )
), held AS (
    UPDATE runs AS r
    SET seq = g.seq, result_seq = g.result_seq, steps = g.steps, attempt = g.attempt, status = g.status,
        wait_reason = g.wait_reason, due_at = g.due_at, ready_at = g.ready_at, finished_at = g.finished_at,
        error = g.error::json, problem = coalesce(g.problem::json, r.problem), has_children = g.has_children,
        cascade_due = g.cascade_due, pause_requested = g.pause_requested, diverged = g.diverged,
        continued_as = g.continued_as, status_text = coalesce(g.status_text, r.status_text),
        progress = CASE WHEN g.status_text IS NULL THEN r.progress ELSE g.progress END,
        -- The latest 100, each once: under `kagzi dev` every saved file is a build of its own.
        tried_builds = CASE
            WHEN g.tried_build IS NULL THEN r.tried_builds
            ELSE (array_remove(coalesce(r.tried_builds, '{}'), g.tried_build) || g.tried_build)[
                cardinality(array_remove(coalesce(r.tried_builds, '{}'), g.tried_build)) - 98 :
            ]
        END,
        lost_leases = CASE WHEN g.progressed THEN 0 ELSE r.lost_leases END,
        lease_until = CASE
            WHEN g.status <> 2 THEN NULL WHEN r.lease_until < $3::bigint THEN $2::bigint ELSE r.lease_until
        END
    FROM g
    WHERE r.run_id = g.run_id AND r.namespace IS NOT DISTINCT FROM g.namespace AND r.lease = g.lease AND r.nonce = g.nonce
        AND r.status + 0 = 2 AND r.seq = g.read_seq AND (r.deadline_at > $1::bigint) IS NOT FALSE
    RETURNING g.n, r.run_id
), written AS (
    INSERT INTO steps AS s (
        run_id, step_id, name, kind, status, attempt, begun_seq, seq, lease, nonce, created_at, started_at, finished_at,
        due_at, retry_at, wake_at, timeout_ms, once, worker_id, parent_step_id, parallel_group_id, child_run_id,
        retry, error, input, input_meta, output, output_meta, details, details_meta
    )
    SELECT h.run_id, b.step_id, b.name, b.kind, b.status, b.attempt, b.begun_seq, b.seq, b.lease, b.nonce, b.created_at,
        b.started_at, b.finished_at, b.due_at, b.retry_at, b.wake_at, b.timeout_ms, b.once, b.worker_id,
        b.parent_step_id, b.parallel_group_id, b.child_run_id, b.retry::json, b.error::json, b.input,
        b.input_meta::json, b.output, b.output_meta::json, b.details, b.details_meta::json
    FROM unnest(
        $29::int[], $30::text[], $31::text[], $32::smallint[], $33::smallint[], $34::int[], $35::bigint[],
        $36::bigint[], $37::bigint[], $38::bigint[], $39::bigint[], $40::bigint[], $41::bigint[], $42::bigint[],
        $43::bigint[], $44::bigint[], $45::bigint[], $46::bool[], $47::text[], $48::text[], $49::text[], $50::uuid[],
        $51::text[], $52::text[], $53::bytea[], $54::text[], $55::bytea[], $56::text[], $57::bytea[], $58::text[]
    ) AS b (
        n, step_id, name, kind, status, attempt, begun_seq, seq, lease, nonce, created_at, started_at, finished_at,
        due_at, retry_at, wake_at, timeout_ms, once, worker_id, parent_step_id, parallel_group_id, child_run_id,
        retry, error, input, input_meta, output, output_meta, details, details_meta
    )
    JOIN held AS h ON h.n = b.n
    ON CONFLICT (run_id, step_id) DO UPDATE
    SET status = excluded.status, attempt = excluded.attempt, begun_seq = excluded.begun_seq, seq = excluded.seq,
        lease = excluded.lease, nonce = excluded.nonce, started_at = excluded.started_at,
        finished_at = excluded.finished_at, due_at = excluded.due_at, retry_at = excluded.retry_at,
        worker_id = excluded.worker_id, error = excluded.error, child_run_id = coalesce(excluded.child_run_id, s.child_run_id),
        output = coalesce(excluded.output, s.output), output_meta = coalesce(excluded.output_meta, s.output_meta),
        details = coalesce(excluded.details, s.details),
        details_meta = CASE WHEN excluded.details IS NULL THEN s.details_meta ELSE excluded.details_meta END
), archived AS (
    INSERT INTO step_attempts (
        run_id, step_id, attempt, begun_seq, seq, lease, nonce, started_at, finished_at, retry_at, worker_id, error
    )
    SELECT h.run_id, a.step_id, a.attempt, a.begun_seq, a.seq, a.lease, a.nonce, a.started_at, a.finished_at, a.retry_at,
        a.worker_id, a.error::json
    FROM unnest(
        $59::int[], $60::text[], $61::int[], $62::bigint[], $63::bigint[], $64::bigint[], $65::bigint[],
        $66::bigint[], $67::bigint[], $68::bigint[], $69::text[], $70::text[]
    ) AS a (
        n, step_id, attempt, begun_seq, seq, lease, nonce, started_at, finished_at, retry_at, worker_id, error
    )
    JOIN held AS h ON h.n = a.n
), bound AS (
    UPDATE signals AS s SET step_id = b.step_id
    FROM unnest($71::int[], $72::bigint[], $73::text[]) AS b (n, number, step_id)
    JOIN held AS h ON h.n = b.n
    WHERE s.run_id = h.run_id AND s.number = b.number
)
SELECT array_agg(n) AS groups FROM held;

-- name: locked_runs
-- Which of these rows somebody else holds locked right now: the others can go on.
WITH free AS MATERIALIZED (
    SELECT run_id FROM runs WHERE run_id = ANY ($1::uuid[]) ORDER BY run_id FOR UPDATE SKIP LOCKED
)
SELECT run_id::text AS run_id FROM runs WHERE run_id = ANY ($1) EXCEPT SELECT run_id::text FROM free;
