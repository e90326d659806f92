-- name: all_type_limits
-- The writer caches them.
SELECT * FROM workflow_types;

-- name: type_state
-- The state of claims of a type.
SELECT next_start_at, turn FROM workflow_types WHERE namespace = ? AND workflow_type = ?;

-- name: running_of_type
-- Used permits of a type, by key. A namespace has no more running runs than its workers have slots.
SELECT coalesce(concurrency_key, ''), count(*) FROM runs INDEXED BY runs_by_status
WHERE namespace = ? AND status = {RUN.RUNNING} AND workflow_type = ? GROUP BY 1;

-- name: pending_new_runs
-- The first runs of a queue that were never claimed, of one version (NULL: not pinned).
SELECT run_id, '', priority, ready_at, 1 FROM runs INDEXED BY runs_pending
WHERE namespace = :namespace AND workflow_type = :workflow_type AND version IS :version AND status = {RUN.PENDING} AND lease = 0
  AND (deadline_at IS NULL OR deadline_at > :now) AND (pinned_build IS NULL OR pinned_build = :build_id)
ORDER BY priority DESC, ready_at, run_id LIMIT :limit;

-- name: pending_any_runs
-- The first runs of a queue, of one version (NULL: not pinned).
SELECT run_id, '', priority, ready_at, 0 FROM runs INDEXED BY runs_pending
WHERE namespace = :namespace AND workflow_type = :workflow_type AND version IS :version AND status = {RUN.PENDING}
  AND (deadline_at IS NULL OR deadline_at > :now) AND (pinned_build IS NULL OR pinned_build = :build_id)
ORDER BY priority DESC, ready_at, run_id LIMIT :limit;

-- name: going_on_of_type
-- The first runs that were claimed before: rates do not count them.
SELECT run_id, coalesce(concurrency_key, ''), priority, ready_at, 0 FROM runs INDEXED BY runs_to_go_on
WHERE namespace = :namespace AND workflow_type = :workflow_type AND status = {RUN.PENDING} AND lease > 0
  AND (version IS NULL OR version IN (SELECT value FROM json_each(:versions)))
  AND (deadline_at IS NULL OR deadline_at > :now) AND (pinned_build IS NULL OR pinned_build = :build_id)
ORDER BY priority DESC, ready_at, run_id LIMIT :limit;

-- name: key_from
-- The next key with pending runs, without reading those of the one before.
SELECT concurrency_key FROM runs INDEXED BY runs_by_key
WHERE namespace = ? AND workflow_type = ? AND concurrency_key IS NOT NULL AND status = {RUN.PENDING} AND concurrency_key >= ?
ORDER BY concurrency_key LIMIT 1;

-- name: pending_of_key
-- The first runs of a key.
SELECT run_id, concurrency_key, priority, ready_at, lease = 0 FROM runs INDEXED BY runs_by_key
WHERE namespace = :namespace AND workflow_type = :workflow_type AND concurrency_key = :key AND concurrency_key IS NOT NULL
  AND status = {RUN.PENDING} AND (version IS NULL OR version IN (SELECT value FROM json_each(:versions)))
  AND (deadline_at IS NULL OR deadline_at > :now) AND (pinned_build IS NULL OR pinned_build = :build_id)
ORDER BY priority DESC, ready_at, run_id LIMIT :limit;

-- name: pending_without_key
-- Runs without a key that were started before their type had limits by key, of one version: taken from the head of the
-- queue.
SELECT run_id, '', priority, ready_at, first FROM (
    SELECT run_id, concurrency_key, priority, ready_at, lease = 0 AS first, deadline_at, pinned_build FROM runs INDEXED BY runs_pending
    WHERE namespace = :namespace AND workflow_type = :workflow_type AND version IS :version AND status = {RUN.PENDING}
    ORDER BY priority DESC, ready_at, run_id LIMIT 200)
WHERE concurrency_key IS NULL AND (deadline_at IS NULL OR deadline_at > :now) AND (pinned_build IS NULL OR pinned_build = :build_id)
ORDER BY priority DESC, ready_at, run_id LIMIT :limit;

-- name: key_rate
-- When a key may start its next run.
SELECT next_start_at FROM workflow_keys WHERE namespace = ? AND workflow_type = ? AND concurrency_key = ?;

-- name: note_turn
-- Where the next claim continues, and when the next start is due.
UPDATE workflow_types SET next_start_at = ?, turn = ? WHERE namespace = ? AND workflow_type = ?;

-- name: note_key_rate
-- When a key may start its next run.
INSERT INTO workflow_keys (namespace, workflow_type, concurrency_key, next_start_at) VALUES (?, ?, ?, ?)
ON CONFLICT (namespace, workflow_type, concurrency_key) DO UPDATE SET next_start_at = excluded.next_start_at;

-- name: forget_past_key_rates
-- Deletes rows whose time has passed, a few at a time.
DELETE FROM workflow_keys WHERE (namespace, workflow_type, concurrency_key) IN (
    SELECT namespace, workflow_type, concurrency_key FROM workflow_keys INDEXED BY workflow_keys_past
    WHERE namespace = ? AND workflow_type = ? AND next_start_at < ? LIMIT 100);

