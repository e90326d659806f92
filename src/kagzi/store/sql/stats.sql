-- name: part_took
-- Counts of runs by duration, in the classes of core/stats.py.
    took_0, took_1, took_2, took_3, took_4, took_5, took_6, took_7, took_8, took_9, took_10, took_11, took_12,
    took_13, took_14, took_15, took_16, took_17, took_18, took_19, took_20, took_21, took_22, took_23, took_24,
    took_25, took_26, took_27, took_28, took_29, took_30, took_31

-- name: part_took_sums
-- The same, summed over several rows. NULL: no row has any.
    sum(took_0)::bigint AS took_0, sum(took_1)::bigint AS took_1, sum(took_2)::bigint AS took_2,
    sum(took_3)::bigint AS took_3, sum(took_4)::bigint AS took_4, sum(took_5)::bigint AS took_5,
    sum(took_6)::bigint AS took_6, sum(took_7)::bigint AS took_7, sum(took_8)::bigint AS took_8,
    sum(took_9)::bigint AS took_9, sum(took_10)::bigint AS took_10, sum(took_11)::bigint AS took_11,
    sum(took_12)::bigint AS took_12, sum(took_13)::bigint AS took_13, sum(took_14)::bigint AS took_14,
    sum(took_15)::bigint AS took_15, sum(took_16)::bigint AS took_16, sum(took_17)::bigint AS took_17,
    sum(took_18)::bigint AS took_18, sum(took_19)::bigint AS took_19, sum(took_20)::bigint AS took_20,
    sum(took_21)::bigint AS took_21, sum(took_22)::bigint AS took_22, sum(took_23)::bigint AS took_23,
    sum(took_24)::bigint AS took_24, sum(took_25)::bigint AS took_25, sum(took_26)::bigint AS took_26,
    sum(took_27)::bigint AS took_27, sum(took_28)::bigint AS took_28, sum(took_29)::bigint AS took_29,
    sum(took_30)::bigint AS took_30, sum(took_31)::bigint AS took_31

-- name: part_took_new
-- The same, as values to store.
    took_0 = excluded.took_0, took_1 = excluded.took_1, took_2 = excluded.took_2, took_3 = excluded.took_3,
    took_4 = excluded.took_4, took_5 = excluded.took_5, took_6 = excluded.took_6, took_7 = excluded.took_7,
    took_8 = excluded.took_8, took_9 = excluded.took_9, took_10 = excluded.took_10, took_11 = excluded.took_11,
    took_12 = excluded.took_12, took_13 = excluded.took_13, took_14 = excluded.took_14, took_15 = excluded.took_15,
    took_16 = excluded.took_16, took_17 = excluded.took_17, took_18 = excluded.took_18, took_19 = excluded.took_19,
    took_20 = excluded.took_20, took_21 = excluded.took_21, took_22 = excluded.took_22, took_23 = excluded.took_23,
    took_24 = excluded.took_24, took_25 = excluded.took_25, took_26 = excluded.took_26, took_27 = excluded.took_27,
    took_28 = excluded.took_28, took_29 = excluded.took_29, took_30 = excluded.took_30, took_31 = excluded.took_31

-- name: rolled_up
-- Minutes before this one are recorded, and so are the hours that were over by then.
SELECT minute FROM rolled_up WHERE only_row = 1;

-- name: noted_stats
-- Recorded statistics by time step: completed hours as a whole, then minutes. A step of one minute (one part) has its
-- exact percentiles.
SELECT m.workflow_type, m.minute, sum(m.started)::bigint AS started, sum(m.completed)::bigint AS completed, sum(m.failed)::bigint AS failed,
    sum(m.cancelled)::bigint AS cancelled, count(*) AS parts, max(m.p50_us) AS p50_us, max(m.p95_us) AS p95_us,
    {took_sums}
FROM (
    SELECT workflow_type, hour - hour % :step_us::bigint AS minute, started, completed, failed, cancelled, NULL::bigint AS p50_us,
        NULL::bigint AS p95_us, {took}
    FROM run_stats_hours
    WHERE namespace = :namespace::text AND hour >= :since::bigint AND hour < :hours_until::bigint
        AND (:workflow_type::text = '' OR workflow_type = :workflow_type)
    UNION ALL
    SELECT workflow_type, minute - minute % :step_us, started, completed, failed, cancelled, p50_us, p95_us, {took}
    FROM run_stats
    WHERE namespace = :namespace AND minute >= :minutes_since::bigint AND minute < :until::bigint
        AND (:workflow_type = '' OR workflow_type = :workflow_type)
) AS m
GROUP BY m.minute, m.workflow_type
ORDER BY m.minute, m.workflow_type LIMIT :limit::bigint;

-- name: roll_up_hours
-- An hour is the sum of its minutes, so this can be repeated.
INSERT INTO run_stats_hours (
    namespace, workflow_type, hour, started, completed, failed, cancelled,
    {took}
)
SELECT namespace, workflow_type, minute - minute % 3600000000 AS hour, sum(started), sum(completed), sum(failed), sum(cancelled),
    {took_sums}
FROM run_stats
WHERE minute >= :since::bigint AND minute < :until::bigint
GROUP BY namespace, workflow_type, minute - minute % 3600000000
ON CONFLICT (namespace, hour, workflow_type) DO UPDATE
SET started = excluded.started, completed = excluded.completed, failed = excluded.failed, cancelled = excluded.cancelled,
    {took_new};

-- name: has_minutes
-- Whether any minute is recorded in this time.
SELECT 1 FROM run_stats WHERE minute >= :since::bigint AND minute < :until::bigint LIMIT 1;
