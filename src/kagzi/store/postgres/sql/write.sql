-- name: write_fast
-- The most frequent statement: fence each run by updating its row (a join or FOR SHARE is not a fence), then record its
-- steps, in one round trip. `status + 0` and IS NOT DISTINCT FROM keep the planner to the index of run_id, even in a
-- plan made on empty tables. Groups are sorted by run_id, which is the order of locking. What concerns other runs (the
-- end of a child or of a parent) and what a cancelled run begins does not use this path. A step with a timeout that has
-- not passed has a due time: few have one, and only they are in that index.
WITH g AS MATERIALIZED (
    SELECT * FROM rows(:groups) WITH ORDINALITY AS g (
        run_id uuid, namespace text, lease bigint, nonce bigint, taken int, rows int, begins int, result int, retried int,
        closes bool, n
    )
), leased AS (
    UPDATE runs AS r
    SET seq = r.seq + g.taken,
        result_seq = CASE WHEN g.result > 0 THEN r.seq + g.result ELSE r.result_seq END,
        steps = r.steps + coalesce(g.begins, 0),
        status = CASE WHEN g.closes THEN {RUN.COMPLETED} ELSE {RUN.RUNNING} END,
        finished_at = CASE WHEN g.closes THEN :now::bigint END,
        lost_leases = CASE WHEN g.result > 0 THEN 0 ELSE r.lost_leases END,
        pause_requested = r.pause_requested AND g.closes IS NULL,
        awaits_signal = CASE WHEN g.closes THEN 0 ELSE r.awaits_signal END,
        retrying_steps = CASE WHEN g.closes THEN 0 ELSE r.retrying_steps - coalesce(g.retried, 0) END,
        lease_until = CASE WHEN g.closes THEN NULL WHEN r.lease_until < :renew_before::bigint THEN :until::bigint ELSE r.lease_until END
    FROM g
    WHERE r.run_id = g.run_id AND r.namespace IS NOT DISTINCT FROM g.namespace AND r.lease = g.lease AND r.nonce = g.nonce
        AND r.status + 0 = {RUN.RUNNING} AND (r.deadline_at > :now) IS NOT FALSE AND r.steps + coalesce(g.begins, 0) <= :most_steps::int
        AND (g.begins IS NULL OR r.cancel_requested_at IS NULL) AND (g.closes IS NULL OR NOT (r.watched OR r.has_children OR r.unread_signals > 0))
    RETURNING g.n, g.rows, r.run_id, r.seq - g.taken AS base, r.lease, r.nonce, r.worker_id
), begun AS (
    INSERT INTO steps AS s (
        run_id, step_id, name, kind, status, begun_seq, seq, lease, nonce, created_at, started_at, finished_at,
        due_at, timeout_ms, worker_id, parent_step_id, parallel_group_id, retry, input, input_meta, output, output_meta
    )
    SELECT h.run_id, b.step_id, b.name, coalesce(b.kind, {KIND.FUNCTION}),
        CASE WHEN b.result > 0 THEN {STEP.COMPLETED} ELSE {STEP.RUNNING} END, h.base + b.begun,
        CASE WHEN b.result > 0 THEN h.base + b.result ELSE 0 END, h.lease, h.nonce, :now, :now,
        CASE WHEN b.result > 0 THEN :now END, CASE WHEN b.result IS NULL THEN :now + b.timeout_ms * 1000 END,
        coalesce(b.timeout_ms, 0), h.worker_id, b.parent_step_id, b.parallel_group_id,
        b.retry::json, b.input, b.input_meta::json, b.output, b.output_meta::json
    FROM rows(:begun) AS b (
        n int, step_id text, name text, kind smallint, begun int, result int, timeout_ms bigint, parent_step_id text,
        parallel_group_id text, retry text, input bytea, input_meta text, output bytea, output_meta text
    )
    JOIN leased AS h ON h.n = b.n
    ON CONFLICT (run_id, step_id) DO UPDATE
    SET status = excluded.status, begun_seq = excluded.begun_seq, seq = excluded.seq, lease = excluded.lease,
        nonce = excluded.nonce, started_at = excluded.started_at, finished_at = excluded.finished_at,
        retry = CASE WHEN s.lease = 0 THEN excluded.retry ELSE s.retry END,
        timeout_ms = excluded.timeout_ms, due_at = excluded.due_at,
        worker_id = excluded.worker_id, output = excluded.output, output_meta = excluded.output_meta,
        input = coalesce(excluded.input, s.input),
        input_meta = CASE WHEN excluded.input IS NULL THEN s.input_meta ELSE excluded.input_meta END
    WHERE s.kind = excluded.kind AND s.kind = {KIND.FUNCTION} AND s.status = {STEP.RUNNING} AND s.attempt = 1 AND NOT s.once
        AND (s.lease, s.nonce) <> (excluded.lease, excluded.nonce)
    RETURNING 1
), completed AS (
    UPDATE steps AS s
    SET status = {STEP.COMPLETED}, seq = h.base + c.result, finished_at = :now, output = c.output, output_meta = c.output_meta::json,
        lease = h.lease, nonce = h.nonce, worker_id = h.worker_id, due_at = NULL
    FROM rows(:completed) AS c (n int, step_id text, attempt int, result int, output bytea, output_meta text)
    JOIN leased AS h ON h.n = c.n
    WHERE s.run_id = h.run_id AND s.step_id = c.step_id AND s.kind = {KIND.FUNCTION} AND s.status = {STEP.RUNNING} AND s.attempt = c.attempt
    RETURNING 1
)
-- If not all steps fit (usually because of a repeat), this divides by zero: nothing is kept, and each command is
-- processed alone. SQL has no other way to abort a statement; a transaction around each batch, to be rolled back
-- instead, doubles the cost of a batch: 530 instead of 255 us of CPU beside the database for 20 runs (python -m
-- tests.store.postgres.measure_abort).
SELECT array_agg(n) AS groups, array_agg(base) AS bases,
    1 / (sum(rows) = (SELECT count(*) FROM begun) + (SELECT count(*) FROM completed))::int AS fits
