-- name: part_bulk_columns
-- An operation and how far it is.
operation_id AS id, namespace, action, filter, reason, request_id, created_at, matched, done, failed, last_error, finished_at, stopped,
cursor_at, cursor_id AS cursor_run, batch

-- name: insert_bulk
-- A request made before keeps its operation.
INSERT INTO bulk_operations (operation_id, namespace, action, filter, reason, request_id, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: get_bulk_by_request
-- The one that was kept.
SELECT {bulk_columns} FROM bulk_operations WHERE namespace = ? AND request_id = ?;

-- name: get_bulk
-- One operation.
SELECT {bulk_columns} FROM bulk_operations WHERE operation_id = ? AND namespace = ?;

-- name: older_bulks
-- Newest first.
SELECT {bulk_columns} FROM bulk_operations
WHERE namespace = :namespace AND (created_at, operation_id) < (:at, :id)
ORDER BY created_at DESC, operation_id DESC LIMIT :limit;

-- name: newer_bulks
-- The page before: read towards the newer, turned round by the caller.
SELECT {bulk_columns} FROM bulk_operations
WHERE namespace = :namespace AND (created_at, operation_id) > (:at, :id)
ORDER BY created_at, operation_id LIMIT :limit;

-- name: stop_bulk
-- Where it is.
UPDATE bulk_operations SET finished_at = :now, stopped = 1
WHERE operation_id = :operation_id AND namespace = :namespace AND finished_at IS NULL;

-- name: claim_bulk
-- The one longest left alone that nobody else works on.
UPDATE bulk_operations SET claimed_by = :server_id, claimed_until = :until
WHERE operation_id = (
    SELECT operation_id FROM bulk_operations INDEXED BY bulk_operations_open
    WHERE finished_at IS NULL AND (claimed_until <= :now OR claimed_by = :server_id) ORDER BY claimed_until LIMIT 1)
RETURNING {bulk_columns};

-- name: plan_bulk
-- What will be done next, written down first.
UPDATE bulk_operations SET batch = :batch, claimed_until = :until
WHERE operation_id = :operation_id AND claimed_by = :server_id AND finished_at IS NULL AND batch IS NULL;

-- name: keep_bulk
-- It takes longer.
UPDATE bulk_operations SET claimed_until = :until
WHERE operation_id = :operation_id AND claimed_by = :server_id AND finished_at IS NULL;

-- name: advance_bulk
-- Counted once: the batch is gone with it. What was being done when it was stopped counts, too.
UPDATE bulk_operations SET matched = matched + :done + :failed, done = done + :done, failed = failed + :failed,
    last_error = CASE WHEN :last_error = '' THEN last_error ELSE :last_error END, batch = NULL,
    cursor_at = coalesce(:cursor_at, cursor_at), cursor_id = coalesce(:cursor_id, cursor_id), claimed_until = :until,
    finished_at = coalesce(finished_at, CASE WHEN :finished THEN :now END)
WHERE operation_id = :operation_id AND claimed_by = :server_id AND batch IS NOT NULL;

-- name: forget_bulk
-- They are kept as long as what they did can be of interest.
DELETE FROM bulk_operations WHERE operation_id IN (
    SELECT operation_id FROM bulk_operations INDEXED BY bulk_operations_finished WHERE finished_at < :before LIMIT :limit);
