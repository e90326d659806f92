-- name: part_created
-- Runs created.
SELECT r.namespace, r.workflow_type, r.created_at - r.created_at % 60000000 AS minute
FROM namespaces AS n CROSS JOIN runs AS r INDEXED BY runs_by_created
    ON r.namespace = n.namespace AND r.created_at >= :since AND r.created_at < :until
WHERE :namespace IS NULL OR n.namespace = :namespace

-- name: part_ended
-- Runs ended, with their durations.
SELECT r.namespace, r.workflow_type, r.finished_at - r.finished_at % 60000000 AS minute, r.status, r.finished_at - r.started_at AS took,
       {class} AS class
FROM namespaces AS n CROSS JOIN runs AS r INDEXED BY runs_finished
    ON r.namespace = n.namespace AND r.status IN ({RUN.ENDED}) AND r.finished_at >= :since AND r.finished_at < :until AND r.finished_at IS NOT NULL
WHERE :namespace IS NULL OR n.namespace = :namespace

-- name: minutes
-- By minute and type, with the 50th and 95th percentile of the durations of ended runs. Runs are counted by class before
-- the classes become columns: 32 conditions for each run would cost more than everything else.
SELECT namespace, workflow_type, minute, coalesce(sum(runs) FILTER (WHERE status IS NULL), 0) AS started,
       coalesce(sum(runs) FILTER (WHERE status = {RUN.COMPLETED}), 0) AS completed,
       coalesce(sum(runs) FILTER (WHERE status = {RUN.FAILED}), 0) AS failed,
       coalesce(sum(runs) FILTER (WHERE status = {RUN.CANCELLED}), 0) AS cancelled,
       max(p50_us) AS p50_us, max(p95_us) AS p95_us,
       {class_sums}
FROM (SELECT namespace, workflow_type, minute, NULL AS status, NULL AS class, NULL AS p50_us, NULL AS p95_us, count(*) AS runs
      FROM ({created}) GROUP BY namespace, workflow_type, minute
      UNION ALL
      SELECT namespace, workflow_type, minute, status, class, max(CASE WHEN place = (count + 1) / 2 THEN took END),
             max(CASE WHEN place = (count * 95 + 99) / 100 THEN took END), count(*)
      FROM (SELECT e.*, row_number() OVER (PARTITION BY namespace, workflow_type, minute ORDER BY took NULLS LAST) AS place,
                   count(took) OVER (PARTITION BY namespace, workflow_type, minute) AS count FROM ({ended}) AS e)
      GROUP BY namespace, workflow_type, minute, status, class) AS e
GROUP BY namespace, workflow_type, minute;

-- name: part_class_sums
-- Counts of runs by duration, in the classes of core/stats.py. NULL: none ended, or none was ever claimed.
nullif(sum(e.runs) FILTER (WHERE e.class = 0), 0) AS took_0,
       nullif(sum(e.runs) FILTER (WHERE e.class = 1), 0) AS took_1,
       nullif(sum(e.runs) FILTER (WHERE e.class = 2), 0) AS took_2,
       nullif(sum(e.runs) FILTER (WHERE e.class = 3), 0) AS took_3,
       nullif(sum(e.runs) FILTER (WHERE e.class = 4), 0) AS took_4,
       nullif(sum(e.runs) FILTER (WHERE e.class = 5), 0) AS took_5,
       nullif(sum(e.runs) FILTER (WHERE e.class = 6), 0) AS took_6,
       nullif(sum(e.runs) FILTER (WHERE e.class = 7), 0) AS took_7,
       nullif(sum(e.runs) FILTER (WHERE e.class = 8), 0) AS took_8,
       nullif(sum(e.runs) FILTER (WHERE e.class = 9), 0) AS took_9,
       nullif(sum(e.runs) FILTER (WHERE e.class = 10), 0) AS took_10,
       nullif(sum(e.runs) FILTER (WHERE e.class = 11), 0) AS took_11,
       nullif(sum(e.runs) FILTER (WHERE e.class = 12), 0) AS took_12,
       nullif(sum(e.runs) FILTER (WHERE e.class = 13), 0) AS took_13,
       nullif(sum(e.runs) FILTER (WHERE e.class = 14), 0) AS took_14,
       nullif(sum(e.runs) FILTER (WHERE e.class = 15), 0) AS took_15,
       nullif(sum(e.runs) FILTER (WHERE e.class = 16), 0) AS took_16,
       nullif(sum(e.runs) FILTER (WHERE e.class = 17), 0) AS took_17,
       nullif(sum(e.runs) FILTER (WHERE e.class = 18), 0) AS took_18,
       nullif(sum(e.runs) FILTER (WHERE e.class = 19), 0) AS took_19,
       nullif(sum(e.runs) FILTER (WHERE e.class = 20), 0) AS took_20,
       nullif(sum(e.runs) FILTER (WHERE e.class = 21), 0) AS took_21,
       nullif(sum(e.runs) FILTER (WHERE e.class = 22), 0) AS took_22,
       nullif(sum(e.runs) FILTER (WHERE e.class = 23), 0) AS took_23,
       nullif(sum(e.runs) FILTER (WHERE e.class = 24), 0) AS took_24,
       nullif(sum(e.runs) FILTER (WHERE e.class = 25), 0) AS took_25,
       nullif(sum(e.runs) FILTER (WHERE e.class = 26), 0) AS took_26,
       nullif(sum(e.runs) FILTER (WHERE e.class = 27), 0) AS took_27,
       nullif(sum(e.runs) FILTER (WHERE e.class = 28), 0) AS took_28,
       nullif(sum(e.runs) FILTER (WHERE e.class = 29), 0) AS took_29,
       nullif(sum(e.runs) FILTER (WHERE e.class = 30), 0) AS took_30,
       nullif(sum(e.runs) FILTER (WHERE e.class = 31), 0) AS took_31

