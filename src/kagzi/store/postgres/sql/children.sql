-- name: lock_family
-- These runs and, for those of the second list, all runs with a step that waits for their end, or that begin after it,
-- in the order of their ids: every transaction locks several runs in this order.
WITH ending AS MATERIALIZED (
    SELECT run_id, namespace, parent_run_id, watched FROM runs WHERE run_id = ANY (:ending::uuid[])
)
SELECT run_id::text AS run_id, namespace, workflow_id, workflow_type, status, lease, nonce, worker_id, has_children,
    cancel_requested_at, pause_requested, unread_signals
FROM runs
WHERE run_id = ANY (ARRAY(
    SELECT wanted.run_id FROM unnest(:run_ids::uuid[]) AS wanted (run_id)
    UNION
    SELECT p.run_id FROM ending AS e
    JOIN runs AS p ON p.run_id = e.parent_run_id AND p.namespace IS NOT DISTINCT FROM e.namespace WHERE e.watched
    UNION
    SELECT l.parent_run_id FROM ending AS e JOIN child_links AS l ON l.namespace = e.namespace AND l.child_run_id = e.run_id
    UNION
    SELECT b.run_id FROM ending AS e
    JOIN runs AS b ON b.blocked_by = e.run_id AND b.namespace IS NOT DISTINCT FROM e.namespace WHERE b.blocked_by IS NOT NULL
))
ORDER BY run_id
FOR UPDATE;

-- name: lock_parents
-- The same for runs that are already locked, without waiting: returns the runs for which some row could not be locked.
WITH ending AS MATERIALIZED (
    SELECT run_id, namespace, parent_run_id, watched FROM runs WHERE run_id = ANY (:run_ids::uuid[])
), watchers AS MATERIALIZED (
    SELECT e.run_id AS child, p.run_id AS parent FROM ending AS e
    JOIN runs AS p ON p.run_id = e.parent_run_id AND p.namespace IS NOT DISTINCT FROM e.namespace WHERE e.watched
    UNION
    SELECT e.run_id, l.parent_run_id FROM ending AS e
    JOIN child_links AS l ON l.namespace = e.namespace AND l.child_run_id = e.run_id
    UNION
    SELECT e.run_id, b.run_id FROM ending AS e
    JOIN runs AS b ON b.blocked_by = e.run_id AND b.namespace IS NOT DISTINCT FROM e.namespace WHERE b.blocked_by IS NOT NULL
), locked AS MATERIALIZED (
    SELECT run_id FROM runs WHERE run_id = ANY (ARRAY(SELECT parent FROM watchers)) ORDER BY run_id
    FOR UPDATE SKIP LOCKED
)
SELECT DISTINCT watchers.child::text AS run_id FROM watchers
JOIN runs AS p ON p.run_id = watchers.parent
WHERE watchers.parent NOT IN (SELECT run_id FROM locked);

-- name: find_children
-- What a child start refers to: the child it started before, the runs with its request id or workflow id, and the
-- namespace.
SELECT g.n, n.open_runs_limit, t.when_full = 'queue' IS FALSE AS guarded,
    k.run_id::text AS child_run_id, k.workflow_type AS child_type, k.status AS child_status,
    q.run_id::text AS request_run_id, q.workflow_type AS request_type, q.status AS request_status,
    (q.parent_run_id, q.parent_step_id) IS NOT DISTINCT FROM (g.parent_run_id, g.step_id) AS request_is_own,
    o.run_id::text AS open_run_id, o.workflow_type AS open_type, o.status AS open_status
FROM rows(:children) WITH ORDINALITY AS g (
    namespace text, parent_run_id uuid, step_id text, workflow_id text, request_id text, workflow_type text, n
)
LEFT JOIN namespaces AS n ON n.namespace = g.namespace
LEFT JOIN workflow_types AS t ON t.namespace = g.namespace AND t.workflow_type = g.workflow_type AND t.limiting
LEFT JOIN steps AS s ON s.run_id = g.parent_run_id AND s.step_id = g.step_id
LEFT JOIN runs AS k ON k.run_id = s.child_run_id AND k.namespace IS NOT DISTINCT FROM g.namespace
LEFT JOIN runs AS q ON q.namespace = g.namespace AND q.request_id = g.request_id
LEFT JOIN runs AS o ON o.namespace = g.namespace AND o.workflow_id = g.workflow_id AND o.status IN ({RUN.OPEN})
ORDER BY g.n;

