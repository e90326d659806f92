-- name: part_bulk
-- An operation and its progress.
*, operation_id::text AS id, cursor_id::text AS cursor_run

-- name: insert_bulk
-- A repeated request keeps its operation.
INSERT INTO bulk_operations (operation_id, namespace, action, filter, reason, request_id, created_at)
VALUES (:operation_id::uuid, :namespace::text, :action::text, :filter::text::json, :reason::text, :request_id::text,
    :created_at::bigint)
ON CONFLICT (namespace, request_id) DO NOTHING
RETURNING 1;

-- name: get_bulk_by_request
-- The operation that was stored for a request.
SELECT {bulk} FROM bulk_operations WHERE namespace = :namespace::text AND request_id = :request_id::text;

-- name: get_bulk
-- One operation.
SELECT {bulk} FROM bulk_operations WHERE operation_id = :operation_id::uuid AND namespace = :namespace::text;

-- name: list_bulks
-- Newest first.
SELECT {bulk} FROM bulk_operations
WHERE namespace = :namespace::text AND (created_at, operation_id) {<|>} (:cursor_at::bigint, :cursor_id::uuid)
ORDER BY created_at {DESC|ASC}, operation_id {DESC|ASC} LIMIT :limit::bigint;

-- name: stop_bulk
-- Stops it where it is.
UPDATE bulk_operations SET finished_at = :now::bigint, stopped = true
WHERE operation_id = :operation_id::uuid AND namespace = :namespace::text AND finished_at IS NULL
RETURNING 1;

-- name: claim_bulk
-- The unfinished operation that was left alone longest and that no other server holds.
UPDATE bulk_operations SET claimed_by = :server_id::text, claimed_until = :until::bigint
WHERE operation_id = (
    SELECT operation_id FROM bulk_operations /* INDEXED BY bulk_operations_open */
    WHERE finished_at IS NULL AND (claimed_until <= :now::bigint OR claimed_by = :server_id)
    ORDER BY claimed_until LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING {bulk};

-- name: plan_bulk
-- Records the next batch before it is done.
UPDATE bulk_operations SET batch = :batch::text::json, claimed_until = :until::bigint
WHERE operation_id = :operation_id::uuid AND claimed_by = :server_id::text AND finished_at IS NULL AND batch IS NULL
RETURNING 1;

-- name: keep_bulk
-- Extends the hold during a long batch.
UPDATE bulk_operations SET claimed_until = :until::bigint
WHERE operation_id = :operation_id::uuid AND claimed_by = :server_id::text AND finished_at IS NULL
RETURNING 1;

-- name: advance_bulk
-- Each batch is counted once: this also deletes its plan. A batch in progress when the operation was stopped counts,
-- too.
UPDATE bulk_operations
SET matched = matched + :done::bigint + :failed::bigint, done = done + :done, failed = failed + :failed,
    last_error = CASE WHEN :last_error::text = '' THEN last_error ELSE :last_error END, batch = NULL,
    cursor_at = coalesce(:cursor_at::bigint, cursor_at), cursor_id = coalesce(:cursor_id::uuid, cursor_id),
    claimed_until = :until::bigint,
    finished_at = coalesce(finished_at, CASE WHEN :finished::boolean THEN :now::bigint END)
WHERE operation_id = :operation_id::uuid AND claimed_by = :server_id::text AND batch IS NOT NULL
RETURNING 1;

-- name: forget_bulk
-- Old operations, some rows at a time.
DELETE FROM bulk_operations WHERE operation_id IN (
    SELECT operation_id FROM bulk_operations /* INDEXED BY bulk_operations_finished */
    WHERE finished_at < :before::bigint LIMIT :limit::bigint FOR UPDATE SKIP LOCKED
)
RETURNING 1;
