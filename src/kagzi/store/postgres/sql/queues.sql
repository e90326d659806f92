-- name: queue_depths
-- How many runs wait for a worker, by type and version. Counting stops at a cap for each type.
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

-- name: open_by_type
-- Among the oldest open runs of the namespace: the oldest of each status, so that no finished run is read.
SELECT workflow_type, count(*) AS runs FROM (
    SELECT r.workflow_type FROM unnest(ARRAY[{RUN.OPEN}]) AS open (status) CROSS JOIN LATERAL (
        SELECT workflow_type, created_at, run_id FROM runs
        WHERE namespace = :namespace::text AND runs.status = open.status AND created_at >= 0
        ORDER BY created_at, run_id LIMIT :cap::bigint
    ) AS r ORDER BY r.created_at, r.run_id LIMIT :cap::bigint
) AS oldest GROUP BY workflow_type;
