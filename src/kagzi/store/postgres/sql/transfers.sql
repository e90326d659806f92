-- name: export_run
-- A run with everything that is not derived.
SELECT r.*, r.run_id::text AS id, r.parent_run_id::text AS parent, r.blocked_by::text AS blocker, r.forked_from::text AS forked,
    r.continued_as::text AS successor, i.output AS input, i.output_meta AS input_meta, c.output AS context,
    c.output_meta AS context_meta, o.output AS result, o.output_meta AS result_meta
FROM runs AS r
LEFT JOIN steps AS i ON i.run_id = r.run_id AND i.step_id = '$input'
LEFT JOIN steps AS c ON c.run_id = r.run_id AND c.step_id = '$context'
LEFT JOIN steps AS o ON o.run_id = r.run_id AND o.step_id = '$output'
WHERE r.run_id = $1::uuid AND r.namespace = $2::text;

-- name: export_steps
-- The history in order.
SELECT *, child_run_id::text AS child FROM steps
WHERE run_id = $1::uuid AND begun_seq >= 0 AND begun_seq > $2::bigint AND kind < 100 ORDER BY begun_seq LIMIT $3::bigint;

-- name: export_attempts
-- By step, in order.
SELECT * FROM step_attempts
WHERE run_id = $1::uuid AND step_id >= $2::text AND (step_id, seq) > ($2, $3::bigint) ORDER BY step_id, seq LIMIT $4::bigint;

-- name: export_signals
-- In order.
SELECT * FROM signals WHERE run_id = $1::uuid AND number > $2::bigint ORDER BY number LIMIT $3::bigint;

-- name: export_links
-- Found by the steps that wait: nothing else knows both ends.
SELECT s.step_id, s.child_run_id::text AS child_run_id FROM steps AS s
JOIN child_links AS l ON l.namespace = $4::text AND l.child_run_id = s.child_run_id AND l.parent_run_id = s.run_id
    AND l.parent_step_id = s.step_id
WHERE s.run_id = $1::uuid AND s.step_id > $2::text AND s.kind = 4 AND s.status = 2 ORDER BY s.step_id LIMIT $3::bigint;

-- name: known_runs
-- Of these, those of one namespace.
SELECT run_id::text AS run_id FROM runs WHERE run_id = ANY ($1::uuid[]) AND namespace IS NOT DISTINCT FROM $2::text;

-- name: begin_import
-- Whether the run is there, or on its way in by somebody else who is not stale; else it is this one's.
WITH there AS (
    SELECT 1 FROM runs WHERE run_id = $1::uuid
), mine AS (
    INSERT INTO imports (run_id, token, updated_at) SELECT $1, $2::text, $3::bigint WHERE NOT EXISTS (SELECT 1 FROM there)
    ON CONFLICT (run_id) DO UPDATE SET token = excluded.token, updated_at = excluded.updated_at
        WHERE imports.token = excluded.token OR imports.updated_at < $4::bigint
    RETURNING 1
)
SELECT EXISTS (SELECT 1 FROM there) AS there, EXISTS (SELECT 1 FROM mine) AS mine;

-- name: clear_import
-- What an import, or a run that was deleted, left behind.
WITH steps AS (
    DELETE FROM steps WHERE run_id = $1::uuid
), attempts AS (
    DELETE FROM step_attempts WHERE run_id = $1
), signals AS (
    DELETE FROM signals WHERE run_id = $1
)
DELETE FROM purging WHERE run_id = $1;

-- name: keep_import
-- It goes on.
UPDATE imports SET updated_at = $3::bigint WHERE run_id = $1::uuid AND token = $2::text RETURNING 1;

-- name: end_import
-- It is whole.
DELETE FROM imports WHERE run_id = $1::uuid AND token = $2::text RETURNING 1;

-- name: stage_steps
-- Nobody's lease: nobody's repeat is answered from these.
INSERT INTO steps (
    run_id, step_id, name, kind, status, begun_seq, created_at, attempt, seq, retry, timeout_ms, once, started_at, finished_at,
    retry_at, wake_at, due_at, child_run_id, parent_step_id, parallel_group_id, worker_id, error, input, input_meta, output,
    output_meta, details, details_meta
)
SELECT $1::uuid, step_id, name, kind, status, begun_seq, created_at, attempt, seq, retry::json, timeout_ms, once, started_at,
    finished_at, retry_at, wake_at, due_at, child_run_id, parent_step_id, parallel_group_id, worker_id, error::json, input,
    input_meta::json, output, output_meta::json, details, details_meta::json
