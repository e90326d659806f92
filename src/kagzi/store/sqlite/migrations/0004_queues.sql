-- Workflow types as queues. A row exists only for types that an operator has said something about.
CREATE TABLE workflow_types (
    namespace                 TEXT NOT NULL,
    workflow_type             TEXT NOT NULL,
    paused                    INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    max_running               INTEGER,
    max_running_per_key       INTEGER,
    starts_per_second         REAL,
    starts_per_second_per_key REAL,
    when_full                 TEXT NOT NULL DEFAULT 'queue' CHECK (when_full IN ('queue', 'reject', 'cancel-oldest')),
    next_start_at             INTEGER NOT NULL DEFAULT 0, -- when the next start is due, were they even
    turn                      TEXT NOT NULL DEFAULT '', -- the key that was served last
    PRIMARY KEY (namespace, workflow_type)
) STRICT, WITHOUT ROWID;

-- The same per key, while it lies ahead.
CREATE TABLE workflow_keys (
    namespace       TEXT NOT NULL,
    workflow_type   TEXT NOT NULL,
    concurrency_key TEXT NOT NULL,
    next_start_at   INTEGER NOT NULL,
    PRIMARY KEY (namespace, workflow_type, concurrency_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX workflow_keys_past ON workflow_keys (namespace, workflow_type, next_start_at);

-- Keys in turn: from one to the next without reading the runs between. Runs without a key are not in it.
CREATE INDEX runs_by_key ON runs (namespace, workflow_type, concurrency_key, priority DESC, ready_at, run_id)
    WHERE concurrency_key IS NOT NULL AND status = 1;
-- Runs that go on after a wait: a rate that holds back new ones does not hold them. New runs are not in it.
CREATE INDEX runs_to_go_on ON runs (namespace, workflow_type, priority DESC, ready_at, run_id) WHERE status = 1 AND lease > 0;
