-- name: get_run
-- A run by its id, with its payloads.
SELECT {run.shown:r read} FROM runs AS r WHERE r.run_id = :run_id::uuid AND r.namespace = :namespace::text;

-- name: get_run_of_workflow
-- The open run with that workflow_id, else the latest.
SELECT {run.shown:r read}
FROM (
    (SELECT * FROM runs WHERE namespace = :namespace::text AND workflow_id = :workflow_id::text AND status IN ({RUN.OPEN}))
    UNION ALL
    (SELECT * FROM runs WHERE namespace = :namespace AND workflow_id = :workflow_id AND status IN ({RUN.ENDED})
     ORDER BY created_at DESC, run_id DESC LIMIT 1)
) AS r
ORDER BY r.status IN ({RUN.ENDED}) LIMIT 1;

-- name: run_payloads
-- Input, context, output and state of a run. A small context is stored beside the input.
SELECT ltrim(step_id, '$') AS name, output, output_meta, finished_at FROM steps
WHERE run_id = :run_id::uuid AND step_id IN ('$input', '$context', '$output', '$state')
UNION ALL
SELECT 'context', input, input_meta, finished_at FROM steps
WHERE run_id = :run_id AND step_id = '$input' AND input IS NOT NULL;

-- name: part_one_status
-- NULL: any. One value is an equality, so that its index gives the order of the list.
(:statuses::smallint IS NULL OR r.status = :statuses)

-- name: part_each_status
-- See part_merged_pages.
r.status = s.status

-- name: part_each_but_sleeping
-- See part_merged_statuses.
r.status = s.status AND s.status <> {RUN.SLEEPING}

-- name: part_sleeping
-- See part_merged_statuses.
r.status = {RUN.SLEEPING} AND s.status = {RUN.SLEEPING}

-- name: part_over_each_status
-- See part_merged_pages.
unnest(:statuses::smallint[]) AS s (status)

-- name: part_any_status
-- If the order does not matter.
(:statuses::smallint[] IS NULL OR r.status = ANY (:statuses))

-- name: part_one_type
-- Like part_one_status.
(:workflow_types::text IS NULL OR r.workflow_type = :workflow_types)

-- name: part_each_type
-- See part_merged_pages.
r.workflow_type = t.workflow_type

-- name: part_over_each_type
-- See part_merged_pages.
unnest(:workflow_types::text[]) AS t (workflow_type)

-- name: part_each_version
-- See part_merged_versions.
r.workflow_type = t.workflow_type AND r.version = t.version

-- name: part_no_version
-- A run that no worker has claimed yet may have none.
r.workflow_type = t.workflow_type AND r.version IS NULL AND t.version IS NULL

-- name: part_over_each_version
-- The versions of these types that have runs, by skipping from one to the next in the index, and runs without a
-- version.
(
    WITH RECURSIVE versions (workflow_type, version) AS (
        SELECT g.workflow_type, n.version FROM unnest(:workflow_types::text[]) AS g (workflow_type) CROSS JOIN LATERAL (
            SELECT r.version FROM runs AS r
            WHERE r.namespace = :namespace::text AND r.workflow_type = g.workflow_type AND r.created_at >= 0 AND r.version IS NOT NULL
            ORDER BY r.namespace, r.workflow_type, r.version LIMIT 1
        ) AS n
        UNION ALL
        SELECT v.workflow_type, n.version FROM versions AS v CROSS JOIN LATERAL (
            SELECT r.version FROM runs AS r
            WHERE r.namespace = :namespace AND r.workflow_type = v.workflow_type AND r.created_at >= 0 AND r.version > v.version
            ORDER BY r.namespace, r.workflow_type, r.version LIMIT 1
        ) AS n
    )
    SELECT workflow_type, version FROM versions
    UNION ALL
    SELECT g.workflow_type, NULL FROM unnest(:workflow_types) AS g (workflow_type)
) AS t

-- name: part_over_all_types
-- The types of a namespace that have runs, by skipping as above.
(
    WITH RECURSIVE types (workflow_type) AS (
        (
            SELECT r.workflow_type FROM runs AS r WHERE r.namespace = :namespace::text AND r.created_at >= 0
            ORDER BY r.namespace, r.workflow_type LIMIT 1
        )
        UNION ALL
        SELECT n.workflow_type FROM types AS g CROSS JOIN LATERAL (
            SELECT r.workflow_type FROM runs AS r
            WHERE r.namespace = :namespace AND r.created_at >= 0 AND r.workflow_type > g.workflow_type
            ORDER BY r.namespace, r.workflow_type LIMIT 1
        ) AS n
    )
    SELECT workflow_type FROM types
) AS t

