-- name: get_type_limits
-- What an operator said about a type.
SELECT * FROM workflow_types WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text;

-- name: put_type_limits
-- The row is that of the type's permits: this waits for claims that count against the old limits. A rate that changes begins anew.
INSERT INTO workflow_types AS t (
    namespace, workflow_type, paused, max_running, max_running_per_key, starts_per_second, starts_per_second_per_key, when_full
)
VALUES (
    :namespace::text, :workflow_type::text, :paused::boolean, :max_running::bigint, :max_running_per_key::bigint, :starts_per_second::double precision, :starts_per_second_per_key::double precision, :when_full::text
)
ON CONFLICT (namespace, workflow_type) DO UPDATE
SET paused = excluded.paused, max_running = excluded.max_running, max_running_per_key = excluded.max_running_per_key,
    starts_per_second = excluded.starts_per_second, starts_per_second_per_key = excluded.starts_per_second_per_key,
    when_full = excluded.when_full,
    next_start_at = CASE WHEN t.starts_per_second = excluded.starts_per_second THEN t.next_start_at ELSE 0 END;

-- name: forget_key_rates
-- The rate per key has changed: what was kept by the old one means nothing.
DELETE FROM workflow_keys WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text;

-- name: list_types_after
-- A page of types by name: those with a row, and those that workers have brought.
WITH names AS (
    SELECT workflow_type FROM workflow_types
    WHERE namespace = :namespace::text AND (:cursor::text IS NULL OR workflow_type > :cursor) AND (:workflow_type::text IS NULL OR workflow_type = :workflow_type)
    UNION
    SELECT workflow_type FROM workflow_versions
    WHERE namespace = :namespace AND (:cursor IS NULL OR workflow_type > :cursor) AND (:workflow_type IS NULL OR workflow_type = :workflow_type)
    ORDER BY workflow_type LIMIT :limit::bigint
), opened AS (
    SELECT workflow_type, count(*) AS runs FROM (
        SELECT workflow_type FROM runs
        WHERE namespace = :namespace AND created_at >= 0 AND status IN ({RUN.OPEN}) ORDER BY created_at, run_id LIMIT :count_cap::bigint
    ) AS oldest GROUP BY workflow_type
)
SELECT t.*, names.workflow_type AS name, coalesce(opened.runs, 0) AS open_runs FROM names
LEFT JOIN workflow_types AS t ON t.namespace = :namespace AND t.workflow_type = names.workflow_type
LEFT JOIN opened ON opened.workflow_type = names.workflow_type
ORDER BY names.workflow_type;

-- name: list_types_before
-- The same towards the beginning, last first.
WITH names AS (
    SELECT workflow_type FROM workflow_types
    WHERE namespace = :namespace::text AND (:cursor::text IS NULL OR workflow_type < :cursor) AND (:workflow_type::text IS NULL OR workflow_type = :workflow_type)
    UNION
    SELECT workflow_type FROM workflow_versions
    WHERE namespace = :namespace AND (:cursor IS NULL OR workflow_type < :cursor) AND (:workflow_type IS NULL OR workflow_type = :workflow_type)
    ORDER BY workflow_type DESC LIMIT :limit::bigint
), opened AS (
    SELECT workflow_type, count(*) AS runs FROM (
        SELECT workflow_type FROM runs
        WHERE namespace = :namespace AND created_at >= 0 AND status IN ({RUN.OPEN}) ORDER BY created_at, run_id LIMIT :count_cap::bigint
    ) AS oldest GROUP BY workflow_type
)
SELECT t.*, names.workflow_type AS name, coalesce(opened.runs, 0) AS open_runs FROM names
LEFT JOIN workflow_types AS t ON t.namespace = :namespace AND t.workflow_type = names.workflow_type
LEFT JOIN opened ON opened.workflow_type = names.workflow_type
ORDER BY names.workflow_type DESC;

-- name: queue_depths
-- How many runs wait for a worker, by type and version, each type counted no further than a cap.
WITH RECURSIVE types (workflow_type, place) AS (
    (
        SELECT workflow_type, 1 FROM runs
        WHERE namespace = :namespace::text AND ready_at IS NOT NULL AND (:workflow_type::text IS NULL OR workflow_type = :workflow_type)
        ORDER BY namespace, workflow_type LIMIT 1
    )
    UNION ALL
    SELECT n.workflow_type, t.place + 1 FROM types AS t CROSS JOIN LATERAL (
        SELECT r.workflow_type FROM runs AS r
        WHERE r.namespace = :namespace AND r.ready_at IS NOT NULL AND r.workflow_type > t.workflow_type AND :workflow_type IS NULL
        ORDER BY r.namespace, r.workflow_type LIMIT 1
    ) AS n
    WHERE t.place < 1000
)
SELECT t.workflow_type, coalesce(w.version, '') AS version, count(*) AS waiting, min(w.ready_at) AS oldest_since
FROM types AS t
CROSS JOIN LATERAL (
    SELECT r.version, r.ready_at FROM runs AS r
    WHERE r.namespace = :namespace AND r.workflow_type = t.workflow_type AND r.ready_at IS NOT NULL LIMIT :cap::bigint
) AS w
GROUP BY t.workflow_type, w.version
ORDER BY t.workflow_type, coalesce(w.version, '');

-- name: type_pressure
-- How far the limits of a type are used: by all its runs, and by those of one key.
SELECT t.*, held.runs, held.of_key, held.holder, k.next_start_at AS key_next_start_at FROM workflow_types AS t
LEFT JOIN workflow_keys AS k
    ON k.namespace = t.namespace AND k.workflow_type = t.workflow_type AND k.concurrency_key = :key::text
CROSS JOIN LATERAL (
    SELECT count(*) AS runs, count(*) FILTER (WHERE r.concurrency_key = :key) AS of_key,
        (min(r.run_id::text) FILTER (WHERE r.concurrency_key = :key)) AS holder
    FROM runs AS r
    WHERE r.namespace = t.namespace AND r.workflow_type = t.workflow_type AND r.lease_until IS NOT NULL
) AS held
WHERE t.namespace = :namespace::text AND t.workflow_type = :workflow_type::text;
