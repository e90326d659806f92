-- name: part_minutes
-- Per minute and type: runs created, runs ended by status, and their durations.
SELECT e.workflow_type, e.minute, count(*) FILTER (WHERE e.status IS NULL) AS started,
    count(*) FILTER (WHERE e.status = {RUN.COMPLETED}) AS completed, count(*) FILTER (WHERE e.status = {RUN.FAILED}) AS failed,
    count(*) FILTER (WHERE e.status = {RUN.CANCELLED}) AS cancelled,
    percentile_disc(0.5) WITHIN GROUP (ORDER BY e.took) AS p50_us,
    percentile_disc(0.95) WITHIN GROUP (ORDER BY e.took) AS p95_us,
    {took_counts}
FROM (
    SELECT r.workflow_type, r.created_at - r.created_at % 60000000 AS minute, NULL::smallint AS status, NULL::bigint AS took,
        NULL::int AS class
    FROM runs AS r
    WHERE r.namespace = {namespace} AND r.created_at >= 0 AND r.created_at >= {since} AND r.created_at < {until}
    UNION ALL
    SELECT r.workflow_type, r.finished_at - r.finished_at % 60000000, r.status, r.finished_at - r.started_at,
        width_bucket(r.finished_at - r.started_at, {bounds})
    FROM runs AS r
    WHERE r.namespace = {namespace} AND r.status IN ({RUN.ENDED}) AND r.finished_at IS NOT NULL AND r.finished_at >= {since} AND r.finished_at < {until}
) AS e
GROUP BY e.workflow_type, e.minute

-- name: roll_up
-- The server that holds the row continues one minute before the last recorded one (or, after a long time, from the
-- earliest time allowed). Recorded counts never decrease: runs may have been deleted.
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
    INSERT INTO run_stats (
        namespace, workflow_type, minute, started, completed, failed, cancelled, p50_us, p95_us,
        {took}
    )
    SELECT n.namespace, m.* FROM span CROSS JOIN namespaces AS n CROSS JOIN LATERAL ({rolled_minutes}) AS m
    ON CONFLICT (namespace, minute, workflow_type) DO UPDATE
    SET started = greatest(run_stats.started, excluded.started),
        completed = greatest(run_stats.completed, excluded.completed),
        failed = greatest(run_stats.failed, excluded.failed),
        cancelled = greatest(run_stats.cancelled, excluded.cancelled),
        p50_us = CASE WHEN {grew} THEN excluded.p50_us ELSE run_stats.p50_us END,
        p95_us = CASE WHEN {grew} THEN excluded.p95_us ELSE run_stats.p95_us END,
        took_0 = CASE WHEN {grew} THEN excluded.took_0 ELSE run_stats.took_0 END,
        took_1 = CASE WHEN {grew} THEN excluded.took_1 ELSE run_stats.took_1 END,
        took_2 = CASE WHEN {grew} THEN excluded.took_2 ELSE run_stats.took_2 END,
        took_3 = CASE WHEN {grew} THEN excluded.took_3 ELSE run_stats.took_3 END,
        took_4 = CASE WHEN {grew} THEN excluded.took_4 ELSE run_stats.took_4 END,
        took_5 = CASE WHEN {grew} THEN excluded.took_5 ELSE run_stats.took_5 END,
        took_6 = CASE WHEN {grew} THEN excluded.took_6 ELSE run_stats.took_6 END,
        took_7 = CASE WHEN {grew} THEN excluded.took_7 ELSE run_stats.took_7 END,
        took_8 = CASE WHEN {grew} THEN excluded.took_8 ELSE run_stats.took_8 END,
        took_9 = CASE WHEN {grew} THEN excluded.took_9 ELSE run_stats.took_9 END,
        took_10 = CASE WHEN {grew} THEN excluded.took_10 ELSE run_stats.took_10 END,
        took_11 = CASE WHEN {grew} THEN excluded.took_11 ELSE run_stats.took_11 END,
        took_12 = CASE WHEN {grew} THEN excluded.took_12 ELSE run_stats.took_12 END,
        took_13 = CASE WHEN {grew} THEN excluded.took_13 ELSE run_stats.took_13 END,
        took_14 = CASE WHEN {grew} THEN excluded.took_14 ELSE run_stats.took_14 END,
        took_15 = CASE WHEN {grew} THEN excluded.took_15 ELSE run_stats.took_15 END,
        took_16 = CASE WHEN {grew} THEN excluded.took_16 ELSE run_stats.took_16 END,
        took_17 = CASE WHEN {grew} THEN excluded.took_17 ELSE run_stats.took_17 END,
        took_18 = CASE WHEN {grew} THEN excluded.took_18 ELSE run_stats.took_18 END,
        took_19 = CASE WHEN {grew} THEN excluded.took_19 ELSE run_stats.took_19 END,
        took_20 = CASE WHEN {grew} THEN excluded.took_20 ELSE run_stats.took_20 END,
        took_21 = CASE WHEN {grew} THEN excluded.took_21 ELSE run_stats.took_21 END,
        took_22 = CASE WHEN {grew} THEN excluded.took_22 ELSE run_stats.took_22 END,
        took_23 = CASE WHEN {grew} THEN excluded.took_23 ELSE run_stats.took_23 END,
        took_24 = CASE WHEN {grew} THEN excluded.took_24 ELSE run_stats.took_24 END,
        took_25 = CASE WHEN {grew} THEN excluded.took_25 ELSE run_stats.took_25 END,
        took_26 = CASE WHEN {grew} THEN excluded.took_26 ELSE run_stats.took_26 END,
        took_27 = CASE WHEN {grew} THEN excluded.took_27 ELSE run_stats.took_27 END,
        took_28 = CASE WHEN {grew} THEN excluded.took_28 ELSE run_stats.took_28 END,
        took_29 = CASE WHEN {grew} THEN excluded.took_29 ELSE run_stats.took_29 END,
        took_30 = CASE WHEN {grew} THEN excluded.took_30 ELSE run_stats.took_30 END,
        took_31 = CASE WHEN {grew} THEN excluded.took_31 ELSE run_stats.took_31 END
)
SELECT least(since, (SELECT minute FROM was) - 60000000) AS hours_since, until, until < :now AS more FROM span;

