-- name: part_is_pending
-- As in the index of pending runs.
r.ready_at IS NOT NULL

-- name: part_serves_queue
-- Whether a worker serves the type of a queue, at any version.
k.workflow_type = ANY (w.workflow_types)

-- name: pending_types
-- The types with pending runs, by skipping from one to the next in the index.
WITH RECURSIVE pending (namespace, workflow_type, place) AS (
    (SELECT namespace, workflow_type, 1 FROM runs WHERE ready_at IS NOT NULL ORDER BY namespace, workflow_type LIMIT 1)
    UNION ALL
    SELECT n.namespace, n.workflow_type, p.place + 1 FROM pending AS p CROSS JOIN LATERAL (
        SELECT r.namespace, r.workflow_type FROM runs AS r
        WHERE r.ready_at IS NOT NULL AND (r.namespace, r.workflow_type) > (p.namespace, p.workflow_type)
        ORDER BY r.namespace, r.workflow_type LIMIT 1
    ) AS n
    WHERE p.place < :limit::bigint
)
SELECT namespace, workflow_type FROM pending;
