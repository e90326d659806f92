-- name: lock_worker
-- Its status, which no other transaction changes meanwhile.
SELECT status FROM workers WHERE namespace = :namespace::text AND worker_id = :worker_id::text FOR UPDATE;

-- name: note_versions
-- Every version that was ever served.
INSERT INTO workflow_versions (namespace, workflow_type, version, first_seen_at)
SELECT :namespace::text, v.workflow_type, v.version, :now::bigint
FROM rows(:versions) AS v (workflow_type text, version text)
WHERE true ORDER BY v.workflow_type, v.version
ON CONFLICT DO NOTHING
RETURNING 1;

-- name: set_worker_status
-- Online, draining or offline. A worker that is offline executes nothing.
UPDATE workers
SET status = {worker_status}, last_heartbeat_at = greatest(last_heartbeat_at, :now::bigint),
    active_count = CASE WHEN {worker_status} = {WORKER.OFFLINE} THEN 0 ELSE active_count END
WHERE namespace = :namespace::text AND worker_id = :worker_id::text;

-- name: drain_worker
-- It accepts no more work. A request to drain is not a sign of life.
UPDATE workers SET status = {WORKER.DRAINING}
WHERE namespace = :namespace::text AND worker_id = :worker_id::text AND status = {WORKER.ONLINE}
RETURNING 1;

-- name: expire_workers
-- Workers that no longer send heartbeats. A locked row is just being written, so that worker is alive.
UPDATE workers SET status = {WORKER.OFFLINE}, active_count = 0
WHERE (namespace, worker_id) IN (
    SELECT namespace, worker_id FROM workers /* INDEXED BY workers_present */
    WHERE status <> {WORKER.OFFLINE} AND last_heartbeat_at < :unheard_since::bigint
        AND (:namespace::text IS NULL OR (namespace = :namespace AND worker_id = :worker_id::text))
    ORDER BY namespace, worker_id LIMIT :limit::bigint FOR UPDATE SKIP LOCKED
)
RETURNING namespace, worker_id;

-- name: forget_workers
-- Those that left long ago, some rows at a time.
DELETE FROM workers
WHERE (namespace, worker_id) IN (
        SELECT namespace, worker_id FROM workers
        WHERE status = {WORKER.OFFLINE} AND last_heartbeat_at < :before::bigint LIMIT :limit::bigint
    )
    AND status = {WORKER.OFFLINE}
RETURNING 1;

-- name: get_worker
-- One worker.
SELECT {worker} FROM workers WHERE namespace = :namespace::text AND worker_id = :worker_id::text;

-- name: list_workers
-- Newest registration first.
SELECT {worker} FROM workers /* INDEXED BY workers_by_registered */
WHERE namespace = :namespace::text AND (:workflow_type::text IS NULL OR {serves_type})
    AND (:status::text IS NULL
        OR CASE WHEN last_heartbeat_at < :alive_since::bigint THEN {WORKER.OFFLINE} ELSE status END = {worker_status})
    AND (registered_at, worker_id) {<|>} (:cursor_at::bigint, :cursor_id::text)
ORDER BY registered_at {DESC|ASC}, worker_id {DESC|ASC} LIMIT :limit::bigint;

-- name: note_worker_events
-- In the order in which they happened.
INSERT INTO worker_events (namespace, worker_id, at, kind, detail)
SELECT e.namespace, e.worker_id, :now::bigint, e.kind, e.detail
FROM rows(:events) WITH ORDINALITY AS e (namespace text, worker_id text, kind text, detail text, place)
ORDER BY e.place;

-- name: trim_worker_events
-- Keeps the latest events of a worker; it sees the rows of the statement before. The plus: SQLite 3.40 does not use an
-- index that ends in the rowid (number) when the rowid is compared as part of a row.
DELETE FROM worker_events
WHERE namespace = :namespace::text AND worker_id = :worker_id::text AND (at, +number) IN (
    SELECT at, number FROM worker_events WHERE namespace = :namespace AND worker_id = :worker_id
    ORDER BY at DESC, number DESC LIMIT 1000 OFFSET :kept::bigint
);

-- name: list_worker_events
-- Latest first.
SELECT worker_id, at, number, kind, detail FROM worker_events
WHERE namespace = :namespace::text AND (:worker_id::text IS NULL OR worker_id = :worker_id)
    AND (at, number) {<|>} (:cursor_at::bigint, :cursor_number::bigint)
ORDER BY at {DESC|ASC}, number {DESC|ASC} LIMIT :limit::bigint;

-- name: forget_worker_events
-- The oldest, some rows at a time. The plus: see trim_worker_events.
DELETE FROM worker_events WHERE (namespace, worker_id, at, +number) IN (
    SELECT namespace, worker_id, at, number FROM worker_events
    WHERE at < :before::bigint ORDER BY at LIMIT :limit::bigint
)
RETURNING 1;
