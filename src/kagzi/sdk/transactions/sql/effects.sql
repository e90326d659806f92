-- name: create_effects_postgresql
-- One row per effect that was committed, beside the rows that it is about.
CREATE TABLE IF NOT EXISTS kagzi_effects (
    namespace  text NOT NULL,
    run_id     text NOT NULL,
    step_id    text NOT NULL,
    name       text NOT NULL,  -- which effect of the step; mostly empty
    attempt    integer NOT NULL,
    result     text,  -- JSON; in base64 if it is encoded
    encoding   text,  -- what the codec needs to decode it, as JSON
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (namespace, run_id, step_id, name)
);
CREATE INDEX IF NOT EXISTS kagzi_effects_created_at ON kagzi_effects (created_at);

-- name: create_effects_sqlite
-- The same; times as SQLite writes them, in UTC.
CREATE TABLE IF NOT EXISTS kagzi_effects (
    namespace  text NOT NULL,
    run_id     text NOT NULL,
    step_id    text NOT NULL,
    name       text NOT NULL,  -- which effect of the step; mostly empty
    attempt    integer NOT NULL,
    result     text,  -- JSON; in base64 if it is encoded
    encoding   text,  -- what the codec needs to decode it, as JSON
    created_at text NOT NULL DEFAULT (datetime('now')),
    PRIMARY KEY (namespace, run_id, step_id, name)
);
CREATE INDEX IF NOT EXISTS kagzi_effects_created_at ON kagzi_effects (created_at);

-- name: claim_effect
-- Whoever inserts the row does the work; another attempt waits here until that transaction has ended.
INSERT INTO kagzi_effects (namespace, run_id, step_id, name, attempt)
VALUES (:namespace, :run_id, :step_id, :name, :attempt)
ON CONFLICT (namespace, run_id, step_id, name) DO NOTHING
RETURNING 1

-- name: read_effect
-- What an earlier attempt has committed.
SELECT result, encoding FROM kagzi_effects
WHERE namespace = :namespace AND run_id = :run_id AND step_id = :step_id AND name = :name

-- name: record_effect
-- The result comes last, with the commit: a row without one was committed by somebody else than kagzi.effect.
UPDATE kagzi_effects SET result = :result, encoding = :encoding
WHERE namespace = :namespace AND run_id = :run_id AND step_id = :step_id AND name = :name AND result IS NULL
RETURNING 1
