-- Housekeeping: forgetting what has ended, operations on many runs, and who does what. 0001 says how things are written.

-- What retention reads, oldest first; a run is in it once, when it has ended.
CREATE INDEX runs_finished ON runs (namespace, finished_at) WHERE finished_at IS NOT NULL;

-- Runs that are gone and whose history was too long to go with them: it goes bit by bit.
CREATE TABLE purging (run_id uuid PRIMARY KEY);

-- Runs on their way in: their history is there already, they themselves are not.
CREATE TABLE imports (
    run_id uuid PRIMARY KEY,
    updated_at bigint NOT NULL,
    token text COLLATE "C" NOT NULL
);

-- Which chore somebody does, and until when nobody else need.
CREATE TABLE chores (
    name text COLLATE "C" PRIMARY KEY,
    claimed_until bigint NOT NULL
);

-- One operation on all runs that a filter matches. cursor_*: the last run done, in list order; NULL before the first. A batch is
-- written down before it is done, so that whoever goes on after a crash counts it as it was: it may not match the filter any more.
CREATE TABLE bulk_operations (
    operation_id uuid PRIMARY KEY,
    matched bigint NOT NULL DEFAULT 0,
    done bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    cursor_at bigint,
    claimed_until bigint NOT NULL DEFAULT 0,
    created_at bigint NOT NULL,
    finished_at bigint,
    stopped boolean NOT NULL DEFAULT false,
    cursor_id uuid,
    namespace text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    request_id text COLLATE "C" NOT NULL,
    claimed_by text COLLATE "C",
    reason text NOT NULL,
    last_error text NOT NULL DEFAULT '',
    filter json NOT NULL,
    batch json,                                -- rows of (created_at, run_id): the runs that are being changed
    CONSTRAINT bulk_operations_action CHECK (action IN ('cancel', 'retry', 'terminate', 'delete')),
    CONSTRAINT bulk_operations_cursor CHECK ((cursor_at IS NULL) = (cursor_id IS NULL)),
    CONSTRAINT bulk_operations_stopped CHECK (NOT stopped OR finished_at IS NOT NULL)
);

CREATE UNIQUE INDEX bulk_operations_request_id ON bulk_operations (namespace, request_id);
CREATE INDEX bulk_operations_created ON bulk_operations (namespace, created_at, operation_id);
CREATE INDEX bulk_operations_open ON bulk_operations (claimed_until) WHERE finished_at IS NULL;
CREATE INDEX bulk_operations_finished ON bulk_operations (finished_at) WHERE finished_at IS NOT NULL;
