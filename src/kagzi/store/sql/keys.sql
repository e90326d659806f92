-- name: insert_key
-- A repeated request keeps its key.
INSERT INTO api_keys (key_id, namespace, name, scopes, request_id, created_at, expires_at)
VALUES (:key_id::text, :namespace::text, :name::text, :scopes::text, :request_id::text, :created_at::bigint,
    :expires_at::bigint)
ON CONFLICT (namespace, request_id) DO NOTHING
RETURNING 1;

-- name: lock_key_by_request
-- The key that a request created.
SELECT * FROM api_keys WHERE namespace = :namespace::text AND request_id = :request_id::text FOR UPDATE;

-- name: lock_key
-- Before it is changed. In this namespace, or in any.
SELECT * FROM api_keys
WHERE key_id = :key_id::text AND (:everywhere::bool OR namespace = :namespace::text) FOR UPDATE;

-- name: find_keys
-- Keys by id, with a row for each secret; calls are checked against these.
SELECT k.*, s.secret_hash, s.request_id AS secret_request_id, s.created_at AS secret_created_at, s.valid_until
FROM api_keys AS k JOIN api_key_secrets AS s ON s.key_id = k.key_id WHERE k.{named_key};

-- name: count_good_keys
-- Counting stops at the limit.
SELECT count(*) AS good FROM (
    SELECT 1 FROM api_keys
    WHERE namespace = :namespace::text AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now::bigint)
    LIMIT :cap::bigint
) AS counted;

-- name: list_keys
-- Newest first.
SELECT * FROM api_keys
WHERE namespace = :namespace::text AND (created_at, key_id) {<|>} (:cursor_at::bigint, :cursor_id::text)
ORDER BY created_at {DESC|ASC}, key_id {DESC|ASC} LIMIT :limit::bigint;

-- name: list_all_keys
-- All namespaces, newest first.
SELECT * FROM api_keys
WHERE (created_at, key_id) {<|>} (:cursor_at::bigint, :cursor_id::text)
ORDER BY created_at {DESC|ASC}, key_id {DESC|ASC} LIMIT :limit::bigint;

-- name: insert_secret
-- Stores only the hash.
INSERT INTO api_key_secrets (key_id, secret_hash, request_id, created_at)
VALUES (:key_id::text, :secret_hash::text, :request_id::text, :created_at::bigint);

-- name: secrets_of_key
-- Those that are valid.
SELECT secret_hash, request_id FROM api_key_secrets
WHERE key_id = :key_id::text AND (valid_until IS NULL OR valid_until > :now::bigint);

-- name: end_secrets
-- Older secrets stay valid until then, and no longer than they were before.
UPDATE api_key_secrets SET valid_until = :valid_until::bigint
WHERE key_id = :key_id::text AND (valid_until IS NULL OR valid_until > :valid_until);

-- name: remove_ended_secrets
-- When a key gets another secret. Those that end now are kept, so that a caller who uses one learns why it is invalid.
DELETE FROM api_key_secrets WHERE key_id = :key_id::text AND valid_until <= :now::bigint;

-- name: note_rotation
-- Since when its newest secret is valid.
UPDATE api_keys SET rotated_at = :now::bigint WHERE key_id = :key_id::text;

-- name: revoke_key
-- Permanent; the first time is kept.
UPDATE api_keys SET revoked_at = :now::bigint WHERE key_id = :key_id::text AND revoked_at IS NULL RETURNING 1;

-- name: note_keys_used
-- Written now and then, for the keys used since.
UPDATE api_keys SET last_used_at = :now::bigint WHERE {named_key};

-- name: insert_browser_session
-- Stores only the hash of its token.
INSERT INTO browser_sessions (session_hash, key_id, secret_hash, created_at, expires_at)
VALUES (:session_hash::text, :key_id::text, :secret_hash::text, :created_at::bigint, :expires_at::bigint);

-- name: remove_oldest_browser_sessions
-- A key has at most this many.
DELETE FROM browser_sessions
WHERE key_id = :key_id::text AND session_hash NOT IN (
    SELECT session_hash FROM browser_sessions WHERE key_id = :key_id ORDER BY created_at DESC, session_hash LIMIT :kept::bigint
);

-- name: get_browser_session
-- By the hash of its token.
SELECT * FROM browser_sessions WHERE session_hash = :session_hash::text;

-- name: remove_browser_session
-- On logout.
DELETE FROM browser_sessions WHERE session_hash = :session_hash::text;

-- name: forget_browser_sessions
-- Those that have expired.
DELETE FROM browser_sessions WHERE session_hash IN (
    SELECT session_hash FROM browser_sessions WHERE expires_at <= :now::bigint LIMIT :limit::bigint
)
RETURNING 1;

-- name: forget_keys
-- Keys that became invalid long ago, with their secrets and sessions.
DELETE FROM api_keys WHERE key_id IN (
    SELECT key_id FROM api_keys WHERE revoked_at < :before::bigint OR expires_at < :before LIMIT :limit::bigint
)
RETURNING 1;

-- name: forget_secrets
-- Secrets of keys that were deleted, alone or with their namespace.
DELETE FROM api_key_secrets WHERE (key_id, secret_hash) IN (
    SELECT s.key_id, s.secret_hash FROM api_key_secrets AS s
    WHERE NOT EXISTS (SELECT 1 FROM api_keys AS k WHERE k.key_id = s.key_id) LIMIT :limit::bigint
)
RETURNING 1;