FROM unnest(
    $2::text[], $3::text[], $4::smallint[], $5::smallint[], $6::bigint[], $7::bigint[], $8::int[], $9::bigint[], $10::text[],
    $11::bigint[], $12::bool[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::uuid[],
    $19::text[], $20::text[], $21::text[], $22::text[], $23::bytea[], $24::text[], $25::bytea[], $26::text[], $27::bytea[],
    $28::text[]
) AS g (
    step_id, name, kind, status, begun_seq, created_at, attempt, seq, retry, timeout_ms, once, started_at, finished_at,
    retry_at, wake_at, due_at, child_run_id, parent_step_id, parallel_group_id, worker_id, error, input, input_meta, output,
    output_meta, details, details_meta
)
ON CONFLICT DO NOTHING
RETURNING 1;

-- name: stage_attempts
-- As above.
INSERT INTO step_attempts (
    run_id, step_id, attempt, begun_seq, seq, lease, nonce, finished_at, retry_at, error, started_at, worker_id, forgotten
)
SELECT $1::uuid, step_id, attempt, begun_seq, seq, 0, 0, finished_at, retry_at, error::json, started_at, worker_id, forgotten
FROM unnest(
    $2::text[], $3::int[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[], $9::bigint[], $10::text[],
    $11::bigint[]
) AS g (step_id, attempt, begun_seq, seq, finished_at, retry_at, error, started_at, worker_id, forgotten)
ON CONFLICT DO NOTHING
RETURNING 1;

-- name: stage_signals
-- As above.
INSERT INTO signals (run_id, number, name, request_id, received_at, payload, payload_meta, step_id)
SELECT $1::uuid, number, name, request_id, received_at, payload, payload_meta::json, step_id
FROM unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bytea[], $7::text[], $8::text[])
    AS g (number, name, request_id, received_at, payload, payload_meta, step_id)
ON CONFLICT DO NOTHING
RETURNING 1;

-- name: stage_links
-- As above.
INSERT INTO child_links (namespace, child_run_id, parent_run_id, parent_step_id)
SELECT $4::text, child_run_id, $1::uuid, step_id FROM unnest($2::uuid[], $3::text[]) AS g (child_run_id, step_id)
ON CONFLICT DO NOTHING
RETURNING 1;

-- name: import_conflicts
-- Who has its ids already, and whether what it waits behind is still open.
SELECT
    (SELECT run_id::text FROM runs WHERE namespace = $1::text AND workflow_id = $2::text AND status IN (1, 2, 3, 7)) AS active,
    (SELECT run_id::text FROM runs WHERE namespace = $1 AND request_id = $3::text) AS requested,
    EXISTS (SELECT 1 FROM runs WHERE run_id = $4::uuid AND namespace = $1 AND finished_at IS NULL) AS blocked;

-- name: import_run
-- As it was, in nobody's hands. What is counted is counted anew. Where keys take turns, a run without one has an empty one.
INSERT INTO runs (
    run_id, namespace, workflow_id, workflow_type, version, status, wait_reason, priority, seq, lease, attempt, lost_leases,
    retry, request_id, labels, parent_run_id, parent_step_id, on_close, watched, has_children, cascade_due, schedule_id,
    blocked_by, created_at, started_at, finished_at, ready_at, due_at, paused_due_at, deadline_at, cancel_requested_at,
    cancel_by, cancel_reason, pause_reason, status_text, progress, forked_from, continued_as, tried_builds,
    retry_request_id, error, problem, diverged, concurrency_key, steps, result_seq
)
SELECT g.run_id, g.namespace, g.workflow_id, g.workflow_type, g.version, g.status, g.wait_reason, g.priority, g.seq, g.lease,
    g.attempt, g.lost_leases, g.retry, g.request_id, g.labels, g.parent_run_id, g.parent_step_id, g.on_close, g.watched,
    g.has_children, g.cascade_due, g.schedule_id, g.blocked_by, g.created_at, g.started_at, g.finished_at, g.ready_at,
    g.due_at, g.paused_due_at, g.deadline_at, g.cancel_requested_at, g.cancel_by, g.cancel_reason, g.pause_reason,
    g.status_text, g.progress, g.forked_from, g.continued_as, g.tried_builds, g.retry_request_id, g.error, g.problem,
    g.diverged, CASE WHEN t.max_running_per_key IS NOT NULL OR t.starts_per_second_per_key IS NOT NULL
        THEN coalesce(g.concurrency_key, '') ELSE g.concurrency_key END,
    (SELECT count(*) FROM steps AS s WHERE s.run_id = g.run_id AND s.kind < 100),
    coalesce((SELECT max(s.seq) FROM steps AS s WHERE s.run_id = g.run_id AND s.kind < 100), 0)
FROM json_populate_record(NULL::runs, $1::text::json) AS g
LEFT JOIN workflow_types AS t ON t.namespace = g.namespace AND t.workflow_type = g.workflow_type AND t.limiting
ON CONFLICT DO NOTHING
RETURNING status;

-- name: import_labels
-- Of the run.
INSERT INTO run_labels (namespace, key, value, created_at, run_id)
SELECT $1::text, g.key, g.value, $2::bigint, $3::uuid FROM unnest($4::text[], $5::text[]) AS g (key, value);

-- name: watch_children
-- Runs that steps of this one wait for tell it of their end.
UPDATE runs AS c SET watched = true FROM steps AS s
WHERE c.namespace IS NOT DISTINCT FROM $2::text AND s.run_id = $1::uuid AND s.due_at IS NOT NULL AND s.kind = 4 AND s.status = 2 AND c.run_id = s.child_run_id
    AND c.finished_at IS NULL;

-- name: import_state
-- What it came to with its relatives.
SELECT status FROM runs WHERE run_id = $1::uuid;

-- name: abandon_imports
-- What they brought goes the way of long histories.
WITH given_up AS (
    DELETE FROM imports WHERE token = $1::text OR updated_at < $2::bigint RETURNING run_id
)
INSERT INTO purging (run_id) SELECT run_id FROM given_up ON CONFLICT DO NOTHING;