-- name: part_of_all_types
-- For a version of any type: with each type given, the index finds it directly.
r.workflow_type = ANY (ARRAY(SELECT t.workflow_type FROM {over_all_types}))

-- name: part_any_type
-- If the order does not matter, or there are too many types to merge.
(:workflow_types::text[] IS NULL OR r.workflow_type = ANY (:workflow_types))

-- name: part_run_conditions
-- Every filter that is not NULL must hold. Plans are made for the given values, so they leave out NULL filters.
r.namespace = :namespace::text AND r.created_at >= 0 AND {with_status} AND {with_type}
    AND (:created_after::bigint IS NULL OR r.created_at >= :created_after)
    AND (:created_before::bigint IS NULL OR r.created_at < :created_before)
    AND (:workflow_id::text IS NULL OR r.run_id = ANY (ARRAY(
        SELECT o.run_id FROM runs AS o WHERE o.namespace = :namespace AND o.workflow_id = :workflow_id AND o.status IN ({RUN.OPEN})
        UNION ALL
        SELECT e.run_id FROM runs AS e WHERE e.namespace = :namespace AND e.workflow_id = :workflow_id AND e.status IN ({RUN.ENDED})
    )))
    AND (:run_ids::uuid[] IS NULL OR r.run_id = ANY (:run_ids))
    AND (:version::text IS NULL OR r.version = :version)
    AND (:parent_run_id::uuid IS NULL OR r.parent_run_id = :parent_run_id)
    AND (:schedule_id::text IS NULL OR r.schedule_id = :schedule_id)
    AND (:concurrency_key::text IS NULL OR r.concurrency_key = :concurrency_key)
    AND (:worker_id::text IS NULL OR (r.worker_id = :worker_id AND r.lease_until IS NOT NULL))
    AND (:with_problem::bool IS NULL OR (r.problem IS NOT NULL) = :with_problem)
    AND (:failing::bool IS NULL OR (r.retrying_steps > 0 OR r.problem IS NOT NULL) = :failing)
    AND (:waiting::bool IS NULL OR (r.awaits_signal > 0) = :waiting)
    AND (:ended_after::bigint IS NULL OR r.finished_at >= :ended_after)
    AND (:ended_before::bigint IS NULL OR r.finished_at < :ended_before)

-- name: part_has_labels
-- Checked in the run itself, in a form that the planner estimates as neither rare nor common, and does not turn into a
-- join.
(SELECT bool_and(coalesce(r.labels ->> w.key = w.value, false)) FROM unnest(:label_keys::text[], :label_values::text[]) AS w (key, value))

-- name: part_plain_runs
-- Driven by the best index; labels are checked run by run.
runs AS r WHERE {run_conditions} AND (:label_keys::text[] IS NULL OR {has_labels}) AND {beyond}

-- name: part_labelled_runs
-- Driven by the first label, in its order; each run is looked up by its id. OFFSET 0 makes the planner do that: for
-- tables without statistics it would read all runs of the namespace for each label.
run_labels AS l CROSS JOIN LATERAL (SELECT * FROM runs WHERE runs.run_id = l.run_id OFFSET 0) AS r
WHERE l.namespace = :namespace::text AND l.key = (:label_keys::text[])[1] AND l.value = (:label_values::text[])[1]
    AND (:created_after::bigint IS NULL OR l.created_at >= :created_after) AND (:created_before::bigint IS NULL OR l.created_at < :created_before)
    AND {run_conditions} AND (cardinality(:label_keys) = 1 OR {has_labels}) AND {beyond}

-- name: part_older_than_cursor
-- The cursor is the last row seen.
(:cursor_at::bigint IS NULL OR ({at}.{time}, {at}.run_id) < (:cursor_at, :cursor_id::uuid))

-- name: part_newer_than_cursor
-- As above.
(:cursor_at::bigint IS NULL OR ({at}.{time}, {at}.run_id) > (:cursor_at, :cursor_id::uuid))

-- name: part_older_order
-- Newest first.
{at}.{time} DESC, {at}.run_id DESC

-- name: part_newer_order
-- The page before: read towards the newer, nearest first; the caller reverses it.
{at}.{time}, {at}.run_id

