-- name: part_is_pending
-- As in the index of pending runs.
r.status = {RUN.PENDING}

-- name: part_serves_queue
-- Whether a worker serves the type of a queue, at any version.
EXISTS (SELECT 1 FROM json_each(w.served) AS e WHERE json_extract(e.value, '$[0]') = k.workflow_type)

-- name: pending_types
-- The types with pending runs by a loose index scan: one seek for each type, however many runs there are.
WITH RECURSIVE pending (pair, n) AS (
    SELECT (SELECT json_array(namespace, workflow_type) FROM runs INDEXED BY runs_pending
            WHERE status = {RUN.PENDING} ORDER BY namespace, workflow_type LIMIT 1), 1
    UNION ALL
    SELECT (SELECT json_array(r.namespace, r.workflow_type) FROM runs AS r INDEXED BY runs_pending
            WHERE r.status = {RUN.PENDING}
              AND (r.namespace, r.workflow_type) > (json_extract(pending.pair, '$[0]'), json_extract(pending.pair, '$[1]'))
            ORDER BY r.namespace, r.workflow_type LIMIT 1), n + 1
    FROM pending WHERE pending.pair IS NOT NULL AND n < :limit
)
SELECT json_extract(pair, '$[0]') AS namespace, json_extract(pair, '$[1]') AS workflow_type FROM pending WHERE pair IS NOT NULL;
