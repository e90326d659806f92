-- name: part_run_payloads
-- Input, context, output and state are stored as rows of the steps table. A small context is stored beside the input.
i.output AS input, i.output_meta AS input_meta, coalesce(c.output, i.input) AS context,
CASE WHEN c.step_id IS NULL THEN i.input_meta ELSE c.output_meta END AS context_meta, o.output, o.output_meta, st.output AS state, st.output_meta AS state_meta, st.finished_at AS state_at

-- name: part_with_payloads
-- Four lookups by primary key.
LEFT JOIN steps AS i ON i.run_id = r.run_id AND i.step_id = '$input'
LEFT JOIN steps AS c ON c.run_id = r.run_id AND c.step_id = '$context'
LEFT JOIN steps AS o ON o.run_id = r.run_id AND o.step_id = '$output'
LEFT JOIN steps AS st ON st.run_id = r.run_id AND st.step_id = '$state'

-- name: part_context_of_run
-- At most one row.
SELECT output AS data, output_meta AS metadata FROM steps WHERE run_id = :run_id::uuid AND step_id = '$context'
UNION ALL
SELECT input, input_meta FROM steps WHERE run_id = :run_id::uuid AND step_id = '$input' AND input IS NOT NULL

-- name: fork_source
-- The attributes and input that a fork copies from its source.
SELECT {run.forked:r read}, r.version, {run_payloads} FROM runs AS r {with_payloads} WHERE r.run_id = :run_id::uuid;

-- name: export_run
-- A run with everything that is not derived; payloads last.
SELECT {run.exported:r read}, {run_payloads} FROM runs AS r {with_payloads}
WHERE r.run_id = :run_id::uuid AND r.namespace = :namespace::text;

-- name: export_steps
-- The history in order.
SELECT *, child_run_id::text AS child FROM steps /* INDEXED BY steps_begun */
WHERE run_id = :run_id::uuid AND begun_seq >= 0 AND begun_seq > :after::bigint AND kind < {KIND.FIRST_PAYLOAD}
ORDER BY begun_seq LIMIT :limit::bigint;

-- name: export_links
-- Found by the waiting steps, which are the only rows that name both ends.
SELECT s.step_id, s.child_run_id::text AS child_run_id FROM steps AS s
JOIN child_links AS l ON l.namespace = :namespace::text AND l.child_run_id = s.child_run_id
    AND l.parent_run_id = s.run_id AND l.parent_step_id = s.step_id
WHERE s.run_id = :run_id::uuid AND s.step_id > :after::text AND s.kind = {KIND.CHILD} AND s.status + 0 = {STEP.RUNNING}
    AND s.child_run_id IS NOT NULL
ORDER BY s.step_id LIMIT :limit::bigint;

-- name: any_run
-- Run ids are unique across namespaces.
SELECT 1 FROM runs WHERE run_id = :run_id::uuid;

-- name: claim_import
-- Reserves the run for this import, unless another import of it is in progress and not stale.
INSERT INTO imports (run_id, token, updated_at) VALUES (:run_id::uuid, :token::text, :now::bigint)
ON CONFLICT (run_id) DO UPDATE SET token = excluded.token, updated_at = excluded.updated_at
    WHERE imports.token = excluded.token OR imports.updated_at < :stale_before::bigint
RETURNING 1;

-- name: clear_steps
-- What an import, or a deleted run, left behind.
DELETE FROM steps WHERE run_id = :run_id::uuid;

-- name: clear_attempts
-- See clear_steps.
DELETE FROM step_attempts WHERE run_id = :run_id::uuid;

-- name: clear_signals
-- See clear_steps.
DELETE FROM signals WHERE run_id = :run_id::uuid;

-- name: clear_purging
-- See clear_steps.
DELETE FROM purging WHERE run_id = :run_id::uuid;

-- name: keep_import
-- The import makes progress.
UPDATE imports SET updated_at = :now::bigint WHERE run_id = :run_id::uuid AND token = :token::text RETURNING 1;

-- name: end_import
-- The import is complete.
DELETE FROM imports WHERE run_id = :run_id::uuid AND token = :token::text RETURNING 1;

-- name: purge_imports
-- Their rows are deleted like long histories.
INSERT INTO purging (run_id)
SELECT run_id FROM imports WHERE token = :token::text OR updated_at < :stale_before::bigint ON CONFLICT DO NOTHING;

-- name: forget_imports
-- See purge_imports.
DELETE FROM imports WHERE token = :token::text OR updated_at < :stale_before::bigint;
