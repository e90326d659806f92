-- name: create_outbox_postgresql
-- Starts that were committed and that a server has not read. Those that it refused stay, with the reason.
CREATE TABLE IF NOT EXISTS kagzi_outbox (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace     text NOT NULL,
    workflow_type text NOT NULL,
    workflow_id   text NOT NULL,
    request_id    text NOT NULL,
    request       bytea NOT NULL,  -- a kagzi.v1.StartWorkflowRequest
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    due_at        timestamptz NOT NULL DEFAULT clock_timestamp(),  -- a start that could not be taken is tried again then
    attempts      integer NOT NULL DEFAULT 0,
    error         text,  -- why it was not taken the last time
    refused_at    timestamptz  -- since when no server tries it again
);
CREATE INDEX IF NOT EXISTS kagzi_outbox_due ON kagzi_outbox (due_at, id) WHERE refused_at IS NULL;

-- name: write_start
-- The row and the notification become visible with the user's commit. PostgreSQL sends one a transaction.
WITH written AS (
    INSERT INTO kagzi_outbox (namespace, workflow_type, workflow_id, request_id, request)
    VALUES (:namespace, :workflow_type, :workflow_id, :request_id, :request)
    RETURNING id
)
SELECT id, pg_notify('kagzi_outbox', '') FROM written

-- name: find_outbox
-- Asked first: a statement that fails would end the user's transaction.
SELECT CAST(to_regclass('kagzi_outbox') AS text)