FROM leased;

-- name: write_recorded
-- The fast path for runs that each record one step, and possibly end: the rules of write_fast with the fewest columns,
-- since most steps arrive like this. The values of the step pass through the update of its run, so that nothing is
-- joined. A step that exists already violates the primary key: nothing is kept, and each command is processed alone.
-- (ON CONFLICT would detect steps that begin again after a lost lease, which are few, and would make every step a sixth
-- more expensive in the database.)
WITH leased AS (
    UPDATE runs AS r
    SET seq = r.seq + CASE WHEN g.closes THEN 3 ELSE 2 END, result_seq = r.seq + 2, steps = r.steps + 1, lost_leases = 0,
        status = CASE WHEN g.closes THEN {RUN.COMPLETED} ELSE {RUN.RUNNING} END, finished_at = CASE WHEN g.closes THEN :now::bigint END,
        pause_requested = r.pause_requested AND g.closes IS NULL,
        awaits_signal = CASE WHEN g.closes THEN 0 ELSE r.awaits_signal END,
        retrying_steps = CASE WHEN g.closes THEN 0 ELSE r.retrying_steps END,
        lease_until = CASE WHEN g.closes THEN NULL WHEN r.lease_until < :renew_before::bigint THEN :until::bigint ELSE r.lease_until END
    FROM rows(:steps) WITH ORDINALITY AS g (
        run_id uuid, namespace text, lease bigint, nonce bigint, step_id text, name text, timeout_ms bigint, parent_step_id text,
        parallel_group_id text, retry text, input bytea, input_meta text, output bytea, output_meta text, closes bool, result bytea,
        result_meta text, n
    )
    WHERE r.run_id = g.run_id AND r.namespace IS NOT DISTINCT FROM g.namespace AND r.lease = g.lease AND r.nonce = g.nonce
        AND r.status + 0 = {RUN.RUNNING} AND (r.deadline_at > :now) IS NOT FALSE AND r.steps + 1 <= :most_steps::int
        AND r.cancel_requested_at IS NULL AND (g.closes IS NULL OR NOT (r.watched OR r.has_children OR r.unread_signals > 0))
    RETURNING g.*, r.seq - CASE WHEN g.closes THEN 3 ELSE 2 END AS base, r.worker_id
), begun AS (
    INSERT INTO steps (
        run_id, step_id, name, kind, status, begun_seq, seq, lease, nonce, created_at, started_at, finished_at,
        timeout_ms, worker_id, parent_step_id, parallel_group_id, retry, input, input_meta, output, output_meta
    )
    SELECT run_id, step_id, name, {KIND.FUNCTION}, {STEP.COMPLETED}, base + 1, base + 2, lease, nonce, :now, :now, :now,
        coalesce(timeout_ms, 0), worker_id, parent_step_id, parallel_group_id, retry::json, input, input_meta::json, output,
        output_meta::json
    FROM leased
    UNION ALL
    SELECT run_id, '$output', '$output', {KIND.OUTPUT}, {STEP.COMPLETED}, base + 3, base + 3, lease, nonce, :now, :now, :now,
        0, worker_id, NULL, NULL, NULL, NULL, NULL, result, result_meta::json
    FROM leased WHERE closes
)
SELECT array_agg(n) AS groups, array_agg(base) AS bases FROM leased;