-- name: link_children
-- Attached: one more step waits for these runs. Incrementing their seq shows that they have changed.
WITH g AS MATERIALIZED (
    SELECT * FROM rows(:links) AS g (child_run_id uuid, parent_run_id uuid, parent_step_id text, namespace text)
), linked AS (
    INSERT INTO child_links (namespace, child_run_id, parent_run_id, parent_step_id)
    SELECT namespace, child_run_id, parent_run_id, parent_step_id FROM g
    ON CONFLICT DO NOTHING
)
UPDATE runs AS r SET watched = true, seq = r.seq + 1
FROM (SELECT DISTINCT child_run_id, namespace FROM g) AS c
WHERE r.run_id = c.child_run_id AND r.namespace IS NOT DISTINCT FROM c.namespace;

-- name: names_of_runs
-- How the errors of their parents name them.
SELECT run_id::text AS run_id, workflow_type, workflow_id FROM runs WHERE run_id = ANY (:run_ids::uuid[]);

-- name: notify_parents
-- Runs have ended: every step that waits for one gets the result, with a copy of the output, and its run is woken once.
-- Runs that were to begin after one begin, or may when they are resumed. `status` is the status of the run when the
-- result arrived. The parents are read by a later statement than the one that locked them.
WITH g AS MATERIALIZED (
    SELECT * FROM unnest(:run_ids::uuid[], :errors::text[]) WITH ORDINALITY AS g (run_id, error, n)
), watchers AS MATERIALIZED (
    SELECT g.n, g.run_id AS child, g.error, r.parent_run_id AS parent, r.parent_step_id AS step_id, r.namespace
    FROM g JOIN runs AS r ON r.run_id = g.run_id
    WHERE r.watched
    UNION
    SELECT g.n, g.run_id, g.error, l.parent_run_id, l.parent_step_id, r.namespace
    FROM g JOIN runs AS r ON r.run_id = g.run_id
    JOIN child_links AS l ON l.namespace = r.namespace AND l.child_run_id = r.run_id
), waiting AS MATERIALIZED (
    SELECT w.*, p.status, row_number() OVER (PARTITION BY w.parent ORDER BY w.n, s.begun_seq) AS place,
        count(*) OVER (PARTITION BY w.parent) AS total
    FROM watchers AS w
    JOIN runs AS p ON p.run_id = w.parent AND p.namespace IS NOT DISTINCT FROM w.namespace AND p.status + 0 IN ({RUN.OPEN})
    JOIN steps AS s ON s.run_id = w.parent AND s.step_id = w.step_id
    WHERE s.kind = {KIND.CHILD} AND s.status = {STEP.RUNNING} AND s.child_run_id = w.child
), parents AS (
    UPDATE runs AS p
    SET seq = p.seq + w.total, result_seq = p.seq + w.total, lost_leases = 0,
        status = CASE WHEN p.status = {RUN.SLEEPING} THEN {RUN.PENDING} ELSE p.status END,
        nonce = CASE WHEN p.status = {RUN.SLEEPING} THEN 0 ELSE p.nonce END,
        ready_at = CASE WHEN p.status = {RUN.SLEEPING} THEN :now::bigint ELSE p.ready_at END, due_at = NULL, wait_reason = NULL
    FROM (SELECT DISTINCT parent, status, total FROM waiting) AS w
    WHERE p.run_id = w.parent AND p.status + 0 IN ({RUN.OPEN})
    RETURNING p.run_id, p.seq - w.total AS base, p.namespace, p.workflow_type, p.lease, p.nonce, p.worker_id,
        w.status
), resolved AS (
    UPDATE steps AS s
    SET status = CASE WHEN w.error IS NULL THEN {STEP.COMPLETED} ELSE {STEP.FAILED} END, seq = p.base + w.place, finished_at = :now, due_at = NULL,
        error = w.error::json, output = o.output, output_meta = o.output_meta
    FROM waiting AS w
    JOIN parents AS p ON p.run_id = w.parent
    LEFT JOIN steps AS o ON o.run_id = w.child AND o.step_id = '$output'
    WHERE s.run_id = w.parent AND s.step_id = w.step_id AND s.status = {STEP.RUNNING}
), freed AS (
    UPDATE runs AS b
    SET blocked_by = NULL, seq = b.seq + 1, status = CASE WHEN b.status = {RUN.SLEEPING} THEN {RUN.PENDING} ELSE b.status END,
        ready_at = CASE WHEN b.status = {RUN.SLEEPING} THEN :now ELSE b.ready_at END, due_at = NULL, wait_reason = NULL
    FROM g JOIN runs AS r ON r.run_id = g.run_id
    WHERE b.blocked_by = r.run_id AND b.namespace IS NOT DISTINCT FROM r.namespace AND b.blocked_by IS NOT NULL
        AND b.status + 0 IN ({RUN.SLEEPING}, {RUN.PAUSED})
    RETURNING b.run_id, b.namespace, b.workflow_type, b.lease, b.nonce, b.worker_id,
        CASE WHEN b.status = {RUN.PENDING} THEN {RUN.SLEEPING} ELSE b.status END AS status
)
SELECT run_id::text AS run_id, namespace, workflow_type, lease, nonce, worker_id, status FROM parents
UNION ALL
SELECT run_id::text, namespace, workflow_type, lease, nonce, worker_id, status FROM freed
ORDER BY run_id;

