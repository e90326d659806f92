-- name: get_run
-- A run by its id, with what it was given and what it gave.
SELECT r.*, r.run_id::text AS run_id, r.parent_run_id::text AS parent_run_id,
    r.forked_from::text AS forked_from, r.continued_as::text AS continued_as
FROM runs AS r
WHERE r.run_id = $2::uuid AND r.namespace = $1::text;

-- name: get_latest_run
-- The open run of a workflow id, else the one that was created last.
SELECT r.*, r.run_id::text AS run_id, r.parent_run_id::text AS parent_run_id,
    r.forked_from::text AS forked_from, r.continued_as::text AS continued_as
FROM (
    (SELECT * FROM runs WHERE namespace = $1::text AND workflow_id = $2::text AND status IN (1, 2, 3, 7))
    UNION ALL
    (SELECT * FROM runs WHERE namespace = $1 AND workflow_id = $2 AND status IN (4, 5, 6)
     ORDER BY created_at DESC LIMIT 1)
) AS r
ORDER BY r.created_at DESC, r.status IN (4, 5, 6) LIMIT 1;

-- name: run_payloads
-- Input, context and output of a run.
SELECT kind, output, output_meta FROM steps WHERE run_id = $1::uuid AND step_id IN ('$input', '$context', '$output');

-- name: list_runs_older
-- A page of runs, newest first; the cursor is the last row seen.
SELECT r.*, r.run_id::text AS run_id, r.parent_run_id::text AS parent_run_id,
    r.forked_from::text AS forked_from, r.continued_as::text AS continued_as
FROM runs AS r
WHERE r.namespace = $1::text AND r.created_at >= 0
    AND ($2::smallint[] IS NULL OR r.status = ANY ($2))
    AND ($3::text[] IS NULL OR r.workflow_type = ANY ($3))
    AND ($4::bigint IS NULL OR r.created_at >= $4)
    AND ($5::bigint IS NULL OR r.created_at < $5)
    AND ($6::text IS NULL OR r.run_id = ANY (ARRAY(
        SELECT o.run_id FROM runs AS o WHERE o.namespace = $1 AND o.workflow_id = $6 AND o.status IN (1, 2, 3, 7)
        UNION ALL
        SELECT e.run_id FROM runs AS e WHERE e.namespace = $1 AND e.workflow_id = $6 AND e.status IN (4, 5, 6)
    )))
    AND ($7::text IS NULL OR r.version = $7)
    AND ($8::uuid IS NULL OR r.parent_run_id = $8)
    AND $9::text[] IS NULL AND $10::text[] IS NULL
    AND ($11::bigint IS NULL OR (r.created_at, r.run_id) < ($11, $12::uuid))
ORDER BY r.created_at DESC, r.run_id DESC
LIMIT $13::bigint;

-- name: list_labelled_runs_older
-- The same with labels, an unconditional condition: only so may the planner go by the labels or by time, as suits.
SELECT r.*, r.run_id::text AS run_id, r.parent_run_id::text AS parent_run_id,
    r.forked_from::text AS forked_from, r.continued_as::text AS continued_as
FROM runs AS r
WHERE r.namespace = $1::text AND r.created_at >= 0
    AND ($2::smallint[] IS NULL OR r.status = ANY ($2))
    AND ($3::text[] IS NULL OR r.workflow_type = ANY ($3))
    AND ($4::bigint IS NULL OR r.created_at >= $4)
    AND ($5::bigint IS NULL OR r.created_at < $5)
    AND ($6::text IS NULL OR r.run_id = ANY (ARRAY(
        SELECT o.run_id FROM runs AS o WHERE o.namespace = $1 AND o.workflow_id = $6 AND o.status IN (1, 2, 3, 7)
        UNION ALL
        SELECT e.run_id FROM runs AS e WHERE e.namespace = $1 AND e.workflow_id = $6 AND e.status IN (4, 5, 6)
    )))
    AND ($7::text IS NULL OR r.version = $7)
    AND ($8::uuid IS NULL OR r.parent_run_id = $8)
    AND EXISTS (
        SELECT 1 FROM run_labels AS x
        WHERE x.namespace = $1 AND x.key = ($9::text[])[1] AND x.value = ($10::text[])[1] AND x.run_id = r.run_id
    )
    AND NOT EXISTS (
        SELECT 1 FROM unnest($9, $10) AS l (key, value) WHERE NOT EXISTS (
            SELECT 1 FROM run_labels AS y
            WHERE y.namespace = $1 AND y.key = l.key AND y.value = l.value AND y.run_id = r.run_id
        )
    )
    AND ($11::bigint IS NULL OR (r.created_at, r.run_id) < ($11, $12::uuid))
