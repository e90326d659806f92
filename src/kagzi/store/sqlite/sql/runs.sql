-- name: part_history_columns
-- A step as replay reads it.
step_id, kind, status, begun_seq, attempt, seq, finished_at, output, output_meta, error, retry_at, wake_at, child_run_id,
details, details_meta

-- name: get_run
-- With payloads.
SELECT {run.shown:r read}, {run_payloads} FROM runs AS r {with_payloads} WHERE r.run_id = ? AND r.namespace = ?;

-- name: get_run_of_workflow
-- The open run with that workflow_id, else the latest; with payloads.
SELECT {run.shown:r read}, {run_payloads}
FROM (SELECT coalesce(
    (SELECT o.run_id FROM runs AS o INDEXED BY runs_active
     WHERE o.namespace = :namespace AND o.workflow_id = :workflow_id AND o.finished_at IS NULL),
    (SELECT e.run_id FROM runs AS e INDEXED BY runs_by_workflow_id WHERE e.namespace = :namespace AND e.workflow_id = :workflow_id
     ORDER BY e.created_at DESC, e.run_id DESC LIMIT 1)) AS wanted)
CROSS JOIN runs AS r ON r.run_id = wanted AND +r.namespace = :namespace {with_payloads};

-- name: endings_of
-- The status of runs, in the order of the request; the output of those that completed.
SELECT r.run_id, r.namespace, r.status, r.error, o.output, o.output_meta, r.continued_as, wanted.key AS n
FROM json_each(?) AS wanted CROSS JOIN runs AS r ON r.run_id = wanted.value
LEFT JOIN steps AS o ON o.run_id = r.run_id AND o.step_id = '$output';

-- name: part_page
-- Both ends of the page are bounds on (created_at, run_id), or (finished_at, run_id); every filter that is not NULL must hold.
(r.{time}, r.run_id) < (:upper_at, :upper_id) AND (r.{time}, r.run_id) > (:lower_at, :lower_id)
AND (:created_after IS NULL OR r.created_at >= :created_after) AND (:created_before IS NULL OR r.created_at < :created_before)
AND (:ended_after IS NULL OR r.finished_at >= :ended_after) AND (:ended_before IS NULL OR r.finished_at < :ended_before)
AND (:failing IS NULL OR (r.retrying_steps > 0 OR r.problem IS NOT NULL) = :failing)
AND (:waiting IS NULL OR (r.awaits_signal > 0) = :waiting)
AND (:statuses IS NULL OR r.status IN (SELECT value FROM json_each(:statuses)))
AND (:workflow_types IS NULL OR r.workflow_type IN (SELECT value FROM json_each(:workflow_types)))
AND (:workflow_id IS NULL OR r.workflow_id = :workflow_id)
AND (:run_ids IS NULL OR r.run_id IN (SELECT value FROM json_each(:run_ids)))
AND (:version IS NULL OR r.version = :version)
AND (:parent_run_id IS NULL OR r.parent_run_id = :parent_run_id)
AND (:schedule_id IS NULL OR r.schedule_id = :schedule_id)
AND (:concurrency_key IS NULL OR r.concurrency_key = :concurrency_key)
AND (:worker_id IS NULL OR (r.worker_id = :worker_id AND r.status = {RUN.RUNNING}))
AND (:has_problem IS NULL OR (r.problem IS NOT NULL) = :has_problem)
AND (:labels IS NULL OR NOT EXISTS (
    SELECT 1 FROM json_each(:labels) AS wanted WHERE NOT EXISTS (
        SELECT 1 FROM run_labels AS had WHERE had.namespace = r.namespace AND had.key = wanted.key
        AND had.value = wanted.value AND had.created_at = r.created_at AND had.run_id = r.run_id)))

-- name: part_runs_by_created
-- No filter has an index.
runs AS r INDEXED BY runs_by_created WHERE r.namespace = :namespace AND {page}

-- name: part_runs_by_status
-- One status; several are read one by one and merged.
runs AS r INDEXED BY runs_by_status WHERE r.namespace = :namespace AND r.status = :status AND {page}

-- name: part_runs_by_type_asleep
-- Sleeping runs of one type.
runs AS r INDEXED BY runs_asleep_by_type
WHERE r.namespace = :namespace AND r.workflow_type = :workflow_type AND r.status = {RUN.SLEEPING} AND {page}

