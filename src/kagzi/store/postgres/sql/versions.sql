-- name: versions_of
-- What decides about new runs of these types. Few rows of a type are ever there; the latest ones are, if they are many.
SELECT t.workflow_type, v.version, v.deprecated, v.is_default
FROM unnest(:workflow_types::text[]) AS t (workflow_type)
CROSS JOIN LATERAL (
    SELECT version, deprecated, is_default, first_seen_at FROM workflow_versions
    WHERE namespace = :namespace::text AND workflow_type = t.workflow_type
    ORDER BY is_default DESC, first_seen_at DESC, version LIMIT :most_versions::bigint
) AS v
ORDER BY t.workflow_type, v.first_seen_at DESC, v.version;

-- name: lock_versions
-- Of one type, so that two who change them decide one after the other.
SELECT workflow_type, version, deprecated, is_default FROM workflow_versions
WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text
ORDER BY version FOR UPDATE;

-- name: unset_default_version
-- Before another is set: there is one at most.
UPDATE workflow_versions SET is_default = false WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text AND is_default;

-- name: set_default_version
-- Runs that ask for none get this one.
UPDATE workflow_versions SET is_default = true
WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text AND version = :version::text;

-- name: deprecate_version
-- No new runs; or again some.
UPDATE workflow_versions SET deprecated = :deprecated::boolean
WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text AND version = :version::text;

-- name: list_versions_older
-- A page of versions, latest first seen first, with their open runs (among the oldest open ones of the namespace: what an old
-- version still has to finish is there) and the workers that are there.
WITH page AS (
    SELECT workflow_type, version, first_seen_at, deprecated, is_default FROM workflow_versions
    WHERE namespace = :namespace::text
        AND (:workflow_type::text IS NULL OR workflow_type = :workflow_type)
        AND (:version::text IS NULL OR version = :version)
        AND (:cursor_at::bigint IS NULL OR (first_seen_at, workflow_type, version) < (:cursor_at, :cursor_type::text, :cursor_version::text))
    ORDER BY first_seen_at DESC, workflow_type DESC, version DESC
    LIMIT :limit::bigint
), opened AS (
    SELECT workflow_type, version, count(*) AS runs FROM (
        SELECT workflow_type, version FROM runs
        WHERE namespace = :namespace AND created_at >= 0 AND status IN ({RUN.OPEN}) ORDER BY created_at, run_id LIMIT :count_cap::bigint
    ) AS oldest GROUP BY workflow_type, version
), serving AS (
    SELECT s ->> 'workflow_type' AS workflow_type, s ->> 'version' AS version, count(DISTINCT w.worker_id) AS workers
    FROM workers AS w CROSS JOIN LATERAL json_array_elements(w.served) AS s
    WHERE w.namespace = :namespace AND w.status <> {WORKER.OFFLINE} AND w.last_heartbeat_at >= :alive_since::bigint GROUP BY 1, 2
)
SELECT p.*, coalesce(o.runs, 0) AS open_runs, coalesce(s.workers, 0) AS workers,
    coalesce((SELECT sum(runs) FROM opened), 0) >= :count_cap AS open_is_capped
FROM page AS p
LEFT JOIN opened AS o ON o.workflow_type = p.workflow_type AND o.version = p.version
LEFT JOIN serving AS s ON s.workflow_type = p.workflow_type AND s.version = p.version
ORDER BY p.first_seen_at DESC, p.workflow_type DESC, p.version DESC;

-- name: list_versions_newer
-- The same towards the later, nearest first: the reader turns the page around.
WITH page AS (
    SELECT workflow_type, version, first_seen_at, deprecated, is_default FROM workflow_versions
    WHERE namespace = :namespace::text
        AND (:workflow_type::text IS NULL OR workflow_type = :workflow_type)
        AND (:version::text IS NULL OR version = :version)
        AND (:cursor_at::bigint IS NULL OR (first_seen_at, workflow_type, version) > (:cursor_at, :cursor_type::text, :cursor_version::text))
    ORDER BY first_seen_at, workflow_type, version
    LIMIT :limit::bigint
), opened AS (
    SELECT workflow_type, version, count(*) AS runs FROM (
        SELECT workflow_type, version FROM runs
        WHERE namespace = :namespace AND created_at >= 0 AND status IN ({RUN.OPEN}) ORDER BY created_at, run_id LIMIT :count_cap::bigint
    ) AS oldest GROUP BY workflow_type, version
), serving AS (
    SELECT s ->> 'workflow_type' AS workflow_type, s ->> 'version' AS version, count(DISTINCT w.worker_id) AS workers
    FROM workers AS w CROSS JOIN LATERAL json_array_elements(w.served) AS s
    WHERE w.namespace = :namespace AND w.status <> {WORKER.OFFLINE} AND w.last_heartbeat_at >= :alive_since::bigint GROUP BY 1, 2
)
SELECT p.*, coalesce(o.runs, 0) AS open_runs, coalesce(s.workers, 0) AS workers,
    coalesce((SELECT sum(runs) FROM opened), 0) >= :count_cap AS open_is_capped
FROM page AS p
LEFT JOIN opened AS o ON o.workflow_type = p.workflow_type AND o.version = p.version
LEFT JOIN serving AS s ON s.workflow_type = p.workflow_type AND s.version = p.version
ORDER BY p.first_seen_at, p.workflow_type, p.version;
