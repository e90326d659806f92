-- name: export_attempts
-- By step, in order.
SELECT * FROM step_attempts
WHERE run_id = :run_id::uuid AND step_id >= :after_step_id::text AND (step_id, seq) > (:after_step_id, :after_seq::bigint) ORDER BY step_id, seq LIMIT :limit::bigint;

-- name: export_signals
-- In order.
SELECT * FROM signals WHERE run_id = :run_id::uuid AND number > :after::bigint ORDER BY number LIMIT :limit::bigint;

-- name: known_runs
-- Those of these runs that belong to the namespace.
SELECT run_id::text AS run_id FROM runs WHERE run_id = ANY (:run_ids::uuid[]) AND namespace IS NOT DISTINCT FROM :namespace::text;

-- name: stage_steps
-- Without a lease, so that they match no repeated command.
INSERT INTO steps (
    run_id, step_id, name, kind, status, begun_seq, created_at, attempt, seq, retry, timeout_ms, once, started_at, finished_at,
    retry_at, wake_at, due_at, child_run_id, parent_step_id, parallel_group_id, worker_id, error, input, input_meta, output,
    output_meta, details, details_meta
)
SELECT :run_id::uuid, step_id, name, kind, status, begun_seq, created_at, attempt, seq, retry::json, timeout_ms, once, started_at,
    finished_at, retry_at, wake_at, due_at, child_run_id, nullif(parent_step_id, ''), nullif(parallel_group_id, ''), worker_id,
    error::json, input,
    input_meta::json, output, output_meta::json, details, details_meta::json
FROM rows(:steps) AS g (
    step_id text, name text, kind smallint, status smallint, begun_seq bigint, created_at bigint, attempt int,
    seq bigint, retry text, timeout_ms bigint, once bool, started_at bigint, finished_at bigint, retry_at bigint,
    wake_at bigint, due_at bigint, child_run_id uuid, parent_step_id text, parallel_group_id text, worker_id text,
    error text, input bytea, input_meta text, output bytea, output_meta text, details bytea, details_meta text
)
ON CONFLICT DO NOTHING
RETURNING 1;

-- name: stage_forgotten_steps
-- See stage_steps.
INSERT INTO forgotten_steps (
    run_id, retry_seq, retried_at, step_id, name, kind, status, begun_seq, created_at, attempt, seq, retry, timeout_ms,
    started_at, finished_at, wake_at, child_run_id, parent_step_id, parallel_group_id, worker_id, claim, bytes, error,
    input, input_meta, output, output_meta, details, details_meta
)
SELECT :run_id::uuid, retry_seq, retried_at, step_id, name, kind, status, begun_seq, created_at, attempt, seq, retry::json,
    timeout_ms, started_at, finished_at, wake_at, child_run_id, parent_step_id, parallel_group_id, worker_id, 0, bytes,
    error::json, input, input_meta::json, output, output_meta::json, details, details_meta::json
FROM rows(:steps) AS g (
    retry_seq bigint, retried_at bigint, step_id text, name text, kind smallint, status smallint, begun_seq bigint,
    created_at bigint, attempt int, seq bigint, retry text, timeout_ms bigint, started_at bigint, finished_at bigint,
    wake_at bigint, child_run_id uuid, parent_step_id text, parallel_group_id text, worker_id text, bytes bigint,
    error text, input bytea, input_meta text, output bytea, output_meta text, details bytea, details_meta text
)
ON CONFLICT DO NOTHING
RETURNING 1;

-- name: stage_attempts
-- See stage_steps.
INSERT INTO step_attempts (
    run_id, step_id, attempt, begun_seq, seq, lease, nonce, finished_at, retry_at, error, started_at, worker_id, forgotten, input,
    input_meta
)
SELECT :run_id::uuid, step_id, attempt, begun_seq, seq, 0, 0, finished_at, retry_at, error::json, started_at, worker_id, forgotten,
    input, input_meta::json