-- name: part_class
-- The class of a duration, as in core/stats.py.
CASE WHEN r.started_at IS NULL THEN NULL
     WHEN r.finished_at - r.started_at < 1000 THEN 0 WHEN r.finished_at - r.started_at < 2000 THEN 1
     WHEN r.finished_at - r.started_at < 4000 THEN 2 WHEN r.finished_at - r.started_at < 8000 THEN 3
     WHEN r.finished_at - r.started_at < 16000 THEN 4 WHEN r.finished_at - r.started_at < 32000 THEN 5
     WHEN r.finished_at - r.started_at < 64000 THEN 6 WHEN r.finished_at - r.started_at < 128000 THEN 7
     WHEN r.finished_at - r.started_at < 256000 THEN 8 WHEN r.finished_at - r.started_at < 512000 THEN 9
     WHEN r.finished_at - r.started_at < 1024000 THEN 10 WHEN r.finished_at - r.started_at < 2048000 THEN 11
     WHEN r.finished_at - r.started_at < 4096000 THEN 12 WHEN r.finished_at - r.started_at < 8192000 THEN 13
     WHEN r.finished_at - r.started_at < 16384000 THEN 14 WHEN r.finished_at - r.started_at < 32768000 THEN 15
     WHEN r.finished_at - r.started_at < 65536000 THEN 16 WHEN r.finished_at - r.started_at < 131072000 THEN 17
     WHEN r.finished_at - r.started_at < 262144000 THEN 18 WHEN r.finished_at - r.started_at < 524288000 THEN 19
     WHEN r.finished_at - r.started_at < 1048576000 THEN 20 WHEN r.finished_at - r.started_at < 2097152000 THEN 21
     WHEN r.finished_at - r.started_at < 4194304000 THEN 22 WHEN r.finished_at - r.started_at < 8388608000 THEN 23
     WHEN r.finished_at - r.started_at < 16777216000 THEN 24
     WHEN r.finished_at - r.started_at < 33554432000 THEN 25
     WHEN r.finished_at - r.started_at < 67108864000 THEN 26
     WHEN r.finished_at - r.started_at < 134217728000 THEN 27
     WHEN r.finished_at - r.started_at < 268435456000 THEN 28
     WHEN r.finished_at - r.started_at < 536870912000 THEN 29
     WHEN r.finished_at - r.started_at < 1073741824000 THEN 30
     ELSE 31 END

-- name: first_created
-- Where the first roll-up begins.
SELECT min((SELECT r.created_at FROM runs AS r INDEXED BY runs_by_created WHERE r.namespace = n.namespace
            ORDER BY r.created_at LIMIT 1)) FROM namespaces AS n;

