-- name: part_bulk
-- An operation and how far it is.
*, operation_id::text AS id, cursor_id::text AS cursor_run

-- name: insert_bulk
-- A repeated request keeps its operation.
INSERT INTO bulk_operations (operation_id, namespace, action, filter, reason, request_id, created_at)
VALUES (:operation_id::uuid, :namespace::text, :action::text, :filter::text::json, :reason::text, :request_id::text,
    :created_at::bigint)
ON CONFLICT (namespace, request_id) DO NOTHING
RETURNING 1;

-- name: get_bulk_by_request
-- The one that was kept.
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
-- Where it is.
UPDATE bulk_operations SET finished_at = :now::bigint, stopped = true
WHERE operation_id = :operation_id::uuid AND namespace = :namespace::text AND finished_at IS NULL
RETURNING 1;

-- name: claim_bulk
-- The one longest left alone that no other server works on.
UPDATE bulk_operations SET claimed_by = :server_id::text, claimed_until = :until::bigint
WHERE operation_id = (
    SELECT operation_id FROM bulk_operations /* INDEXED BY bulk_operations_open */
    WHERE finished_at IS NULL AND (claimed_until <= :now::bigint OR claimed_by = :server_id)
    ORDER BY claimed_until LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING {bulk};

-- name: plan_bulk
-- What will be done next, written down first.
UPDATE bulk_operations SET batch = :batch::text::json, claimed_until = :until::bigint
WHERE operation_id = :operation_id::uuid AND claimed_by = :server_id::text AND finished_at IS NULL AND batch IS NULL
RETURNING 1;

-- name: keep_bulk
-- It takes longer.
UPDATE bulk_operations SET claimed_until = :until::bigint
WHERE operation_id = :operation_id::uuid AND claimed_by = :server_id::text AND finished_at IS NULL
RETURNING 1;

-- name: advance_bulk
-- Counted once: the batch is gone with it. What was being done when it was stopped counts, too.
UPDATE bulk_operations
SET matched = matched + :done::bigint + :failed::bigint, done = done + :done, failed = failed + :failed,
    last_error = CASE WHEN :last_error::text = '' THEN last_error ELSE :last_error END, batch = NULL,
    cursor_at = coalesce(:cursor_at::bigint, cursor_at), cursor_id = coalesce(:cursor_id::uuid, cursor_id),
    claimed_until = :until::bigint,
    finished_at = coalesce(finished_at, CASE WHEN :finished::boolean THEN :now::bigint END)
WHERE operation_id = :operation_id::uuid AND claimed_by = :server_id::text AND batch IS NOT NULL
RETURNING 1;

-- name: forget_bulk
-- They are kept as long as what they did can be of interest.
DELETE FROM bulk_operations WHERE operation_id IN (
    SELECT operation_id FROM bulk_operations /* INDEXED BY bulk_operations_finished */
    WHERE finished_at < :before::bigint LIMIT :limit::bigint FOR UPDATE SKIP LOCKED
)
RETURNING 1;