-- name: part_older_merged_order
-- Like part_older_order; ids are text by then.
r.{time} DESC, r.run_id COLLATE "C" DESC

-- name: part_newer_merged_order
-- Like part_newer_order; ids are text by then.
r.{time}, r.run_id COLLATE "C"

-- name: part_ended_runs
-- One status, by the index of ended runs; the few runs of a narrow condition are sorted instead.
runs AS r WHERE {run_conditions} AND r.finished_at IS NOT NULL AND (:label_keys::text[] IS NULL OR {has_labels}) AND {beyond}

-- name: part_searched_ids
-- Ids with this prefix, as run id and as workflow id of open and ended runs. At most :most_ids are read, whatever the
-- other filters are; run ids of other namespaces are among them. Newest first, as ids sort by time.
(SELECT r.run_id FROM (
    SELECT * FROM runs WHERE run_id >= :first_run_id::uuid AND run_id <= :last_run_id::uuid ORDER BY run_id DESC LIMIT :most_ids::bigint
) AS r WHERE {run_conditions} AND (:label_keys::text[] IS NULL OR {has_labels}) LIMIT :limit::bigint)
UNION
(SELECT r.run_id FROM (
    SELECT * FROM runs
    WHERE namespace = :namespace AND status IN ({RUN.OPEN}) AND workflow_id >= :first_id::text AND workflow_id < :end_of_ids::text
    ORDER BY workflow_id DESC LIMIT :most_ids
) AS r WHERE {run_conditions} AND (:label_keys IS NULL OR {has_labels}) LIMIT :limit)
UNION
(SELECT r.run_id FROM (
    SELECT * FROM runs
    WHERE namespace = :namespace AND status IN ({RUN.ENDED}) AND workflow_id >= :first_id AND workflow_id < :end_of_ids
    ORDER BY workflow_id DESC LIMIT :most_ids
) AS r WHERE {run_conditions} AND (:label_keys IS NULL OR {has_labels}) LIMIT :limit)

-- name: part_searched_runs
-- The first matches, in the order of the list.
SELECT {run.shown:r read} FROM runs AS r WHERE r.run_id = ANY (ARRAY({searched_ids})) ORDER BY r.created_at DESC, r.run_id DESC LIMIT :limit::bigint

-- name: part_page_of_runs
-- One row more than a page has shows whether there are more.
SELECT {run.shown:r read} FROM {source} ORDER BY {order} LIMIT :limit::bigint

-- name: part_merged_pages
-- Several values of a column: a page of each, by its index, merged into one page. In one snapshot, so that a run which
-- changes its status is neither missed nor returned twice.
SELECT r.* FROM {over} CROSS JOIN LATERAL ({page}) AS r ORDER BY {merged_order} LIMIT :limit::bigint

-- name: part_merged_statuses
-- The same for statuses, perhaps of types: sleeping runs of a type have their own index, which the planner takes only
-- for a status that is written out.
SELECT r.* FROM {over} CROSS JOIN LATERAL (({page}) UNION ALL ({page_of_sleeping})) AS r ORDER BY {merged_order} LIMIT :limit::bigint

-- name: part_merged_versions
-- The same for types: their index has the version before the time, so that it serves both queries.
SELECT r.* FROM {over} CROSS JOIN LATERAL (({page}) UNION ALL ({page_without_version})) AS r ORDER BY {merged_order} LIMIT :limit::bigint

-- name: part_counted_runs
-- Counting stops at the cap.
SELECT count(*) AS runs FROM (SELECT 1 FROM {source} LIMIT :limit::bigint) AS counted

-- name: open_waits
-- What a run waits for, nearest first.
SELECT step_id FROM steps WHERE run_id = :run_id::uuid AND due_at IS NOT NULL AND (kind <> {KIND.FUNCTION} OR status = {STEP.PENDING})
ORDER BY due_at, begun_seq LIMIT :limit::bigint;

-- name: endings_of
-- How runs ended, for waiting callers: status, output, error, and the successor if there is one.
SELECT g.n, r.status, r.error, r.continued_as::text AS continued_as, s.output, s.output_meta
FROM unnest(:run_ids::uuid[], :namespaces::text[]) WITH ORDINALITY AS g (run_id, namespace, n)
JOIN runs AS r ON r.run_id = g.run_id AND r.namespace = g.namespace
LEFT JOIN steps AS s ON r.status = {RUN.COMPLETED} AND s.run_id = r.run_id AND s.step_id = '$output'
ORDER BY g.n;
