-- API keys, browser sessions that were opened with one, and what administrators did.

-- namespace '*': good for all of them. scopes: words, separated by blanks.
CREATE TABLE api_keys (
    key_id       TEXT NOT NULL PRIMARY KEY,
    namespace    TEXT NOT NULL,
    name         TEXT NOT NULL,
    scopes       TEXT NOT NULL,
    request_id   TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    revoked_at   INTEGER,
    rotated_at   INTEGER,
    last_used_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX api_keys_request_id ON api_keys (namespace, request_id);
CREATE INDEX api_keys_created ON api_keys (namespace, created_at, key_id);
CREATE INDEX api_keys_all_created ON api_keys (created_at, key_id);

-- Hashes of secrets. valid_until NULL: as long as the key. request_id: a repeated request adds one to those that it made before.
CREATE TABLE api_key_secrets (
    key_id      TEXT NOT NULL,
    secret_hash TEXT NOT NULL,
    request_id  TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    valid_until INTEGER,
    PRIMARY KEY (key_id, secret_hash)
) STRICT, WITHOUT ROWID;

-- A session is as good as the secret it was opened with.
CREATE TABLE browser_sessions (
    session_hash TEXT NOT NULL PRIMARY KEY,
    key_id       TEXT NOT NULL,
    secret_hash  TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX browser_sessions_key ON browser_sessions (key_id, created_at);
CREATE INDEX browser_sessions_expires ON browser_sessions (expires_at);

-- Written in the transaction of the change. key_id '': no keys were asked for.
CREATE TABLE audit_log (
    audit_id  TEXT NOT NULL PRIMARY KEY,
    at        INTEGER NOT NULL,
    key_id    TEXT NOT NULL,
    key_name  TEXT NOT NULL,
    action    TEXT NOT NULL,
    namespace TEXT NOT NULL,
    subject   TEXT NOT NULL,
    details   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX audit_log_namespace ON audit_log (namespace, at, audit_id);
CREATE INDEX audit_log_at ON audit_log (at, audit_id);