-- name: part_grew
-- Whether at least as many runs as before have a duration.
excluded.completed + excluded.failed + excluded.cancelled >= run_stats.completed + run_stats.failed + run_stats.cancelled

-- name: part_bounds
-- The bounds of the classes of core/stats.py.
'{1000,2000,4000,8000,16000,32000,64000,128000,256000,512000,1024000,2048000,4096000,8192000,16384000,32768000,65536000,131072000,262144000,524288000,1048576000,2097152000,4194304000,8388608000,16777216000,33554432000,67108864000,134217728000,268435456000,536870912000,1073741824000}'::bigint[]

-- name: live_stats
-- Minutes that are not recorded yet, computed from the runs. One row without a minute if there are none.
WITH known AS MATERIALIZED (
    SELECT greatest(:since::bigint, coalesce((SELECT minute FROM rolled_up), 0)) AS until
)
SELECT known.until AS since, m.* FROM known LEFT JOIN (
    {live_minutes}
) AS m ON true
ORDER BY m.minute, m.workflow_type;

-- name: purge_stats
-- Old minutes.
DELETE FROM run_stats WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM run_stats WHERE minute < :before::bigint LIMIT :limit::bigint
))
RETURNING 1;

-- name: purge_hours
-- Old hours.
DELETE FROM run_stats_hours WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM run_stats_hours WHERE hour < :before::bigint LIMIT :limit::bigint
))
RETURNING 1;

-- name: part_took_counts
-- Counts of runs by duration, in the classes of core/stats.py. NULL: none ended, or none was ever claimed.
    nullif(count(*) FILTER (WHERE e.class = 0), 0) AS took_0,
    nullif(count(*) FILTER (WHERE e.class = 1), 0) AS took_1,
    nullif(count(*) FILTER (WHERE e.class = 2), 0) AS took_2,
    nullif(count(*) FILTER (WHERE e.class = 3), 0) AS took_3,
    nullif(count(*) FILTER (WHERE e.class = 4), 0) AS took_4,
    nullif(count(*) FILTER (WHERE e.class = 5), 0) AS took_5,
    nullif(count(*) FILTER (WHERE e.class = 6), 0) AS took_6,
    nullif(count(*) FILTER (WHERE e.class = 7), 0) AS took_7,
    nullif(count(*) FILTER (WHERE e.class = 8), 0) AS took_8,
    nullif(count(*) FILTER (WHERE e.class = 9), 0) AS took_9,
    nullif(count(*) FILTER (WHERE e.class = 10), 0) AS took_10,
    nullif(count(*) FILTER (WHERE e.class = 11), 0) AS took_11,
    nullif(count(*) FILTER (WHERE e.class = 12), 0) AS took_12,
    nullif(count(*) FILTER (WHERE e.class = 13), 0) AS took_13,
    nullif(count(*) FILTER (WHERE e.class = 14), 0) AS took_14,
    nullif(count(*) FILTER (WHERE e.class = 15), 0) AS took_15,
    nullif(count(*) FILTER (WHERE e.class = 16), 0) AS took_16,
    nullif(count(*) FILTER (WHERE e.class = 17), 0) AS took_17,
    nullif(count(*) FILTER (WHERE e.class = 18), 0) AS took_18,
    nullif(count(*) FILTER (WHERE e.class = 19), 0) AS took_19,
    nullif(count(*) FILTER (WHERE e.class = 20), 0) AS took_20,
    nullif(count(*) FILTER (WHERE e.class = 21), 0) AS took_21,
    nullif(count(*) FILTER (WHERE e.class = 22), 0) AS took_22,
    nullif(count(*) FILTER (WHERE e.class = 23), 0) AS took_23,
    nullif(count(*) FILTER (WHERE e.class = 24), 0) AS took_24,
    nullif(count(*) FILTER (WHERE e.class = 25), 0) AS took_25,
    nullif(count(*) FILTER (WHERE e.class = 26), 0) AS took_26,
    nullif(count(*) FILTER (WHERE e.class = 27), 0) AS took_27,
    nullif(count(*) FILTER (WHERE e.class = 28), 0) AS took_28,
    nullif(count(*) FILTER (WHERE e.class = 29), 0) AS took_29,
    nullif(count(*) FILTER (WHERE e.class = 30), 0) AS took_30,
    nullif(count(*) FILTER (WHERE e.class = 31), 0) AS took_31
