-- name: insert_audit
-- In the transaction of what it tells.
INSERT INTO audit_log (audit_id, at, key_id, key_name, action, namespace, subject, details)
VALUES (:audit_id::uuid, :at::bigint, :key_id::text, :key_name::text, :action::text, :namespace::text, :subject::text,
    :details::text::json);

-- name: list_audit
-- Newest first.
SELECT *, audit_id::text AS id FROM audit_log
WHERE namespace = :namespace::text AND at >= :since::bigint AND at < :until::bigint
    AND (at, audit_id) {<|>} (:cursor_at::bigint, :cursor_id::uuid)
ORDER BY at {DESC|ASC}, audit_id {DESC|ASC} LIMIT :limit::bigint;

-- name: list_all_audit
-- Of every namespace, newest first.
SELECT *, audit_id::text AS id FROM audit_log
WHERE at >= :since::bigint AND at < :until::bigint AND (at, audit_id) {<|>} (:cursor_at::bigint, :cursor_id::uuid)
ORDER BY at {DESC|ASC}, audit_id {DESC|ASC} LIMIT :limit::bigint;

-- name: forget_audit
-- The oldest, bit by bit.
DELETE FROM audit_log WHERE audit_id IN (
    SELECT audit_id FROM audit_log WHERE at < :before::bigint ORDER BY at LIMIT :limit::bigint
)
RETURNING 1;
