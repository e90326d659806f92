-- name: part_worker_columns
-- A worker as people see it.
worker_id, namespace, served, max_concurrent, hostname, pid, sdk_version, build_id, labels, status, active_count, total_completed,
total_failed, registered_at, last_heartbeat_at

-- name: put_worker
-- Insert, or refresh what a reconnecting worker says; its registration time and totals stay, and a process that was draining
-- drains still.
INSERT INTO workers (worker_id, namespace, served, max_concurrent, hostname, pid, sdk_version, build_id, labels, status,
                     active_count, registered_at, last_heartbeat_at)
VALUES (:worker_id, :namespace, :served, :max_concurrent, :hostname, :pid, :sdk_version, :build_id, :labels, :status,
        :active_count, :now, :now)
ON CONFLICT (namespace, worker_id) DO UPDATE SET served = excluded.served, max_concurrent = excluded.max_concurrent,
    hostname = excluded.hostname, pid = excluded.pid, sdk_version = excluded.sdk_version, build_id = excluded.build_id,
    labels = excluded.labels, status = CASE WHEN workers.status = 'draining' AND excluded.pid > 0
        AND workers.pid = excluded.pid AND workers.hostname = excluded.hostname THEN 'draining' ELSE excluded.status END,
    active_count = excluded.active_count,
    last_heartbeat_at = excluded.last_heartbeat_at;

-- name: note_versions
-- What was ever served: JSON rows of (type, version).
INSERT INTO workflow_versions (namespace, workflow_type, version, first_seen_at)
SELECT :namespace, json_extract(value, '$[0]'), json_extract(value, '$[1]'), :now FROM json_each(:served) WHERE true
ON CONFLICT DO NOTHING;

-- name: set_worker_status
-- Online, draining or offline.
UPDATE workers SET status = ?, last_heartbeat_at = max(last_heartbeat_at, ?) WHERE namespace = ? AND worker_id = ?;

-- name: worker_status
-- How it is now.
SELECT status FROM workers WHERE namespace = ? AND worker_id = ?;

-- name: drain_worker
-- To take no more work. That somebody wants this is no sign of life.
UPDATE workers SET status = 'draining' WHERE namespace = ? AND worker_id = ? AND status = 'online';

-- name: lose_workers
-- Those who were there and were not heard of any more.
UPDATE workers SET status = 'offline', active_count = 0
WHERE (namespace, worker_id) IN (
    SELECT namespace, worker_id FROM workers INDEXED BY workers_present
    WHERE status <> 'offline' AND last_heartbeat_at < :since
      AND (:namespace IS NULL OR (namespace = :namespace AND worker_id = :worker_id)) LIMIT :limit)
RETURNING namespace, worker_id;

-- name: forget_workers
-- Those who left long ago, some at a time.
DELETE FROM workers WHERE (namespace, worker_id) IN (
    SELECT namespace, worker_id FROM workers WHERE status = 'offline' AND last_heartbeat_at < ? LIMIT ?);

-- name: worker_gone
-- Offline, with nothing in hand.
UPDATE workers SET status = 'offline', active_count = 0 WHERE namespace = ? AND worker_id = ?;

-- name: get_worker
-- One worker.
SELECT {worker_columns} FROM workers WHERE namespace = ? AND worker_id = ?;

-- name: list_older_workers
-- Newest registration first.
SELECT {worker_columns} FROM workers INDEXED BY workers_by_registered
WHERE namespace = :namespace AND (registered_at, worker_id) < (:at, :id)
  AND (:status IS NULL OR :status = CASE WHEN last_heartbeat_at < :alive_since THEN 'offline' ELSE status END)
  AND (:workflow_type IS NULL OR EXISTS (SELECT 1 FROM json_each(served) WHERE json_extract(value, '$[0]') = :workflow_type))
ORDER BY registered_at DESC, worker_id DESC LIMIT :limit;

-- name: list_newer_workers
-- The page before; turned round by the caller.
SELECT {worker_columns} FROM workers INDEXED BY workers_by_registered
WHERE namespace = :namespace AND (registered_at, worker_id) > (:at, :id)
  AND (:status IS NULL OR :status = CASE WHEN last_heartbeat_at < :alive_since THEN 'offline' ELSE status END)
  AND (:workflow_type IS NULL OR EXISTS (SELECT 1 FROM json_each(served) WHERE json_extract(value, '$[0]') = :workflow_type))
ORDER BY registered_at, worker_id LIMIT :limit;