-- name: type_waits
-- Whether a type has a pending run.
SELECT 1 FROM runs INDEXED BY runs_pending WHERE namespace = ? AND workflow_type = ? AND status = {RUN.PENDING} LIMIT 1;

-- name: count_in_queue
-- How many runs of a type, or of one of its keys, run or wait and are not being cancelled. Counting stops when enough
-- are found.
SELECT count(*) FROM (
    SELECT * FROM (
        SELECT 1 FROM runs INDEXED BY runs_by_status
        WHERE namespace = :namespace AND status = {RUN.RUNNING} AND workflow_type = :workflow_type AND cancel_requested_at IS NULL
          AND (:key IS NULL OR concurrency_key = :key) AND run_id IS NOT :leaving LIMIT :limit)
    UNION ALL
    SELECT * FROM (
        SELECT 1 FROM runs INDEXED BY runs_pending
        WHERE namespace = :namespace AND status = {RUN.PENDING} AND workflow_type = :workflow_type AND cancel_requested_at IS NULL
          AND (:key IS NULL OR concurrency_key = :key) AND run_id IS NOT :leaving LIMIT :limit));

-- name: oldest_open_of_type
-- The oldest open runs of a type that are not being cancelled, whatever they wait for: those that a new one replaces.
-- Not starts whose time has not come. Ids grow with time.
SELECT run_id FROM (
    SELECT run_id FROM runs INDEXED BY runs_by_status
    WHERE namespace = :namespace AND status = {RUN.RUNNING} AND workflow_type = :workflow_type AND cancel_requested_at IS NULL
     
    UNION ALL
    SELECT run_id FROM runs INDEXED BY runs_pending
    WHERE namespace = :namespace AND status = {RUN.PENDING} AND workflow_type = :workflow_type AND cancel_requested_at IS NULL
     
    UNION ALL
    SELECT run_id FROM runs INDEXED BY runs_asleep_by_type
    WHERE namespace = :namespace AND status = {RUN.SLEEPING} AND workflow_type = :workflow_type AND cancel_requested_at IS NULL AND lease > 0
     
    UNION ALL
    SELECT run_id FROM runs INDEXED BY runs_by_status
    WHERE namespace = :namespace AND status = {RUN.PAUSED} AND workflow_type = :workflow_type AND cancel_requested_at IS NULL
     )
ORDER BY run_id LIMIT :limit;

-- name: oldest_open_of_key
-- The same for one of its keys.
SELECT run_id FROM runs INDEXED BY runs_open_by_key
WHERE namespace = :namespace AND workflow_type = :workflow_type AND concurrency_key = :key AND finished_at IS NULL
  AND cancel_requested_at IS NULL AND (status <> {RUN.SLEEPING} OR lease > 0)
ORDER BY run_id LIMIT :limit;

-- name: type_from
-- The next type with pending runs.
SELECT workflow_type FROM runs INDEXED BY runs_pending
WHERE namespace = ? AND status = {RUN.PENDING} AND workflow_type >= ? ORDER BY workflow_type LIMIT 1;

-- name: queue_depths
-- How many runs of a type wait for a worker, by version. Counting stops at a cap.
SELECT coalesce(version, '') AS version, count(*), min(ready_at) FROM (
    SELECT version, ready_at FROM runs INDEXED BY runs_pending
    WHERE namespace = ? AND status = {RUN.PENDING} AND workflow_type = ? LIMIT ?)
GROUP BY 1 ORDER BY 1;

-- name: open_by_type
-- Among the oldest open runs of the namespace: the oldest of each status, which may have many more.
SELECT workflow_type, count(*) AS runs FROM (SELECT workflow_type FROM (
    SELECT * FROM (SELECT workflow_type, created_at, run_id FROM runs INDEXED BY runs_by_status
                   WHERE namespace = :namespace AND status = {RUN.PENDING} ORDER BY created_at, run_id LIMIT :cap)
    UNION ALL
    SELECT * FROM (SELECT workflow_type, created_at, run_id FROM runs INDEXED BY runs_by_status
                   WHERE namespace = :namespace AND status = {RUN.RUNNING} ORDER BY created_at, run_id LIMIT :cap)
    UNION ALL
    SELECT * FROM (SELECT workflow_type, created_at, run_id FROM runs INDEXED BY runs_by_status
                   WHERE namespace = :namespace AND status = {RUN.SLEEPING} ORDER BY created_at, run_id LIMIT :cap)
    UNION ALL
    SELECT * FROM (SELECT workflow_type, created_at, run_id FROM runs INDEXED BY runs_by_status
                   WHERE namespace = :namespace AND status = {RUN.PAUSED} ORDER BY created_at, run_id LIMIT :cap)
) ORDER BY created_at, run_id LIMIT :cap) GROUP BY workflow_type;