-- name: part_runs_by_type_version
-- One version of one type, or runs without a version yet (NULL). Lists by type, or by version alone, are merged from
-- these.
runs AS r INDEXED BY runs_by_type_version
WHERE r.namespace = :namespace AND r.workflow_type = :workflow_type AND r.version IS :of_version AND {page}

-- name: versions_of_type
-- The versions of a type that have runs, by skipping from one to the next in the index. The last is NULL, for runs that
-- have none.
WITH RECURSIVE versions (version) AS (
    SELECT (SELECT r.version FROM runs AS r INDEXED BY runs_by_type_version
            WHERE r.namespace = :namespace AND r.workflow_type = :workflow_type AND r.version IS NOT NULL ORDER BY r.version LIMIT 1)
    UNION ALL
    SELECT (SELECT r.version FROM runs AS r INDEXED BY runs_by_type_version
            WHERE r.namespace = :namespace AND r.workflow_type = :workflow_type AND r.version > versions.version
            ORDER BY r.version LIMIT 1)
    FROM versions WHERE versions.version IS NOT NULL
)
SELECT version FROM versions;

-- name: types_of_version
-- The types that have runs of a version, among all types of a namespace, by skipping as above.
WITH RECURSIVE types (workflow_type) AS (
    SELECT (SELECT r.workflow_type FROM runs AS r INDEXED BY runs_by_type_version WHERE r.namespace = :namespace
            ORDER BY r.workflow_type LIMIT 1)
    UNION ALL
    SELECT (SELECT r.workflow_type FROM runs AS r INDEXED BY runs_by_type_version
            WHERE r.namespace = :namespace AND r.workflow_type > types.workflow_type ORDER BY r.workflow_type LIMIT 1)
    FROM types WHERE types.workflow_type IS NOT NULL
)
SELECT workflow_type FROM types WHERE EXISTS (
    SELECT 1 FROM runs AS r INDEXED BY runs_by_type_version
    WHERE r.namespace = :namespace AND r.workflow_type = types.workflow_type AND r.version = :version);

-- name: part_runs_by_workflow_id
-- All runs that ever had this id.
runs AS r INDEXED BY runs_by_workflow_id WHERE r.namespace = :namespace AND r.workflow_id = :workflow_id AND {page}

-- name: part_runs_by_run_ids
-- The given runs, each once.
json_each(:run_ids) AS named CROSS JOIN runs AS r ON r.run_id = named.value WHERE r.namespace = :namespace AND {page}

-- name: part_runs_by_parent
-- Children of a run.
runs AS r INDEXED BY runs_by_parent WHERE r.namespace = :namespace AND r.parent_run_id = :parent_run_id AND {page}

-- name: part_runs_by_schedule
-- What a schedule started.
runs AS r INDEXED BY runs_by_schedule WHERE r.namespace = :namespace AND r.schedule_id = :schedule_id AND {page}

-- name: part_runs_by_key
-- Runs with one concurrency key.
runs AS r INDEXED BY runs_with_key WHERE r.namespace = :namespace AND r.concurrency_key = :concurrency_key AND {page}

-- name: part_runs_by_worker
-- The runs that a worker holds, among those that all workers of the namespace hold: no more than they have slots.
runs AS r INDEXED BY runs_by_status WHERE r.namespace = :namespace AND r.status = {RUN.RUNNING} AND r.worker_id = :worker_id AND {page}

-- name: part_runs_by_problem
-- Runs that the engine paused.
runs AS r INDEXED BY runs_by_problem WHERE r.namespace = :namespace AND r.problem IS NOT NULL AND {page}

-- name: part_runs_by_failing
-- Runs that are failing, or were paused with a problem.
runs AS r INDEXED BY runs_failing WHERE r.namespace = :namespace AND (r.retrying_steps > 0 OR r.problem IS NOT NULL) AND {page}

-- name: part_runs_by_waiting
-- Runs that wait for a signal.
runs AS r INDEXED BY runs_waiting WHERE r.namespace = :namespace AND r.awaits_signal > 0 AND {page}

-- name: part_runs_by_end
-- Runs that ended with one status; several are read one by one and merged.
runs AS r INDEXED BY runs_finished WHERE r.namespace = :namespace AND r.status = :status AND r.finished_at IS NOT NULL AND {page}