FROM rows(:attempts) AS g (
    step_id text, attempt int, begun_seq bigint, seq bigint, finished_at bigint, retry_at bigint, error text,
    started_at bigint, worker_id text, forgotten bigint, input bytea, input_meta text
)
ON CONFLICT DO NOTHING
RETURNING 1;

-- name: stage_signals
-- See stage_steps.
INSERT INTO signals (run_id, number, name, request_id, received_at, payload, payload_meta, step_id, start_request)
SELECT :run_id::uuid, number, name, request_id, received_at, payload, payload_meta::json, step_id, start_request
FROM rows(:signals) AS g (
    number bigint, name text, request_id text, received_at bigint, payload bytea, payload_meta text, step_id text,
    start_request text
)
ON CONFLICT DO NOTHING
RETURNING 1;

-- name: stage_links
-- See stage_steps.
INSERT INTO child_links (namespace, child_run_id, parent_run_id, parent_step_id)
SELECT :namespace::text, child_run_id, :run_id::uuid, step_id FROM unnest(:child_run_ids::uuid[], :step_ids::text[]) AS g (child_run_id, step_id)
ON CONFLICT DO NOTHING
RETURNING 1;

-- name: import_conflicts
-- Which runs have its ids already, and whether the run that it waits for is still open.
SELECT
    (SELECT run_id::text FROM runs WHERE namespace = :namespace::text AND workflow_id = :workflow_id::text AND status IN ({RUN.OPEN})) AS active,
    (SELECT run_id::text FROM runs WHERE namespace = :namespace AND request_id = :request_id::text) AS requested,
    EXISTS (SELECT 1 FROM runs WHERE run_id = :blocked_by::uuid AND namespace = :namespace AND finished_at IS NULL) AS blocked;

-- name: import_run
-- As exported, without a lease. Counts are computed again. If the keys of a type are served in turn, a run without a
-- key gets an empty one.
INSERT INTO runs ({run.imported}, diverged, concurrency_key, unread_signals, steps, result_seq)
SELECT {run.imported:g}, :diverged::bool, CASE WHEN t.max_running_per_key IS NOT NULL OR t.starts_per_second_per_key IS NOT NULL
        THEN coalesce(g.concurrency_key, '') ELSE g.concurrency_key END,
    (SELECT count(*) FROM signals AS s WHERE s.run_id = g.run_id AND s.step_id IS NULL),
    (SELECT count(*) FROM steps AS s WHERE s.run_id = g.run_id AND s.kind < {KIND.FIRST_PAYLOAD}),
    coalesce((SELECT max(s.seq) FROM steps AS s WHERE s.run_id = g.run_id AND s.kind < {KIND.FIRST_PAYLOAD}), 0)
FROM json_populate_record(NULL::runs, :row::text::json) AS g
LEFT JOIN workflow_types AS t ON t.namespace = g.namespace AND t.workflow_type = g.workflow_type AND t.limiting
ON CONFLICT DO NOTHING
RETURNING status;

-- name: import_labels
-- Of the run.
INSERT INTO run_labels (namespace, key, value, created_at, run_id)
SELECT :namespace::text, g.key, g.value, :created_at::bigint, :run_id::uuid FROM unnest(:keys::text[], :values::text[]) AS g (key, value);

-- name: watch_children
-- Runs that steps of this one wait for will notify it of their end.
UPDATE runs AS c SET watched = true FROM steps AS s
WHERE c.namespace IS NOT DISTINCT FROM :namespace::text AND s.run_id = :run_id::uuid AND s.due_at IS NOT NULL AND s.kind = {KIND.CHILD} AND s.status = {STEP.RUNNING} AND c.run_id = s.child_run_id
    AND c.finished_at IS NULL;

-- name: import_state
-- Its status after its children and steps were taken into account.
UPDATE runs SET awaits_signal = {signal_waits}, retrying_steps = {retried_steps} WHERE run_id = :run_id::uuid RETURNING status;
