-- Lists in order by what people ask for, and what is known and allowed of a namespace.

-- What lists read, each in list order.
CREATE INDEX runs_by_version ON runs (namespace, version, created_at, run_id);
CREATE INDEX runs_by_type_version ON runs (namespace, workflow_type, version, created_at, run_id);
-- Most runs are in neither of these.
CREATE INDEX runs_with_key ON runs (namespace, concurrency_key, created_at, run_id) WHERE concurrency_key IS NOT NULL;
CREATE INDEX runs_by_problem ON runs (namespace, created_at, run_id) WHERE problem IS NOT NULL;

ALTER TABLE namespaces ADD COLUMN retention TEXT; -- JSON: seconds by the word of a status
ALTER TABLE namespaces ADD COLUMN deleting_at INTEGER CHECK (deleting_at IS NULL OR enabled = 0); -- it takes nothing new
ALTER TABLE namespaces ADD COLUMN next_start_at INTEGER NOT NULL DEFAULT 0; -- when the next start is due, were they even
ALTER TABLE namespaces ADD COLUMN stored_bytes INTEGER;
ALTER TABLE namespaces ADD COLUMN stored_bytes_at INTEGER;
ALTER TABLE namespaces ADD COLUMN measured_until INTEGER NOT NULL DEFAULT 0; -- nobody need measure it until then

-- What happened in a minute, kept when the runs are gone. rolled_up has one row: minutes before its own are done.
CREATE TABLE run_stats (
    namespace     TEXT NOT NULL,
    workflow_type TEXT NOT NULL,
    minute        INTEGER NOT NULL,
    started       INTEGER NOT NULL,
    completed     INTEGER NOT NULL,
    failed        INTEGER NOT NULL,
    cancelled     INTEGER NOT NULL,
    p50_us        INTEGER,
    p95_us        INTEGER,
    PRIMARY KEY (namespace, minute, workflow_type)
) STRICT, WITHOUT ROWID;

CREATE INDEX run_stats_old ON run_stats (minute);

CREATE TABLE rolled_up (
    only_row INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    minute   INTEGER NOT NULL
) STRICT;
