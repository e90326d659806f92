-- name: insert_key
-- A repeated request keeps its key.
INSERT INTO api_keys (key_id, namespace, name, scopes, request_id, created_at, expires_at)
VALUES (:key_id::text, :namespace::text, :name::text, :scopes::text, :request_id::text, :created_at::bigint,
    :expires_at::bigint)
ON CONFLICT (namespace, request_id) DO NOTHING
RETURNING 1;

-- name: lock_key_by_request
-- The key that a request made.
SELECT * FROM api_keys WHERE namespace = :namespace::text AND request_id = :request_id::text FOR UPDATE;

-- name: lock_key
-- Before it is changed: of this namespace, or any.
SELECT * FROM api_keys
WHERE key_id = :key_id::text AND (:everywhere::bool OR namespace = :namespace::text) FOR UPDATE;

-- name: find_keys
-- Keys by their ids, a row for each secret: what calls are checked against.
SELECT k.*, s.secret_hash, s.request_id AS secret_request_id, s.created_at AS secret_created_at, s.valid_until
FROM api_keys AS k JOIN api_key_secrets AS s ON s.key_id = k.key_id WHERE k.{named_key};

-- name: count_good_keys
-- Counted no further than the limit.
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
-- Of every namespace, newest first.
SELECT * FROM api_keys
WHERE (created_at, key_id) {<|>} (:cursor_at::bigint, :cursor_id::text)
ORDER BY created_at {DESC|ASC}, key_id {DESC|ASC} LIMIT :limit::bigint;

-- name: insert_secret
-- Its hash only.
INSERT INTO api_key_secrets (key_id, secret_hash, request_id, created_at)
VALUES (:key_id::text, :secret_hash::text, :request_id::text, :created_at::bigint);

-- name: secrets_of_key
-- Those that are good.
SELECT secret_hash, request_id FROM api_key_secrets
WHERE key_id = :key_id::text AND (valid_until IS NULL OR valid_until > :now::bigint);

-- name: end_secrets
-- Older ones stay good until then, and none for longer than before.
UPDATE api_key_secrets SET valid_until = :valid_until::bigint
WHERE key_id = :key_id::text AND (valid_until IS NULL OR valid_until > :valid_until);

-- name: remove_ended_secrets
-- Of a key that gets another one; those that end now are kept, so that who uses one is told why it is not good.
DELETE FROM api_key_secrets WHERE key_id = :key_id::text AND valid_until <= :now::bigint;

-- name: note_rotation
-- Since when its newest secret is good.
UPDATE api_keys SET rotated_at = :now::bigint WHERE key_id = :key_id::text;

-- name: revoke_key
-- For good; the first time counts.
UPDATE api_keys SET revoked_at = :now::bigint WHERE key_id = :key_id::text AND revoked_at IS NULL RETURNING 1;

-- name: note_keys_used
-- Now and then, for those that were.
UPDATE api_keys SET last_used_at = :now::bigint WHERE {named_key};

-- name: insert_browser_session
-- The hash of its token only.
INSERT INTO browser_sessions (session_hash, key_id, secret_hash, created_at, expires_at)
VALUES (:session_hash::text, :key_id::text, :secret_hash::text, :created_at::bigint, :expires_at::bigint);

-- name: remove_oldest_browser_sessions
-- A key has so many at most.
DELETE FROM browser_sessions
WHERE key_id = :key_id::text AND session_hash NOT IN (
    SELECT session_hash FROM browser_sessions WHERE key_id = :key_id ORDER BY created_at DESC, session_hash LIMIT :kept::bigint
);

-- name: get_browser_session
-- By the hash of its token.
SELECT * FROM browser_sessions WHERE session_hash = :session_hash::text;

-- name: remove_browser_session
-- Logged out.
DELETE FROM browser_sessions WHERE session_hash = :session_hash::text;

-- name: forget_browser_sessions
-- Those that are over.
DELETE FROM browser_sessions WHERE session_hash IN (
    SELECT session_hash FROM browser_sessions WHERE expires_at <= :now::bigint LIMIT :limit::bigint
)
RETURNING 1;

-- name: forget_keys
-- Those that have not been good for long, with all that they had.
DELETE FROM api_keys WHERE key_id IN (
    SELECT key_id FROM api_keys WHERE revoked_at < :before::bigint OR expires_at < :before LIMIT :limit::bigint
)
RETURNING 1;

-- name: forget_secrets
-- Of keys that are gone: with their namespace, or forgotten.
DELETE FROM api_key_secrets WHERE (key_id, secret_hash) IN (
    SELECT s.key_id, s.secret_hash FROM api_key_secrets AS s
    WHERE NOT EXISTS (SELECT 1 FROM api_keys AS k WHERE k.key_id = s.key_id) LIMIT :limit::bigint
)
RETURNING 1;
