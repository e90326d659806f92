-- name: part_minutes
-- What happened, by minute and type: what was created, what ended how, and how long that took.
SELECT e.workflow_type, e.minute, count(*) FILTER (WHERE e.status IS NULL) AS started,
    count(*) FILTER (WHERE e.status = {RUN.COMPLETED}) AS completed, count(*) FILTER (WHERE e.status = {RUN.FAILED}) AS failed,
    count(*) FILTER (WHERE e.status = {RUN.CANCELLED}) AS cancelled,
    percentile_disc(0.5) WITHIN GROUP (ORDER BY e.took) AS p50_us,
    percentile_disc(0.95) WITHIN GROUP (ORDER BY e.took) AS p95_us
FROM (
    SELECT r.workflow_type, r.created_at - r.created_at % 60000000 AS minute, NULL::smallint AS status, NULL::bigint AS took
    FROM runs AS r
    WHERE r.namespace = {namespace} AND r.created_at >= 0 AND r.created_at >= {since} AND r.created_at < {until}
    UNION ALL
    SELECT r.workflow_type, r.finished_at - r.finished_at % 60000000, r.status, r.finished_at - r.started_at
    FROM runs AS r
    WHERE r.namespace = {namespace} AND r.finished_at IS NOT NULL AND r.finished_at >= {since} AND r.finished_at < {until}
) AS e
GROUP BY e.workflow_type, e.minute

-- name: roll_up
-- Whoever holds the row does it, from one minute before where it was left. What is known already only grows: runs may be gone.
WITH was AS MATERIALIZED (
    SELECT minute FROM rolled_up FOR UPDATE
), span AS MATERIALIZED (
    SELECT s.since, least(:now::bigint, s.since + :most_at_once_us::bigint) AS until
    FROM (
        SELECT greatest(:now - :most_us::bigint, coalesce((SELECT minute FROM was) - 60000000, (
            SELECT min(r.created_at - r.created_at % 60000000) FROM namespaces AS n CROSS JOIN LATERAL (
                SELECT created_at FROM runs WHERE namespace = n.namespace AND created_at >= 0 ORDER BY created_at LIMIT 1
            ) AS r
        ), :now - 60000000)) AS since
    ) AS s
    WHERE coalesce((SELECT minute FROM was), 0) < :now
), noted AS (
    INSERT INTO rolled_up (only_row, minute) SELECT 1, until FROM span
    ON CONFLICT (only_row) DO UPDATE SET minute = greatest(rolled_up.minute, excluded.minute)
), done AS (
    INSERT INTO run_stats (namespace, workflow_type, minute, started, completed, failed, cancelled, p50_us, p95_us)
    SELECT n.namespace, m.* FROM span CROSS JOIN namespaces AS n CROSS JOIN LATERAL ({rolled_minutes}) AS m
    ON CONFLICT (namespace, minute, workflow_type) DO UPDATE
    SET started = greatest(run_stats.started, excluded.started),
        completed = greatest(run_stats.completed, excluded.completed),
        failed = greatest(run_stats.failed, excluded.failed),
        cancelled = greatest(run_stats.cancelled, excluded.cancelled),
        p50_us = CASE WHEN {grew} THEN excluded.p50_us ELSE run_stats.p50_us END,
        p95_us = CASE WHEN {grew} THEN excluded.p95_us ELSE run_stats.p95_us END
)
SELECT until < :now AS more FROM span;

-- name: part_grew
-- Whether as many runs as before tell how long they took.
excluded.completed + excluded.failed + excluded.cancelled >= run_stats.completed + run_stats.failed + run_stats.cancelled

-- name: stats
-- Minutes as they were noted, and from where that ends as the runs tell.
WITH known AS MATERIALIZED (
    SELECT greatest(:since::bigint, coalesce((SELECT minute FROM rolled_up), 0)) AS until
)
SELECT * FROM (
    SELECT workflow_type, minute, started, completed, failed, cancelled, p50_us, p95_us FROM run_stats
    WHERE namespace = :namespace::text AND minute >= :since AND minute < least(:until::bigint, (SELECT until FROM known))
    UNION ALL
    {live_minutes}
) AS m
WHERE :workflow_type::text = '' OR m.workflow_type = :workflow_type
ORDER BY m.minute, m.workflow_type LIMIT :limit::bigint;

-- name: purge_stats
-- Old minutes.
DELETE FROM run_stats WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM run_stats WHERE minute < :before::bigint LIMIT :limit::bigint
))
RETURNING 1;