-- name: lone_step
-- The fast path for one step that begins and completes: the same rules without arrays, since a lone run waits for this
-- round trip. As in write_recorded, a step that exists already violates the primary key.
WITH leased AS (
    UPDATE runs AS r
    SET seq = r.seq + 2, result_seq = r.seq + 2, steps = r.steps + 1, lost_leases = 0,
        lease_until = CASE WHEN r.lease_until < :renew_before::bigint THEN :until::bigint ELSE r.lease_until END
    WHERE r.run_id = :run_id::uuid AND r.namespace IS NOT DISTINCT FROM :namespace::text AND r.lease = :lease::bigint AND r.nonce = :nonce::bigint
        AND r.status + 0 = {RUN.RUNNING} AND (r.deadline_at > :now::bigint) IS NOT FALSE AND r.steps + 1 <= :most_steps::int
        AND r.cancel_requested_at IS NULL
    RETURNING r.run_id, r.seq - 2 AS base, r.lease, r.nonce, r.worker_id
), begun AS (
    INSERT INTO steps (
        run_id, step_id, name, kind, status, begun_seq, seq, lease, nonce, created_at, started_at, finished_at,
        timeout_ms, worker_id, parent_step_id, parallel_group_id, retry, input, input_meta, output, output_meta
    )
    SELECT h.run_id, :step_id::text, :name::text, {KIND.FUNCTION}, {STEP.COMPLETED}, h.base + 1, h.base + 2, h.lease, h.nonce, :now, :now, :now,
        :timeout_ms::bigint, h.worker_id, :parent_step_id::text, :parallel_group_id::text, :retry::text::json, :input::bytea, :input_meta::text::json, :output::bytea,
        :output_meta::text::json
    FROM leased AS h
)
SELECT base FROM leased;

