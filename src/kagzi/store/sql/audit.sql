-- name: insert_audit
-- In the transaction of the change that it records.
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
-- All namespaces, newest first.
SELECT *, audit_id::text AS id FROM audit_log
WHERE at >= :since::bigint AND at < :until::bigint AND (at, audit_id) {<|>} (:cursor_at::bigint, :cursor_id::uuid)
ORDER BY at {DESC|ASC}, audit_id {DESC|ASC} LIMIT :limit::bigint;

-- name: forget_audit
-- Deletes the oldest, some rows at a time.
DELETE FROM audit_log WHERE audit_id IN (
    SELECT audit_id FROM audit_log WHERE at < :before::bigint ORDER BY at LIMIT :limit::bigint
)
RETURNING 1;
