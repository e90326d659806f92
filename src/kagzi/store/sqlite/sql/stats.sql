-- name: part_events
-- What was created, and what ended how and how long that took.
SELECT r.namespace, r.workflow_type, r.created_at - r.created_at % 60000000 AS minute, NULL AS status, NULL AS took
FROM namespaces AS n CROSS JOIN runs AS r INDEXED BY runs_by_created
    ON r.namespace = n.namespace AND r.created_at >= :since AND r.created_at < :until
WHERE :namespace IS NULL OR n.namespace = :namespace
UNION ALL
SELECT r.namespace, r.workflow_type, r.finished_at - r.finished_at % 60000000, r.status, r.finished_at - r.started_at
FROM namespaces AS n CROSS JOIN runs AS r INDEXED BY runs_finished
    ON r.namespace = n.namespace AND r.finished_at >= :since AND r.finished_at < :until AND r.finished_at IS NOT NULL
WHERE :namespace IS NULL OR n.namespace = :namespace

-- name: minutes
-- By minute and type; the half, and 95 of a hundred, of those that ended took at most so long.
SELECT namespace, workflow_type, minute, sum(status IS NULL) AS started, sum(status IS {RUN.COMPLETED}) AS completed,
       sum(status IS {RUN.FAILED}) AS failed, sum(status IS {RUN.CANCELLED}) AS cancelled,
       max(CASE WHEN took IS NOT NULL AND place = (count + 1) / 2 THEN took END) AS p50_us,
       max(CASE WHEN took IS NOT NULL AND place = (count * 95 + 99) / 100 THEN took END) AS p95_us
FROM (SELECT e.*, row_number() OVER (PARTITION BY namespace, workflow_type, minute, took IS NULL ORDER BY took) AS place,
             count(took) OVER (PARTITION BY namespace, workflow_type, minute) AS count FROM ({events}) AS e)
GROUP BY namespace, workflow_type, minute;

-- name: rolled_up
-- Minutes before this one are noted.
SELECT minute FROM rolled_up WHERE only_row = 1;

-- name: first_created
-- Where to begin when it was never done.
SELECT min((SELECT r.created_at FROM runs AS r INDEXED BY runs_by_created WHERE r.namespace = n.namespace
            ORDER BY r.created_at LIMIT 1)) FROM namespaces AS n;

-- name: note_rolled_up
-- It never goes back.
INSERT INTO rolled_up (only_row, minute) VALUES (1, ?)
ON CONFLICT (only_row) DO UPDATE SET minute = max(minute, excluded.minute);

-- name: note_minute
-- What is known already only grows: runs may be gone. How long they took is told as long as as many as before tell it.
INSERT INTO run_stats (namespace, workflow_type, minute, started, completed, failed, cancelled, p50_us, p95_us)
VALUES (:namespace, :workflow_type, :minute, :started, :completed, :failed, :cancelled, :p50_us, :p95_us)
ON CONFLICT (namespace, minute, workflow_type) DO UPDATE SET
    p50_us = iif(excluded.completed + excluded.failed + excluded.cancelled >= completed + failed + cancelled,
                 excluded.p50_us, p50_us),
    p95_us = iif(excluded.completed + excluded.failed + excluded.cancelled >= completed + failed + cancelled,
                 excluded.p95_us, p95_us),
    started = max(started, excluded.started), completed = max(completed, excluded.completed),
    failed = max(failed, excluded.failed), cancelled = max(cancelled, excluded.cancelled);

-- name: stats
-- Minutes as they were noted.
SELECT namespace, workflow_type, minute, started, completed, failed, cancelled, p50_us, p95_us FROM run_stats
WHERE namespace = :namespace AND minute >= :since AND minute < :until
AND (:workflow_type = '' OR workflow_type = :workflow_type) ORDER BY minute, workflow_type LIMIT :limit;

-- name: purge_stats
-- Old minutes.
DELETE FROM run_stats WHERE minute < :before AND minute <= coalesce(
    (SELECT minute FROM run_stats INDEXED BY run_stats_old WHERE minute < :before ORDER BY minute LIMIT 1 OFFSET :limit),
    :before)
RETURNING 1;