-- name: lone_end
-- The same for one step that begins and completes and ends its run.
WITH leased AS (
    UPDATE runs AS r
    SET seq = r.seq + 3, result_seq = r.seq + 2, steps = r.steps + 1, lost_leases = 0, status = {RUN.COMPLETED},
        finished_at = :now::bigint, pause_requested = false, awaits_signal = 0, retrying_steps = 0, lease_until = NULL
    WHERE r.run_id = :run_id::uuid AND r.namespace IS NOT DISTINCT FROM :namespace::text AND r.lease = :lease::bigint AND r.nonce = :nonce::bigint
        AND r.status + 0 = {RUN.RUNNING} AND (r.deadline_at > :now) IS NOT FALSE AND r.steps + 1 <= :most_steps::int
        AND r.cancel_requested_at IS NULL AND NOT (r.watched OR r.has_children OR r.unread_signals > 0)
    RETURNING r.run_id, r.seq - 3 AS base, r.lease, r.nonce, r.worker_id
), begun AS (
    INSERT INTO steps (
        run_id, step_id, name, kind, status, begun_seq, seq, lease, nonce, created_at, started_at, finished_at,
        timeout_ms, worker_id, parent_step_id, parallel_group_id, retry, input, input_meta, output, output_meta
    )
    SELECT h.run_id, s.step_id, s.name, s.kind, {STEP.COMPLETED}, h.base + s.begun, h.base + s.result, h.lease, h.nonce, :now, :now, :now,
        s.timeout_ms, h.worker_id, s.parent_step_id, s.parallel_group_id, s.retry::json, s.input, s.input_meta::json, s.output,
        s.output_meta::json
    FROM leased AS h CROSS JOIN (VALUES
        (:step_id::text, :name::text, {KIND.FUNCTION}, 1, 2, :timeout_ms::bigint, :parent_step_id::text, :parallel_group_id::text,
            :retry::text, :input::bytea, :input_meta::text, :output::bytea, :output_meta::text),
        ('$output', '$output', {KIND.OUTPUT}, 3, 3, 0, NULL, NULL, NULL, NULL, NULL, :result::bytea, :result_meta::text)
    ) AS s (
        step_id, name, kind, begun, result, timeout_ms, parent_step_id, parallel_group_id, retry, input, input_meta, output, output_meta
    )
)
SELECT base FROM leased;