-- name: part_runs_by_run_id_prefix
-- Newest first, as ids sort by time. At most :most_ids are read, whatever the other filters are; ids of other
-- namespaces are among them.
(SELECT run_id AS id FROM runs WHERE run_id BETWEEN :first_run_id AND :last_run_id ORDER BY run_id DESC LIMIT :most_ids) AS searched
CROSS JOIN runs AS r ON r.run_id = searched.id WHERE r.namespace = :namespace AND {page}

-- name: part_runs_by_workflow_id_prefix
-- As above.
(SELECT run_id AS id FROM runs INDEXED BY runs_by_workflow_id
 WHERE namespace = :namespace AND workflow_id >= :first_id AND workflow_id < :end_of_ids
 ORDER BY workflow_id DESC LIMIT :most_ids) AS searched
CROSS JOIN runs AS r ON r.run_id = searched.id WHERE {page}

-- name: part_runs_by_label
-- By the first label of the filter; the others are checked run by run.
run_labels AS l CROSS JOIN runs AS r ON r.run_id = l.run_id
WHERE l.namespace = :namespace AND l.key = :label_key AND l.value = :label_value
AND (l.created_at, l.run_id) < (:upper_at, :upper_id) AND (l.created_at, l.run_id) > (:lower_at, :lower_id) AND {page}

-- name: part_older_runs
-- Newest first.
SELECT {run.shown:r read} FROM {source} ORDER BY {order}.{time} DESC, {order}.run_id DESC LIMIT :limit

-- name: part_newer_runs
-- The page before: read towards the newer; the caller reverses it.
SELECT {run.shown:r read} FROM {source} ORDER BY {order}.{time}, {order}.run_id LIMIT :limit

-- name: part_some_runs
-- The first matches of a search.
SELECT {run.shown:r read} FROM {source} LIMIT :limit

-- name: part_count_runs
-- Counting stops at the cap.
SELECT count(*) FROM (SELECT 1 FROM {source} LIMIT :limit)

-- name: count_runs_by_prefix
-- Both ids of a run may have the prefix.
SELECT count(*) FROM (
    SELECT r.run_id FROM {runs_by_run_id_prefix} UNION SELECT r.run_id FROM {runs_by_workflow_id_prefix} LIMIT :limit);

-- name: request_cancel
-- The first request is kept, with its reason and limit. A run that sleeps or is paused wakes, so that a worker can
-- clean up.
UPDATE runs SET cancel_requested_at = coalesce(cancel_requested_at, :now), cancel_reason = coalesce(cancel_reason, :reason),
                cancel_by = coalesce(cancel_by, :cancel_by), cancel_lease = coalesce(cancel_lease, lease),
                cascade_due = max(cascade_due, has_children), pause_requested = 0, pause_reason = NULL,
                status = CASE WHEN status IN ({RUN.SLEEPING}, {RUN.PAUSED}) THEN {RUN.PENDING} ELSE status END,
                nonce = CASE WHEN status IN ({RUN.SLEEPING}, {RUN.PAUSED}) THEN 0 ELSE nonce END,
                ready_at = CASE WHEN status IN ({RUN.SLEEPING}, {RUN.PAUSED}) THEN :now ELSE ready_at END,
                due_at = NULL, wait_reason = NULL, problem = NULL
WHERE run_id = :run_id AND finished_at IS NULL;

-- name: waits_of
-- What a sleeping run waits for, nearest first.
SELECT step_id FROM (
    SELECT step_id, wake_at AS at, begun_seq FROM steps INDEXED BY steps_timed
    WHERE run_id = :run_id AND status = {STEP.RUNNING} AND wake_at IS NOT NULL
    UNION ALL
    SELECT step_id, retry_at, begun_seq FROM steps INDEXED BY steps_retries WHERE run_id = :run_id AND status = {STEP.PENDING}
    UNION ALL
    SELECT step_id, NULL, begun_seq FROM steps INDEXED BY steps_waiting
    WHERE run_id = :run_id AND status = {STEP.RUNNING} AND kind IN ({KIND.SIGNAL}, {KIND.CHILD}) AND wake_at IS NULL)
ORDER BY at IS NULL, at, begun_seq LIMIT 1000;
