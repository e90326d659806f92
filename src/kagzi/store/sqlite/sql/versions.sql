-- name: versions_of
-- What decides about new runs of a type. Few rows of a type are ever there; the latest ones are, if they are many.
SELECT workflow_type, version, deprecated, is_default FROM (
    SELECT * FROM workflow_versions
    WHERE namespace = ? AND workflow_type = ? ORDER BY is_default DESC, first_seen_at DESC, version LIMIT ?)
ORDER BY first_seen_at DESC, version;

-- name: unset_default_version
-- Before another is set: there is one at most.
UPDATE workflow_versions SET is_default = 0 WHERE namespace = ? AND workflow_type = ? AND is_default = 1;

-- name: set_default_version
-- Runs that ask for none get this one.
UPDATE workflow_versions SET is_default = 1 WHERE namespace = ? AND workflow_type = ? AND version = ?;

-- name: deprecate_version
-- No new runs; or again some.
UPDATE workflow_versions SET deprecated = ? WHERE namespace = ? AND workflow_type = ? AND version = ?;

-- name: list_older_versions
-- Latest first seen first.
SELECT workflow_type, version, first_seen_at, deprecated, is_default FROM workflow_versions
WHERE namespace = :namespace AND (:workflow_type IS NULL OR workflow_type = :workflow_type)
  AND (:version IS NULL OR version = :version)
  AND (first_seen_at, workflow_type, version) < (:at, :after_type, :after_version)
ORDER BY first_seen_at DESC, workflow_type DESC, version DESC LIMIT :limit;

-- name: list_newer_versions
-- The page before; turned round by the caller.
SELECT workflow_type, version, first_seen_at, deprecated, is_default FROM workflow_versions
WHERE namespace = :namespace AND (:workflow_type IS NULL OR workflow_type = :workflow_type)
  AND (:version IS NULL OR version = :version)
  AND (first_seen_at, workflow_type, version) > (:at, :after_type, :after_version)
ORDER BY first_seen_at, workflow_type, version LIMIT :limit;

-- name: open_runs_of_versions
-- Among the oldest open runs of the namespace: what an old version still has to finish is there.
SELECT workflow_type, version, count(*) FROM (
    SELECT workflow_type, version FROM runs INDEXED BY runs_by_status
    WHERE namespace = ? AND status IN ({RUN.OPEN}) ORDER BY created_at, run_id LIMIT ?)
GROUP BY workflow_type, version;

-- name: workers_of_versions
-- Who is there.
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), count(DISTINCT worker_id)
FROM workers INDEXED BY workers_present, json_each(workers.served)
WHERE namespace = ? AND status <> 'offline' AND last_heartbeat_at >= ?
GROUP BY 1, 2;
