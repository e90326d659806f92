-- name: get_type_limits
-- What an operator has set for a type.
SELECT * FROM workflow_types WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text;

-- name: put_type_limits
-- The row also holds the type's permits: this waits for claims that count against the old limits. A changed rate starts
-- afresh.
INSERT INTO workflow_types AS t (
    namespace, workflow_type, paused, max_running, max_running_per_key, starts_per_second, starts_per_second_per_key,
    when_full
)
VALUES (
    :namespace::text, :workflow_type::text, :paused::boolean, :max_running::bigint, :max_running_per_key::bigint,
    :starts_per_second::double precision, :starts_per_second_per_key::double precision, :when_full::text
)
ON CONFLICT (namespace, workflow_type) DO UPDATE
SET paused = excluded.paused, max_running = excluded.max_running, max_running_per_key = excluded.max_running_per_key,
    starts_per_second = excluded.starts_per_second, starts_per_second_per_key = excluded.starts_per_second_per_key,
    when_full = excluded.when_full,
    next_start_at = CASE
        WHEN t.starts_per_second IS NOT DISTINCT FROM excluded.starts_per_second THEN t.next_start_at ELSE 0
    END;

-- name: forget_key_rates
-- The rate per key has changed: times recorded for the old one are meaningless.
DELETE FROM workflow_keys WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text;

-- name: list_types
-- By name: types with settings, and types that workers have registered.
WITH names AS (
    SELECT workflow_type FROM workflow_types
    WHERE namespace = :namespace::text AND workflow_type {>|<} :cursor::text
        AND (:workflow_type::text IS NULL OR workflow_type = :workflow_type)
    UNION
    SELECT workflow_type FROM workflow_versions
    WHERE namespace = :namespace AND workflow_type {>|<} :cursor
        AND (:workflow_type IS NULL OR workflow_type = :workflow_type)
    ORDER BY workflow_type {ASC|DESC} LIMIT :limit::bigint
)
SELECT t.*, names.workflow_type AS name FROM names
LEFT JOIN workflow_types AS t ON t.namespace = :namespace AND t.workflow_type = names.workflow_type
ORDER BY names.workflow_type {ASC|DESC};

-- name: type_pressure
-- How far the limits of a type are used: by all its runs, and by those of one key.
SELECT t.*, used.runs, used.of_key, used.holder, k.next_start_at AS key_next_start_at FROM workflow_types AS t
LEFT JOIN workflow_keys AS k
    ON k.namespace = t.namespace AND k.workflow_type = t.workflow_type AND k.concurrency_key = :key::text
CROSS JOIN (
    SELECT count(*) AS runs, count(*) FILTER (WHERE concurrency_key = :key) AS of_key,
        min(run_id::text) FILTER (WHERE concurrency_key = :key) AS holder
    FROM runs /* INDEXED BY runs_by_status */
    WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text AND status = {RUN.RUNNING}
        AND lease_until IS NOT NULL
) AS used
WHERE t.namespace = :namespace AND t.workflow_type = :workflow_type;
