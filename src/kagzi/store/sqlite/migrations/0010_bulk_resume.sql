-- Paused runs can be resumed by filter, too. A CHECK cannot be changed in place: the table is made anew.
CREATE TABLE bulk_operations_new (
    operation_id  TEXT NOT NULL PRIMARY KEY,
    namespace     TEXT NOT NULL,
    action        TEXT NOT NULL CHECK (action IN ('cancel', 'retry', 'terminate', 'delete', 'resume')),
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

INSERT INTO bulk_operations_new (operation_id, namespace, action, filter, reason, request_id, cursor_at, cursor_id, batch, matched, done, failed, last_error,
    claimed_by, claimed_until, created_at, finished_at, stopped)
SELECT operation_id, namespace, action, filter, reason, request_id, cursor_at, cursor_id, batch, matched, done, failed, last_error,
    claimed_by, claimed_until, created_at, finished_at, stopped
FROM bulk_operations;
DROP TABLE bulk_operations;
ALTER TABLE bulk_operations_new RENAME TO bulk_operations;

CREATE UNIQUE INDEX bulk_operations_request ON bulk_operations (namespace, request_id);
CREATE INDEX bulk_operations_by_created ON bulk_operations (namespace, created_at, operation_id);
CREATE INDEX bulk_operations_open ON bulk_operations (claimed_until) WHERE finished_at IS NULL;
CREATE INDEX bulk_operations_finished ON bulk_operations (finished_at) WHERE finished_at IS NOT NULL;
