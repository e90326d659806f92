-- name: lock_versions
-- Of one type, so that concurrent changes are decided one after the other.
SELECT workflow_type, version, deprecated, is_default, schemas_digest, earlier_digest, schemas_at FROM workflow_versions
WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text
ORDER BY version FOR UPDATE;

-- name: unset_default_version
-- Before another is set: there is at most one.
UPDATE workflow_versions SET is_default = false
WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text AND is_default;

-- name: set_default_version
-- Runs that ask for no version get this one.
UPDATE workflow_versions SET is_default = true
WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text AND version = :version::text;

-- name: deprecate_version
-- Whether it accepts new runs.
UPDATE workflow_versions SET deprecated = :deprecated::boolean
WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text AND version = :version::text;

-- name: list_versions
-- Newest first by first_seen_at, with their open runs (among the oldest open ones of the namespace, which include what
-- an old version still has to finish) and the workers that are connected.
WITH page AS (
    SELECT workflow_type, version, first_seen_at, deprecated, is_default FROM workflow_versions
    WHERE namespace = :namespace::text
        AND (:workflow_type::text IS NULL OR workflow_type = :workflow_type)
        AND (:version::text IS NULL OR version = :version)
        AND (first_seen_at, workflow_type, version) {<|>} (:cursor_at::bigint, :cursor_type::text, :cursor_version::text)
    ORDER BY first_seen_at {DESC|ASC}, workflow_type {DESC|ASC}, version {DESC|ASC}
    LIMIT :limit::bigint
), opened AS (
    SELECT workflow_type, version, count(*) AS runs FROM (
        SELECT workflow_type, version FROM runs /* INDEXED BY runs_by_status */
        WHERE namespace = :namespace AND created_at >= 0 AND status IN ({RUN.OPEN})
        ORDER BY created_at, run_id LIMIT :count_cap::bigint
    ) AS oldest GROUP BY workflow_type, version
), serving AS (
    SELECT {type_and_version_served}, count(DISTINCT w.worker_id) AS workers
    FROM workers AS w /* INDEXED BY workers_present */ CROSS JOIN {each_served} AS each
    WHERE w.namespace = :namespace AND w.status <> {WORKER.OFFLINE} AND w.last_heartbeat_at >= :alive_since::bigint
    GROUP BY 1, 2
)
SELECT p.*, coalesce(opened.runs, 0) AS open_runs, coalesce(serving.workers, 0) AS workers,
    coalesce((SELECT sum(runs) FROM opened), 0) >= :count_cap AS open_is_capped
FROM page AS p
LEFT JOIN opened ON opened.workflow_type = p.workflow_type AND opened.version = p.version
LEFT JOIN serving ON serving.workflow_type = p.workflow_type AND serving.version = p.version
ORDER BY p.first_seen_at {DESC|ASC}, p.workflow_type {DESC|ASC}, p.version {DESC|ASC};

-- name: changed_schemas
-- Of what a worker registers, the schemas that differ from the latest: usually none. A version that never registered a
-- schema has the empty one.
SELECT s.workflow_type, s.version, s.digest
FROM rows(:schemas) AS s (workflow_type text, version text, digest text)
JOIN workflow_versions AS v
    ON v.namespace = :namespace::text AND v.workflow_type = s.workflow_type AND v.version = s.version
WHERE coalesce(v.schemas_digest, :nothing::text) <> s.digest
ORDER BY s.workflow_type, s.version;

-- name: add_schemas
-- The row that set_schemas refers to. Its time protects it from deletion until then.
INSERT INTO workflow_schemas (namespace, digest, document, added_at)
VALUES (:namespace::text, :digest::text, :document::text, :now::bigint)
ON CONFLICT (namespace, digest) DO UPDATE SET added_at = excluded.added_at;

-- name: set_schemas
-- The latest schemas of a version.
UPDATE workflow_versions
SET earlier_digest = schemas_digest, schemas_digest = :digest::text, schemas_at = :now::bigint
WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text AND version = :version::text
    AND coalesce(schemas_digest, '') <> :digest;

-- name: forget_schemas
-- Schemas that no version refers to any more.
DELETE FROM workflow_schemas
WHERE added_at < :before::bigint AND NOT EXISTS (
    SELECT 1 FROM workflow_versions AS v
    WHERE v.namespace = workflow_schemas.namespace
        AND (v.schemas_digest = workflow_schemas.digest OR v.earlier_digest = workflow_schemas.digest)
);

-- name: note_builds
-- Versions whose workers all have another build than before: from then on no other code takes a run.
UPDATE workflow_versions AS v SET code_build = b.build_id, replay_at = 0, replay_run_id = :nil_id::text
FROM (
    SELECT w.namespace, {type_and_version_served}, min(w.build_id) AS build_id
    FROM workers AS w /* INDEXED BY workers_present */ CROSS JOIN {each_served} AS each
    WHERE w.status <> {WORKER.OFFLINE} AND w.status = {WORKER.ONLINE} AND w.last_heartbeat_at >= :alive_since::bigint
    GROUP BY 1, 2, 3 HAVING min(w.build_id) = max(w.build_id) AND min(w.build_id) <> ''
) AS b
WHERE v.namespace = b.namespace AND v.workflow_type = b.workflow_type AND v.version = b.version
    AND coalesce(v.code_build, '') <> b.build_id;

-- name: next_replays
-- One version whose waiting runs are being replayed, and where that continues.
SELECT namespace, workflow_type, version, replay_at, replay_run_id FROM workflow_versions /* INDEXED BY workflow_versions_replayed */
WHERE replay_at >= 0 ORDER BY replay_at LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: asleep_after
-- The next sleeping runs of a type, and whether they wait for a signal in code of this version. A retry of the whole run
-- has its time, and may have left waits behind; a run that was adopted has the code of its own build.
SELECT run_id::text AS run_id, created_at, version = :version::text AND awaits_signal > 0 AND wait_reason <> {WAIT.RETRY} AND pinned_build IS NULL AS waits
FROM runs /* INDEXED BY runs_asleep_by_type */
WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text AND created_at >= 0 AND status = {RUN.SLEEPING}
    AND (created_at, run_id) > (:replay_at::bigint, :replay_run_id::uuid)
ORDER BY created_at, run_id LIMIT :limit::bigint;

-- name: wake_to_replay
-- As if something had come for them. A run that is locked is being woken.
UPDATE runs SET status = {RUN.PENDING}, ready_at = :now::bigint, nonce = 0, due_at = NULL, wait_reason = NULL, seq = seq + 1
WHERE run_id IN (
        SELECT r.run_id FROM rows(:runs) AS w (run_id uuid) JOIN runs AS r ON r.run_id = w.run_id
        WHERE r.status + 0 = {RUN.SLEEPING} ORDER BY r.run_id FOR UPDATE OF r SKIP LOCKED
    )
RETURNING 1;

-- name: continue_replays
-- After this run; NULL: all were woken.
UPDATE workflow_versions SET replay_at = :replay_at::bigint, replay_run_id = :replay_run_id::text
WHERE namespace = :namespace::text AND workflow_type = :workflow_type::text AND version = :version::text;