ORDER BY r.created_at DESC, r.run_id DESC
LIMIT $13::bigint;

-- name: list_runs_newer
-- The same towards the newer, nearest first: the reader turns the page around.
SELECT r.*, r.run_id::text AS run_id, r.parent_run_id::text AS parent_run_id,
    r.forked_from::text AS forked_from, r.continued_as::text AS continued_as
FROM runs AS r
WHERE r.namespace = $1::text AND r.created_at >= 0
    AND ($2::smallint[] IS NULL OR r.status = ANY ($2))
    AND ($3::text[] IS NULL OR r.workflow_type = ANY ($3))
    AND ($4::bigint IS NULL OR r.created_at >= $4)
    AND ($5::bigint IS NULL OR r.created_at < $5)
    AND ($6::text IS NULL OR r.run_id = ANY (ARRAY(
        SELECT o.run_id FROM runs AS o WHERE o.namespace = $1 AND o.workflow_id = $6 AND o.status IN (1, 2, 3, 7)
        UNION ALL
        SELECT e.run_id FROM runs AS e WHERE e.namespace = $1 AND e.workflow_id = $6 AND e.status IN (4, 5, 6)
    )))
    AND ($7::text IS NULL OR r.version = $7)
    AND ($8::uuid IS NULL OR r.parent_run_id = $8)
    AND $9::text[] IS NULL AND $10::text[] IS NULL
    AND ($11::bigint IS NULL OR (r.created_at, r.run_id) > ($11, $12::uuid))
ORDER BY r.created_at, r.run_id
LIMIT $13::bigint;

-- name: list_labelled_runs_newer
-- Towards the newer.
SELECT r.*, r.run_id::text AS run_id, r.parent_run_id::text AS parent_run_id,
    r.forked_from::text AS forked_from, r.continued_as::text AS continued_as
FROM runs AS r
WHERE r.namespace = $1::text AND r.created_at >= 0
    AND ($2::smallint[] IS NULL OR r.status = ANY ($2))
    AND ($3::text[] IS NULL OR r.workflow_type = ANY ($3))
    AND ($4::bigint IS NULL OR r.created_at >= $4)
    AND ($5::bigint IS NULL OR r.created_at < $5)
    AND ($6::text IS NULL OR r.run_id = ANY (ARRAY(
        SELECT o.run_id FROM runs AS o WHERE o.namespace = $1 AND o.workflow_id = $6 AND o.status IN (1, 2, 3, 7)
        UNION ALL
        SELECT e.run_id FROM runs AS e WHERE e.namespace = $1 AND e.workflow_id = $6 AND e.status IN (4, 5, 6)
    )))
    AND ($7::text IS NULL OR r.version = $7)
    AND ($8::uuid IS NULL OR r.parent_run_id = $8)
    AND EXISTS (
        SELECT 1 FROM run_labels AS x
        WHERE x.namespace = $1 AND x.key = ($9::text[])[1] AND x.value = ($10::text[])[1] AND x.run_id = r.run_id
    )
    AND NOT EXISTS (
        SELECT 1 FROM unnest($9, $10) AS l (key, value) WHERE NOT EXISTS (
            SELECT 1 FROM run_labels AS y
            WHERE y.namespace = $1 AND y.key = l.key AND y.value = l.value AND y.run_id = r.run_id
        )
    )
    AND ($11::bigint IS NULL OR (r.created_at, r.run_id) > ($11, $12::uuid))
