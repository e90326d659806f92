-- Housekeeping: forgetting what has ended, operations on many runs, and who does what.

-- What retention reads, oldest first; a run is in it once, when it has ended.
CREATE INDEX runs_finished ON runs (namespace, finished_at) WHERE finished_at IS NOT NULL;

-- Runs that are gone and whose history was too long to go with them: it goes bit by bit.
CREATE TABLE purging (run_id TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;

-- Runs on their way in: their history is there already, they themselves are not.
CREATE TABLE imports (
    run_id     TEXT NOT NULL PRIMARY KEY,
    token      TEXT NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Which chore somebody does, and until when nobody else need.
CREATE TABLE chores (
    name          TEXT NOT NULL PRIMARY KEY,
    claimed_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One operation on all runs that a filter matches. cursor_*: the last run done, in list order; NULL before the first. A batch is
-- written down before it is done, so that whoever goes on after a crash counts it as it was: it may not match the filter any more.
CREATE TABLE bulk_operations (
    operation_id  TEXT NOT NULL PRIMARY KEY,
    namespace     TEXT NOT NULL,
    action        TEXT NOT NULL CHECK (action IN ('cancel', 'retry', 'terminate', 'delete')),
    filter        TEXT NOT NULL,
    reason        TEXT NOT NULL,
    request_id    TEXT NOT NULL,
    cursor_at     INTEGER,
    cursor_id     TEXT,
    batch         TEXT, -- JSON rows of (created_at, run_id): the runs that are being changed
    matched       INTEGER NOT NULL DEFAULT 0,
    done          INTEGER NOT NULL DEFAULT 0,
    failed        INTEGER NOT NULL DEFAULT 0,
    last_error    TEXT NOT NULL DEFAULT '',
    claimed_by    TEXT,
    claimed_until INTEGER NOT NULL DEFAULT 0,
    created_at    INTEGER NOT NULL,
    finished_at   INTEGER,
    stopped       INTEGER NOT NULL DEFAULT 0 CHECK (stopped IN (0, 1)),
    CHECK ((cursor_at IS NULL) = (cursor_id IS NULL)),
    CHECK (stopped = 0 OR finished_at IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX bulk_operations_request ON bulk_operations (namespace, request_id);
CREATE INDEX bulk_operations_by_created ON bulk_operations (namespace, created_at, operation_id);
CREATE INDEX bulk_operations_open ON bulk_operations (claimed_until) WHERE finished_at IS NULL;
CREATE INDEX bulk_operations_finished ON bulk_operations (finished_at) WHERE finished_at IS NOT NULL;