-- name: read_for_write
-- A run and the steps that commands name; for one that parks also its open waits, and results its worker has not seen,
-- oldest first. Payloads only if they are returned to the worker, and only up to the limits of bytes for the page of
-- its run (:page_bytes) and for the responses of the batch (:answer_bytes), in the order of the commands (place);
-- `withheld` marks the others. The first of all is never withheld. Joined tables are materialized: the planner assumes
-- that lists of commands are short, and would compute them again for each command.
WITH g AS MATERIALIZED (
    SELECT * FROM rows(:groups) WITH ORDINALITY AS g (
        run_id uuid, namespace text, known_seq bigint, begins int, place int, n
    )
), named AS MATERIALIZED (
    SELECT * FROM rows(:named) AS named (n int, step_id text, attempt int, shown_to_worker bool)
), r AS MATERIALIZED (
    SELECT g.n, g.known_seq, g.place, r.*,
        CASE
            WHEN r.steps + g.begins <= :most_steps::int THEN r.steps
            ELSE (SELECT count(*)::int FROM steps AS s WHERE s.run_id = r.run_id AND s.kind < {KIND.FIRST_PAYLOAD})
        END AS step_count
    FROM g JOIN runs AS r ON r.run_id = g.run_id AND r.namespace IS NOT DISTINCT FROM g.namespace
), wanted AS (
    SELECT r.n, r.run_id, r.place, w.step_id, bool_or(w.shown_to_worker) AS shown_to_worker
    FROM r JOIN (
        SELECT n, step_id, shown_to_worker FROM named
        UNION ALL
        SELECT r.n, s.step_id, false FROM r JOIN steps AS s ON s.run_id = r.run_id
        WHERE r.known_seq IS NOT NULL AND s.due_at IS NOT NULL
        UNION ALL
        SELECT r.n, s.step_id, true FROM r CROSS JOIN LATERAL (
            SELECT step_id FROM steps
            WHERE steps.run_id = r.run_id AND steps.seq > r.known_seq AND steps.kind < {KIND.FIRST_PAYLOAD} AND steps.status <> {STEP.ABANDONED}
            ORDER BY steps.seq LIMIT :page_steps::bigint
        ) AS s
        WHERE r.result_seq > r.known_seq
    ) AS w USING (n)
    GROUP BY r.n, r.run_id, r.place, w.step_id
), sized AS (
    SELECT w.n, w.place, w.shown_to_worker, s.*,
        CASE WHEN w.shown_to_worker THEN 200 + octet_length(s.step_id) + coalesce(octet_length(s.output), 0)
            + coalesce(octet_length(s.error::text), 0) + coalesce(octet_length(s.details), 0) ELSE 0 END AS bytes
    FROM wanted AS w JOIN steps AS s ON s.run_id = w.run_id AND s.step_id = w.step_id
), s AS MATERIALIZED (
    SELECT sized.*, NOT shown_to_worker OR sum(bytes) OVER everything = bytes
        OR (sum(bytes) OVER everything <= :answer_bytes::bigint
            AND (sum(bytes) OVER page <= :page_bytes::bigint OR sum(bytes) OVER page = bytes)) AS included
    FROM sized
    WINDOW everything AS (ORDER BY place, n, seq, step_id), page AS (PARTITION BY n ORDER BY seq, step_id)
), a AS MATERIALIZED (
    SELECT w.n, a.* FROM (SELECT DISTINCT n, step_id, attempt FROM named) AS w
    JOIN r USING (n)
    JOIN steps AS c ON c.run_id = r.run_id AND c.step_id = w.step_id
    JOIN step_attempts AS a ON a.run_id = r.run_id AND a.step_id = w.step_id AND a.forgotten = 0
        AND a.attempt = CASE WHEN w.attempt = 0 THEN c.attempt - 1 ELSE w.attempt END
), matched AS MATERIALIZED (
    SELECT r.n AS number, s.*, a.attempt AS a_attempt, a.begun_seq AS a_begun_seq, a.seq AS a_seq, a.lease AS a_lease,
        a.nonce AS a_nonce, a.started_at AS a_started_at, a.finished_at AS a_finished_at, a.retry_at AS a_retry_at,
        s.shown_to_worker AND s.included AND row_number() OVER (PARTITION BY r.n, s.step_id) = 1 AS shown
    FROM r LEFT JOIN s ON s.n = r.n LEFT JOIN a ON a.n = s.n AND a.step_id = s.step_id
)
SELECT r.n, r.namespace, r.run_id::text AS run_id, r.status AS run_status, r.lease AS run_lease, r.nonce AS run_nonce,
    r.seq AS run_seq, r.result_seq, r.step_count, r.attempt AS run_attempt, r.ready_at,
    r.due_at AS run_due_at, r.wait_reason, r.deadline_at, r.finished_at AS run_finished_at, r.cancel_requested_at,
    r.worker_id AS run_worker_id, r.retry AS run_retry, r.watched, r.has_children, r.cascade_due, r.pause_requested,
    r.unread_signals, r.cancel_reason, (r.cancel_requested_at >= coalesce(r.claimed_at, 0)) IS TRUE AS cancel_unseen,
    r.continued_as::text AS continued_as,
    s.step_id, s.name, s.kind, s.status, s.attempt, s.begun_seq, s.seq, s.lease, s.nonce, s.created_at, s.started_at,
    s.finished_at, s.retry_at, s.wake_at, s.retry, s.timeout_ms, s.once, s.worker_id, s.parent_step_id,
    s.parallel_group_id, s.child_run_id::text AS child_run_id, NOT s.included AS withheld, s.shown,
    CASE WHEN s.shown OR s.status < {STEP.COMPLETED} THEN s.error END AS error,
    CASE WHEN s.shown THEN s.output END AS output, CASE WHEN s.shown THEN s.output_meta END AS output_meta,
    CASE WHEN s.shown THEN s.details END AS details, CASE WHEN s.shown THEN s.details_meta END AS details_meta,
    s.a_attempt, s.a_begun_seq, s.a_seq, s.a_lease, s.a_nonce, s.a_started_at, s.a_finished_at, s.a_retry_at
FROM r JOIN matched AS s ON s.number = r.n;

-- name: unbound_signals
-- The oldest buffered signals, as many of each name as requested; payloads up to the limit of bytes.
SELECT n, number, name, withheld, CASE WHEN NOT withheld THEN payload END AS payload,
    CASE WHEN NOT withheld THEN payload_meta END AS payload_meta