ORDER BY r.created_at, r.run_id
LIMIT $13::bigint;

-- name: count_runs
-- How many there are, counted no further than anybody wants to know.
SELECT count(*) AS runs FROM (
    SELECT 1 FROM runs AS r
    WHERE r.namespace = $1::text AND r.created_at >= 0
        AND ($2::smallint[] IS NULL OR r.status = ANY ($2))
        AND ($3::text[] IS NULL OR r.workflow_type = ANY ($3))
        AND ($4::bigint IS NULL OR r.created_at >= $4)
        AND ($5::bigint IS NULL OR r.created_at < $5)
        AND ($6::text IS NULL OR r.run_id = ANY (ARRAY(
            SELECT o.run_id FROM runs AS o WHERE o.namespace = $1 AND o.workflow_id = $6 AND o.status IN (1, 2, 3, 7)
            UNION ALL
            SELECT e.run_id FROM runs AS e WHERE e.namespace = $1 AND e.workflow_id = $6 AND e.status IN (4, 5, 6)
        )))
        AND ($7::text IS NULL OR r.version = $7)
        AND ($8::uuid IS NULL OR r.parent_run_id = $8)
        AND $9::text[] IS NULL AND $10::text[] IS NULL
    LIMIT $11::bigint
) AS counted;

-- name: count_labelled_runs
-- Counted, with labels.
SELECT count(*) AS runs FROM (
    SELECT 1 FROM runs AS r
    WHERE r.namespace = $1::text AND r.created_at >= 0
        AND ($2::smallint[] IS NULL OR r.status = ANY ($2))
        AND ($3::text[] IS NULL OR r.workflow_type = ANY ($3))
        AND ($4::bigint IS NULL OR r.created_at >= $4)
        AND ($5::bigint IS NULL OR r.created_at < $5)
        AND ($6::text IS NULL OR r.run_id = ANY (ARRAY(
            SELECT o.run_id FROM runs AS o WHERE o.namespace = $1 AND o.workflow_id = $6 AND o.status IN (1, 2, 3, 7)
            UNION ALL
            SELECT e.run_id FROM runs AS e WHERE e.namespace = $1 AND e.workflow_id = $6 AND e.status IN (4, 5, 6)
        )))
        AND ($7::text IS NULL OR r.version = $7)
        AND ($8::uuid IS NULL OR r.parent_run_id = $8)
        AND EXISTS (
            SELECT 1 FROM run_labels AS x
            WHERE x.namespace = $1 AND x.key = ($9::text[])[1] AND x.value = ($10::text[])[1] AND x.run_id = r.run_id
        )
        AND NOT EXISTS (
            SELECT 1 FROM unnest($9, $10) AS l (key, value) WHERE NOT EXISTS (
                SELECT 1 FROM run_labels AS y
                WHERE y.namespace = $1 AND y.key = l.key AND y.value = l.value AND y.run_id = r.run_id
            )
        )
    LIMIT $11::bigint
) AS counted;

-- name: open_waits
-- What a run waits for, nearest first.
SELECT step_id FROM steps WHERE run_id = $1::uuid AND due_at IS NOT NULL ORDER BY due_at, begun_seq LIMIT $2::bigint;

-- name: ends_of
-- How runs ended, for those who wait: status, output, error, and where one goes on.
SELECT g.n, r.status, r.error, r.continued_as::text AS continued_as, s.output, s.output_meta
FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS g (run_id, namespace, n)
JOIN runs AS r ON r.run_id = g.run_id AND r.namespace = g.namespace
LEFT JOIN steps AS s ON r.status = 4 AND s.run_id = r.run_id AND s.step_id = '$output';
