-- name: insert_bulk
-- A request made before keeps its operation.
INSERT INTO bulk_operations (operation_id, namespace, action, filter, reason, request_id, created_at)
VALUES ($1::uuid, $2::text, $3::text, $4::text::json, $5::text, $6::text, $7::bigint)
ON CONFLICT (namespace, request_id) DO NOTHING;

-- name: get_bulk_by_request
-- The one that was kept.
SELECT *, operation_id::text AS id, cursor_id::text AS cursor_run FROM bulk_operations
WHERE namespace = $1::text AND request_id = $2::text;

-- name: get_bulk
-- One operation.
SELECT *, operation_id::text AS id, cursor_id::text AS cursor_run FROM bulk_operations
WHERE operation_id = $1::uuid AND namespace = $2::text;

-- name: older_bulks
-- Newest first.
SELECT *, operation_id::text AS id, cursor_id::text AS cursor_run FROM bulk_operations
WHERE namespace = $1::text AND ($2::bigint IS NULL OR (created_at, operation_id) < ($2, $3::uuid))
ORDER BY created_at DESC, operation_id DESC LIMIT $4::bigint;

-- name: newer_bulks
-- The page before: read towards the newer, turned round by the caller.
SELECT *, operation_id::text AS id, cursor_id::text AS cursor_run FROM bulk_operations
WHERE namespace = $1::text AND (created_at, operation_id) > ($2::bigint, $3::uuid)
ORDER BY created_at, operation_id LIMIT $4::bigint;

-- name: stop_bulk
-- Where it is.
UPDATE bulk_operations SET finished_at = $3::bigint, stopped = true
WHERE operation_id = $1::uuid AND namespace = $2::text AND finished_at IS NULL;

-- name: claim_bulk
-- The one longest left alone that nobody else works on.
UPDATE bulk_operations SET claimed_by = $1::text, claimed_until = $3::bigint
WHERE operation_id = (
    SELECT operation_id FROM bulk_operations
    WHERE finished_at IS NULL AND (claimed_until <= $2::bigint OR claimed_by = $1)
    ORDER BY claimed_until LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING *, operation_id::text AS id, cursor_id::text AS cursor_run;

-- name: plan_bulk
-- What will be done next, written down first.
UPDATE bulk_operations SET batch = $3::text::json, claimed_until = $4::bigint
WHERE operation_id = $1::uuid AND claimed_by = $2::text AND finished_at IS NULL AND batch IS NULL
RETURNING 1;

-- name: keep_bulk
-- It takes longer.
UPDATE bulk_operations SET claimed_until = $3::bigint
WHERE operation_id = $1::uuid AND claimed_by = $2::text AND finished_at IS NULL
RETURNING 1;

-- name: advance_bulk
-- Counted once: the batch is gone with it. What was being done when it was stopped counts, too.
UPDATE bulk_operations SET matched = matched + $3::bigint + $4::bigint, done = done + $3, failed = failed + $4,
    last_error = CASE WHEN $5::text = '' THEN last_error ELSE $5 END, batch = NULL,
    cursor_at = coalesce($6::bigint, cursor_at), cursor_id = coalesce($7::uuid, cursor_id), claimed_until = $8::bigint,
    finished_at = coalesce(finished_at, CASE WHEN $9::boolean THEN $10::bigint END)
WHERE operation_id = $1::uuid AND claimed_by = $2::text AND batch IS NOT NULL
RETURNING 1;

-- name: forget_bulk
-- They are kept as long as what they did can be of interest.
DELETE FROM bulk_operations WHERE operation_id IN (
    SELECT operation_id FROM bulk_operations WHERE finished_at < $1::bigint LIMIT $2::bigint FOR UPDATE SKIP LOCKED
)
RETURNING 1;