FROM (
    SELECT g.n, s.number, s.name, s.payload, s.payload_meta,
        sum(octet_length(s.payload)) OVER earlier > :answer_bytes::bigint
            AND sum(octet_length(s.payload)) OVER earlier > octet_length(s.payload) AS withheld
    FROM rows(:waits) AS g (n int, run_id uuid, name text, wanted bigint, place int)
    CROSS JOIN LATERAL (
        SELECT * FROM signals
        WHERE signals.run_id = g.run_id AND signals.name = g.name AND signals.step_id IS NULL
        ORDER BY signals.number LIMIT g.wanted
    ) AS s
    WINDOW earlier AS (ORDER BY g.place, g.n, s.number)
) AS matched
ORDER BY n, number;

-- name: signals_to_take_back
-- Of each name the first signal whose wait was given up before its code received it, and all later ones that are bound:
-- no code has received them either. Then the steps that wait for that name, as many as may get one.
WITH abandoned AS MATERIALIZED (
    SELECT * FROM rows(:waits) AS w (n int, run_id uuid, step_id text)
), first AS MATERIALIZED (
    SELECT w.n, w.run_id, s.name, min(s.number) AS number, count(*) AS waits
    FROM abandoned AS w JOIN signals AS s ON s.run_id = w.run_id AND s.step_id = w.step_id
    GROUP BY w.n, w.run_id, s.name
)
SELECT f.n, s.name, s.number, s.step_id FROM first AS f
JOIN signals AS s ON s.run_id = f.run_id AND s.name = f.name AND s.number >= f.number AND s.step_id IS NOT NULL AND s.step_id <> :dropped::text
UNION ALL
SELECT f.n, f.name, NULL, o.step_id FROM first AS f
CROSS JOIN LATERAL (
    SELECT w.step_id FROM steps AS w
    WHERE w.run_id = f.run_id AND w.due_at IS NOT NULL AND w.kind = {KIND.SIGNAL} AND w.status = {STEP.RUNNING} AND w.name = f.name
        AND NOT EXISTS (SELECT 1 FROM abandoned AS g WHERE g.n = f.n AND g.step_id = w.step_id)
    ORDER BY w.begun_seq LIMIT f.waits
) AS o
ORDER BY n, number NULLS LAST;

-- name: refill_waits
-- The value of a wait is that of the signal bound to it; without one it has none.
UPDATE steps AS s SET output = g.payload, output_meta = g.payload_meta
FROM (
    SELECT w.run_id, w.step_id, b.payload, b.payload_meta
    FROM rows(:waits) AS w (run_id uuid, step_id text) LEFT JOIN signals AS b ON b.run_id = w.run_id AND b.step_id = w.step_id
) AS g
WHERE s.run_id = g.run_id AND s.step_id = g.step_id;

