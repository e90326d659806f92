-- API keys, browser sessions that were opened with one, and what administrators did. 0001 says how things are written.

-- namespace '*': good for all of them. scopes: words, separated by blanks.
CREATE TABLE api_keys (
    key_id text COLLATE "C" PRIMARY KEY,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    rotated_at bigint,
    last_used_at bigint,
    namespace text COLLATE "C" NOT NULL,
    request_id text COLLATE "C" NOT NULL,
    scopes text COLLATE "C" NOT NULL,
    name text NOT NULL
);

CREATE UNIQUE INDEX api_keys_request_id ON api_keys (namespace, request_id);
CREATE INDEX api_keys_created ON api_keys (namespace, created_at, key_id);
CREATE INDEX api_keys_all_created ON api_keys (created_at, key_id);

-- Hashes of secrets. valid_until NULL: as long as the key. request_id: a repeated request adds one to those that it made before.
CREATE TABLE api_key_secrets (
    created_at bigint NOT NULL,
    valid_until bigint,
    key_id text COLLATE "C" NOT NULL,
    secret_hash text COLLATE "C" NOT NULL,
    request_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (key_id, secret_hash)
);

-- A session is as good as the secret it was opened with.
CREATE TABLE browser_sessions (
    session_hash text COLLATE "C" PRIMARY KEY,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    key_id text COLLATE "C" NOT NULL,
    secret_hash text COLLATE "C" NOT NULL
);

CREATE INDEX browser_sessions_key ON browser_sessions (key_id, created_at);
CREATE INDEX browser_sessions_expires ON browser_sessions (expires_at);

-- Written in the transaction of the change. key_id '': no keys were asked for.
CREATE TABLE audit_log (
    audit_id uuid PRIMARY KEY,
    at bigint NOT NULL,
    key_id text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    key_name text NOT NULL,
    subject text NOT NULL,
    details json NOT NULL
);

CREATE INDEX audit_log_namespace ON audit_log (namespace, at, audit_id);
CREATE INDEX audit_log_at ON audit_log (at, audit_id);