-- name: note_rolled_up
-- It never moves back.
INSERT INTO rolled_up (only_row, minute) VALUES (1, ?)
ON CONFLICT (only_row) DO UPDATE SET minute = max(minute, excluded.minute);

-- name: note_minute
-- Recorded counts never decrease: runs may have been deleted. Durations are replaced only if at least as many runs as
-- before have one.
INSERT INTO run_stats (namespace, workflow_type, minute, started, completed, failed, cancelled, p50_us, p95_us,
    {took})
VALUES (:namespace, :workflow_type, :minute, :started, :completed, :failed, :cancelled, :p50_us, :p95_us,
    :took_0, :took_1, :took_2, :took_3, :took_4, :took_5, :took_6, :took_7, :took_8, :took_9, :took_10, :took_11,
    :took_12, :took_13, :took_14, :took_15, :took_16, :took_17, :took_18, :took_19, :took_20, :took_21, :took_22,
    :took_23, :took_24, :took_25, :took_26, :took_27, :took_28, :took_29, :took_30, :took_31)
ON CONFLICT (namespace, minute, workflow_type) DO UPDATE SET
    p50_us = iif({grew}, excluded.p50_us, p50_us), p95_us = iif({grew}, excluded.p95_us, p95_us),
    took_0 = iif({grew}, excluded.took_0, took_0), took_1 = iif({grew}, excluded.took_1, took_1),
    took_2 = iif({grew}, excluded.took_2, took_2), took_3 = iif({grew}, excluded.took_3, took_3),
    took_4 = iif({grew}, excluded.took_4, took_4), took_5 = iif({grew}, excluded.took_5, took_5),
    took_6 = iif({grew}, excluded.took_6, took_6), took_7 = iif({grew}, excluded.took_7, took_7),
    took_8 = iif({grew}, excluded.took_8, took_8), took_9 = iif({grew}, excluded.took_9, took_9),
    took_10 = iif({grew}, excluded.took_10, took_10), took_11 = iif({grew}, excluded.took_11, took_11),
    took_12 = iif({grew}, excluded.took_12, took_12), took_13 = iif({grew}, excluded.took_13, took_13),
    took_14 = iif({grew}, excluded.took_14, took_14), took_15 = iif({grew}, excluded.took_15, took_15),
    took_16 = iif({grew}, excluded.took_16, took_16), took_17 = iif({grew}, excluded.took_17, took_17),
    took_18 = iif({grew}, excluded.took_18, took_18), took_19 = iif({grew}, excluded.took_19, took_19),
    took_20 = iif({grew}, excluded.took_20, took_20), took_21 = iif({grew}, excluded.took_21, took_21),
    took_22 = iif({grew}, excluded.took_22, took_22), took_23 = iif({grew}, excluded.took_23, took_23),
    took_24 = iif({grew}, excluded.took_24, took_24), took_25 = iif({grew}, excluded.took_25, took_25),
    took_26 = iif({grew}, excluded.took_26, took_26), took_27 = iif({grew}, excluded.took_27, took_27),
    took_28 = iif({grew}, excluded.took_28, took_28), took_29 = iif({grew}, excluded.took_29, took_29),
    took_30 = iif({grew}, excluded.took_30, took_30), took_31 = iif({grew}, excluded.took_31, took_31),
    started = max(started, excluded.started), completed = max(completed, excluded.completed),
    failed = max(failed, excluded.failed), cancelled = max(cancelled, excluded.cancelled);

-- name: part_grew
-- Whether at least as many runs as before have a duration.
excluded.completed + excluded.failed + excluded.cancelled >= completed + failed + cancelled

-- name: purge_stats
-- Old minutes.
DELETE FROM run_stats WHERE minute < :before AND minute <= coalesce(
    (SELECT minute FROM run_stats INDEXED BY run_stats_old WHERE minute < :before ORDER BY minute LIMIT 1 OFFSET :limit),
    :before)
RETURNING 1;

-- name: purge_hours
-- Old hours.
DELETE FROM run_stats_hours WHERE hour < :before AND hour <= coalesce(
    (SELECT hour FROM run_stats_hours INDEXED BY run_stats_hours_old WHERE hour < :before ORDER BY hour LIMIT 1 OFFSET :limit),
    :before)
RETURNING 1;