-- name: settle
-- Write what was decided after reading, on condition that nothing was recorded since: seq is the run's version.
WITH g AS MATERIALIZED (
    SELECT * FROM rows(:runs) WITH ORDINALITY AS g (
        run_id uuid, namespace text, lease bigint, nonce bigint, read_seq bigint, seq bigint, result_seq bigint,
        steps int, attempt int, status smallint, wait_reason smallint, due_at bigint, ready_at bigint,
        finished_at bigint, error text, problem text, progressed bool, has_children bool, cascade_due bool,
        pause_requested bool, diverged bool, continued_as uuid, status_text text, progress double precision,
        tried_build text, unpin_build bool, waits int, retries int, unread int, n
    )
), leased AS (
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
        pinned_build = CASE WHEN NOT g.unpin_build THEN r.pinned_build END,
        lost_leases = CASE WHEN g.progressed THEN 0 ELSE r.lost_leases END,
        awaits_signal = CASE WHEN g.finished_at IS NULL THEN r.awaits_signal + g.waits ELSE 0 END,
        unread_signals = r.unread_signals + g.unread,
        retrying_steps = CASE WHEN g.finished_at IS NULL THEN r.retrying_steps + g.retries ELSE 0 END,
        lease_until = CASE
            WHEN g.status <> {RUN.RUNNING} THEN NULL WHEN r.lease_until < :renew_before::bigint THEN :until::bigint ELSE r.lease_until
        END
    FROM g
    WHERE r.run_id = g.run_id AND r.namespace IS NOT DISTINCT FROM g.namespace AND r.lease = g.lease AND r.nonce = g.nonce
        AND r.status + 0 = {RUN.RUNNING} AND r.seq = g.read_seq AND (r.deadline_at > :now::bigint) IS NOT FALSE
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
    FROM rows(:steps) AS b (
        n int, step_id text, name text, kind smallint, status smallint, attempt int, begun_seq bigint, seq bigint,
        lease bigint, nonce bigint, created_at bigint, started_at bigint, finished_at bigint, due_at bigint,
        retry_at bigint, wake_at bigint, timeout_ms bigint, once bool, worker_id text, parent_step_id text,
        parallel_group_id text, child_run_id uuid, retry text, error text, input bytea, input_meta text, output bytea,
        output_meta text, details bytea, details_meta text
    )
    JOIN leased AS h ON h.n = b.n
    ON CONFLICT (run_id, step_id) DO UPDATE
    SET status = excluded.status, attempt = excluded.attempt, begun_seq = excluded.begun_seq, seq = excluded.seq,
        lease = excluded.lease, nonce = excluded.nonce, started_at = excluded.started_at,
        finished_at = excluded.finished_at, due_at = excluded.due_at, retry_at = excluded.retry_at,
        wake_at = excluded.wake_at, retry = excluded.retry, timeout_ms = excluded.timeout_ms, once = excluded.once,
        worker_id = excluded.worker_id, error = excluded.error, child_run_id = coalesce(excluded.child_run_id, s.child_run_id),
        input = coalesce(excluded.input, s.input),
        input_meta = CASE WHEN excluded.input IS NULL THEN s.input_meta ELSE excluded.input_meta END,
        output = coalesce(excluded.output, s.output),
        output_meta = CASE WHEN excluded.output IS NULL THEN s.output_meta ELSE excluded.output_meta END,
        details = coalesce(excluded.details, s.details),
        details_meta = CASE WHEN excluded.details IS NULL THEN s.details_meta ELSE excluded.details_meta END
), archived AS (
    INSERT INTO step_attempts (
        run_id, step_id, attempt, begun_seq, seq, lease, nonce, started_at, finished_at, retry_at, worker_id, error, input, input_meta,
        forgotten
    )
    SELECT h.run_id, a.step_id, a.attempt, a.begun_seq, a.seq, a.lease, a.nonce, a.started_at, a.finished_at, a.retry_at,
        a.worker_id, a.error::json, a.input, a.input_meta::json, CASE WHEN a.step_id = '$paused' THEN a.seq ELSE 0 END
    FROM rows(:attempts) AS a (
        n int, step_id text, attempt int, begun_seq bigint, seq bigint, lease bigint, nonce bigint, started_at bigint,
        finished_at bigint, retry_at bigint, worker_id text, error text, input bytea, input_meta text
    )
    JOIN leased AS h ON h.n = a.n
), bound AS (
    UPDATE signals AS s SET step_id = nullif(b.step_id, '')
    FROM rows(:signals) AS b (n int, number bigint, step_id text)
    JOIN leased AS h ON h.n = b.n
    WHERE s.run_id = h.run_id AND s.number = b.number
)
SELECT array_agg(n) AS groups FROM leased;

-- name: locked_runs
-- Which of these rows other transactions have locked right now; the others can proceed.
WITH free AS MATERIALIZED (
    SELECT run_id FROM runs WHERE run_id = ANY (:run_ids::uuid[]) ORDER BY run_id FOR UPDATE SKIP LOCKED
)
SELECT run_id::text AS run_id FROM runs WHERE run_id = ANY (:run_ids) EXCEPT SELECT run_id::text FROM free;
