-- name: queue_gauges
-- How many runs of each type wait, up to a cap; whether a worker that is alive serves them; and whether limits may hold
-- them back.
SELECT k.namespace, k.workflow_type,
    (
        SELECT count(*) FROM (
            SELECT 1 FROM runs AS r /* INDEXED BY runs_pending */
            WHERE r.namespace = k.namespace AND r.workflow_type = k.workflow_type AND {is_pending} LIMIT :cap::bigint
        ) AS counted
    ) AS waiting,
    (
        SELECT min(counted.ready_at) FROM (
            SELECT r.ready_at FROM runs AS r /* INDEXED BY runs_pending */
            WHERE r.namespace = k.namespace AND r.workflow_type = k.workflow_type AND {is_pending} LIMIT :cap
        ) AS counted
    ) AS oldest_since,
    EXISTS (
        SELECT 1 FROM workers AS w
        WHERE w.namespace = k.namespace AND w.status <> {WORKER.OFFLINE} AND w.last_heartbeat_at >= :alive_since::bigint
            AND {serves_queue}
    ) AS served,
    EXISTS (
        SELECT 1 FROM workflow_types AS t
        WHERE t.namespace = k.namespace AND t.workflow_type = k.workflow_type
            AND (t.paused OR t.max_running IS NOT NULL OR t.max_running_per_key IS NOT NULL
                OR t.starts_per_second IS NOT NULL OR t.starts_per_second_per_key IS NOT NULL)
    ) AS limited
FROM rows(:keys) AS k (namespace text, workflow_type text);

-- name: queue_gauge_of_rest
-- The same for all types after this one, together.
SELECT count(*) AS waiting, min(counted.ready_at) AS oldest_since FROM (
    SELECT r.ready_at FROM runs AS r /* INDEXED BY runs_pending */
    WHERE {is_pending} AND (r.namespace, r.workflow_type) > (:namespace::text, :workflow_type::text)
    ORDER BY r.namespace, r.workflow_type LIMIT :cap::bigint
) AS counted;

-- name: first_namespaces
-- In the order of creation, which is the same on every server.
SELECT namespace FROM namespaces ORDER BY created_at, namespace LIMIT :limit::bigint;

-- name: first_workflow_types
-- By name, which gives the same on every server. The number of types is limited by the code that registers them.
SELECT DISTINCT workflow_type FROM workflow_versions ORDER BY workflow_type LIMIT :limit::bigint;

-- name: open_run_gauges
-- How many open runs of each namespace are in each status, up to a cap.
SELECT n.namespace,
    (SELECT count(*) FROM (
        SELECT 1 FROM runs AS r /* INDEXED BY runs_by_status */
        WHERE r.namespace = n.namespace AND r.status = {RUN.PENDING} AND r.created_at >= 0 LIMIT :cap::bigint
    ) AS counted) AS pending,
    (SELECT count(*) FROM (
        SELECT 1 FROM runs AS r /* INDEXED BY runs_by_status */
        WHERE r.namespace = n.namespace AND r.status = {RUN.RUNNING} AND r.created_at >= 0 LIMIT :cap
    ) AS counted) AS running,
    (SELECT count(*) FROM (
        SELECT 1 FROM runs AS r /* INDEXED BY runs_by_status */
        WHERE r.namespace = n.namespace AND r.status = {RUN.SLEEPING} AND r.created_at >= 0 LIMIT :cap
    ) AS counted) AS sleeping,
    (SELECT count(*) FROM (
        SELECT 1 FROM runs AS r /* INDEXED BY runs_by_status */
        WHERE r.namespace = n.namespace AND r.status = {RUN.PAUSED} AND r.created_at >= 0 LIMIT :cap
    ) AS counted) AS paused,
    (SELECT count(*) FROM (
        SELECT 1 FROM runs AS r /* INDEXED BY runs_failing */
        WHERE r.namespace = n.namespace AND (r.retrying_steps > 0 OR r.problem IS NOT NULL) AND r.retrying_steps > 0
        LIMIT :cap
    ) AS counted) AS retrying,
    (SELECT count(*) FROM (
        SELECT 1 FROM runs AS r /* INDEXED BY runs_waiting */
        WHERE r.namespace = n.namespace AND r.awaits_signal > 0 LIMIT :cap
    ) AS counted) AS awaiting_signal
FROM rows(:namespaces) AS n (namespace text);

-- name: worker_gauges
-- Workers that are alive, and their slots.
SELECT present.namespace, present.draining, count(*) AS workers, sum(present.max_concurrent) AS slots,
    sum(present.active_count) AS used
FROM (
    SELECT namespace, status = {WORKER.DRAINING} AS draining, max_concurrent, active_count FROM workers
    WHERE status <> {WORKER.OFFLINE} AND last_heartbeat_at >= :alive_since::bigint LIMIT :limit::bigint
) AS present
GROUP BY present.namespace, present.draining;

-- name: types_of
-- What metrics need of a run.
SELECT r.run_id::text AS run_id, r.workflow_type, r.started_at FROM rows(:keys) AS k (namespace text, run_id uuid)
JOIN runs AS r ON r.run_id = k.run_id AND r.namespace = k.namespace;