-- name: context_metadata
-- When a context is replaced, the server's own metadata is kept.
SELECT metadata FROM ({context_of_run}) AS c;

-- name: continue_run
-- A run that has just ended continues as a new one, which takes over its workflow id, its attributes, its place in its
-- parent, the steps that wait for it, the runs that begin after it, and the signals that were not consumed.
WITH old AS MATERIALIZED (
    SELECT * FROM runs WHERE run_id = :run_id::uuid
), made AS (
    INSERT INTO runs (
        {run.continued}, watched, unread_signals, run_id, request_id, version, status, ready_at, created_at, pause_reason
    )
    SELECT {run.continued}, watched, unread_signals, :new_run_id::uuid, :run_id::text || '/continued', :version::text,
        CASE WHEN :paused::bool THEN {RUN.PAUSED} ELSE {RUN.PENDING} END, CASE WHEN :paused THEN NULL ELSE :now::bigint END,
        :now, CASE WHEN :paused THEN pause_reason END
    FROM old
), payloads AS (
    INSERT INTO steps (run_id, step_id, name, kind, status, begun_seq, created_at, finished_at, output, output_meta)
    SELECT :new_run_id, '$input', '$input', {KIND.INPUT}, {STEP.COMPLETED}, 0, :now, :now, :input::bytea, :input_meta::text::json
    UNION ALL
    SELECT :new_run_id, '$context', '$context', {KIND.CONTEXT}, {STEP.COMPLETED}, 0, :now, :now, :context::bytea, :context_meta::text::json
    WHERE :context IS NOT NULL
    UNION ALL
    SELECT :new_run_id, '$context', '$context', {KIND.CONTEXT}, {STEP.COMPLETED}, 0, :now, :now, c.data, c.metadata
    FROM ({context_of_run}) AS c WHERE :context IS NULL
    UNION ALL
    SELECT :new_run_id, step_id, name, kind, {STEP.COMPLETED}, 0, :now, finished_at, output, output_meta FROM steps
    WHERE run_id = :run_id AND step_id = '$state'
), labelled AS (
    INSERT INTO run_labels (namespace, key, value, created_at, run_id)
    SELECT old.namespace, l.key, l.value, :now, :new_run_id FROM old CROSS JOIN LATERAL json_each_text(old.labels) AS l (key, value)
), unconsumed AS (
    UPDATE signals SET run_id = :new_run_id WHERE run_id = :run_id AND step_id IS NULL
), emptied AS (
    UPDATE runs AS r SET unread_signals = 0 FROM old WHERE r.run_id = old.run_id
), watchers AS MATERIALIZED (
    SELECT p.run_id AS parent, old.parent_step_id AS step_id, old.namespace
    FROM old JOIN runs AS p ON p.run_id = old.parent_run_id AND p.namespace IS NOT DISTINCT FROM old.namespace WHERE old.watched
    UNION
    SELECT l.parent_run_id, l.parent_step_id, l.namespace
    FROM old JOIN child_links AS l ON l.namespace = old.namespace AND l.child_run_id = old.run_id
), links AS (
    UPDATE child_links AS l SET child_run_id = :new_run_id FROM old WHERE l.namespace = old.namespace AND l.child_run_id = old.run_id
), behind AS (
    UPDATE runs AS b SET blocked_by = :new_run_id, seq = b.seq + 1 FROM old
    WHERE b.blocked_by = old.run_id AND b.namespace IS NOT DISTINCT FROM old.namespace AND b.blocked_by IS NOT NULL
), parents AS (
    UPDATE runs AS p SET seq = p.seq + 1 FROM (SELECT DISTINCT parent, namespace FROM watchers) AS w
    WHERE p.run_id = w.parent AND p.namespace IS NOT DISTINCT FROM w.namespace
)
UPDATE steps AS s SET child_run_id = :new_run_id FROM watchers AS w
WHERE s.run_id = w.parent AND s.step_id = w.step_id AND s.kind = {KIND.CHILD} AND s.status = {STEP.RUNNING} AND s.child_run_id = :run_id;
