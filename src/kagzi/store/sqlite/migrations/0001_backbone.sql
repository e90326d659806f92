-- The backbone: runs, their history, who executes them, and for whom.
-- Times are microseconds since 1970 UTC. Status, wait and kind codes are the IntEnums of kagzi/core/states.py.

CREATE TABLE namespaces (
    namespace               TEXT NOT NULL PRIMARY KEY,
    enabled                 INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
    created_at              INTEGER NOT NULL,
    open_runs_limit         INTEGER,
    running_runs_limit      INTEGER,
    starts_per_second_limit REAL,
    stored_bytes_limit      INTEGER,
    sessions_limit          INTEGER,
    schedules_limit         INTEGER
) STRICT, WITHOUT ROWID;

-- Narrow and hot: payloads live in steps, so that a claim or a lease rewrites little.
CREATE TABLE runs (
    run_id              TEXT NOT NULL PRIMARY KEY,
    namespace           TEXT NOT NULL,
    workflow_id         TEXT NOT NULL,
    workflow_type       TEXT NOT NULL,
    version             TEXT,
    status              INTEGER NOT NULL CHECK (status BETWEEN 1 AND 7),
    wait_reason         INTEGER CHECK (wait_reason BETWEEN 1 AND 4),
    priority            INTEGER NOT NULL DEFAULT 0,
    seq                 INTEGER NOT NULL DEFAULT 0,
    lease               INTEGER NOT NULL DEFAULT 0,
    nonce               INTEGER NOT NULL DEFAULT 0,
    worker_id           TEXT,
    lease_until         INTEGER,
    ready_at            INTEGER,
    due_at              INTEGER,
    deadline_at         INTEGER,
    cancel_by           INTEGER,
    cancel_requested_at INTEGER,
    cancel_reason       TEXT,
    cancel_lease        INTEGER, -- under which cancellation was requested: its holder may not have heard of it
    retried_lease       INTEGER, -- whose failure gave the run another try: to recognise its repeat
    attempt             INTEGER NOT NULL DEFAULT 1,
    lost_leases         INTEGER NOT NULL DEFAULT 0,
    retry               TEXT,
    request_id          TEXT,
    labels              TEXT,
    parent_run_id       TEXT,
    parent_step_id      TEXT,
    concurrency_key     TEXT,
    created_at          INTEGER NOT NULL,
    started_at          INTEGER,
    finished_at         INTEGER,
    error               TEXT,
    problem             TEXT,
    CHECK ((status = 2) = (worker_id IS NOT NULL)),
    CHECK ((status = 2) = (lease_until IS NOT NULL)),
    CHECK ((status = 1) = (ready_at IS NOT NULL)),
    CHECK (status <> 3 OR wait_reason IS NOT NULL),
    CHECK (status IN (3, 7) OR (wait_reason IS NULL AND due_at IS NULL)),
    CHECK (status <> 3 OR wait_reason NOT IN (1, 4) OR due_at IS NOT NULL),
    CHECK ((status IN (4, 5, 6)) = (finished_at IS NOT NULL)),
    CHECK ((status IN (5, 6)) = (error IS NOT NULL)),
    CHECK ((cancel_requested_at IS NULL) = (cancel_by IS NULL))
) STRICT;

-- One open run per workflow_id; "open" is written as finished_at IS NULL everywhere, so that partial indexes match.
CREATE UNIQUE INDEX runs_active ON runs (namespace, workflow_id) WHERE finished_at IS NULL;
CREATE UNIQUE INDEX runs_request ON runs (namespace, request_id) WHERE request_id IS NOT NULL;
-- What a claim reads: one range per version, best first.
CREATE INDEX runs_pending ON runs (namespace, workflow_type, version, priority DESC, ready_at, run_id) WHERE status = 1;
-- What the clock reads.
CREATE INDEX runs_due ON runs (due_at) WHERE status = 3 AND due_at IS NOT NULL;
CREATE INDEX runs_lease ON runs (lease_until) WHERE status = 2;
CREATE INDEX runs_deadline ON runs (deadline_at) WHERE finished_at IS NULL AND deadline_at IS NOT NULL;
CREATE INDEX runs_cancel_by ON runs (cancel_by) WHERE finished_at IS NULL AND cancel_by IS NOT NULL;
CREATE INDEX runs_worker ON runs (worker_id) WHERE status = 2;
-- What lists read, each in list order.
CREATE INDEX runs_by_created ON runs (namespace, created_at, run_id);
CREATE INDEX runs_by_status ON runs (namespace, status, created_at, run_id);
CREATE INDEX runs_by_type ON runs (namespace, workflow_type, created_at, run_id);
CREATE INDEX runs_by_workflow_id ON runs (namespace, workflow_id, created_at, run_id);
CREATE INDEX runs_by_parent ON runs (namespace, parent_run_id, created_at, run_id) WHERE parent_run_id IS NOT NULL;

-- created_at is here so that a list by label needs no sort.
CREATE TABLE run_labels (
    namespace  TEXT NOT NULL,
    key        TEXT NOT NULL,
    value      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    run_id     TEXT NOT NULL,
    PRIMARY KEY (namespace, key, value, created_at, run_id)
) STRICT, WITHOUT ROWID;

-- The history. Kinds from 100 hold a run's input, context and output, as steps "$input", "$context", "$output".
CREATE TABLE steps (
    run_id            TEXT NOT NULL,
    step_id           TEXT NOT NULL,
    name              TEXT NOT NULL,
    kind              INTEGER NOT NULL,
    status            INTEGER NOT NULL CHECK (status BETWEEN 1 AND 5),
    attempt           INTEGER NOT NULL DEFAULT 1,
    begun_seq         INTEGER NOT NULL,
    seq               INTEGER NOT NULL DEFAULT 0,
    lease             INTEGER NOT NULL DEFAULT 0,
    nonce             INTEGER NOT NULL DEFAULT 0,
    retry             TEXT,
    timeout_ms        INTEGER NOT NULL DEFAULT 0,
    input             BLOB,
    input_meta        TEXT,
    output            BLOB,
    output_meta       TEXT,
    error             TEXT,
    retry_at          INTEGER,
    wake_at           INTEGER,
    child_run_id      TEXT,
    details           BLOB,
    details_meta      TEXT,
    parent_step_id    TEXT NOT NULL DEFAULT '',
    parallel_group_id TEXT NOT NULL DEFAULT '',
    once              INTEGER NOT NULL DEFAULT 0,
    created_at        INTEGER NOT NULL,
    started_at        INTEGER,
    finished_at       INTEGER,
    worker_id         TEXT,
    PRIMARY KEY (run_id, step_id),
    CHECK ((status = 1) = (retry_at IS NOT NULL)),
    CHECK ((status = 4) = (error IS NOT NULL)),
    CHECK ((status IN (3, 4)) = (finished_at IS NOT NULL)),
    CHECK ((kind = 2) = (wake_at IS NOT NULL))
) STRICT;

-- Order of replay and of lists.
CREATE INDEX steps_begun ON steps (run_id, begun_seq);
-- What parking and waking look for; ordinary steps are in neither.
CREATE INDEX steps_sleeps ON steps (run_id, wake_at) WHERE kind = 2 AND status = 2;
CREATE INDEX steps_retries ON steps (run_id, retry_at) WHERE status = 1;

-- Failed attempts that were followed by another; the last one is in the step's own row.
CREATE TABLE step_attempts (
    run_id      TEXT NOT NULL,
    step_id     TEXT NOT NULL,
    attempt     INTEGER NOT NULL,
    begun_seq   INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    lease       INTEGER NOT NULL,
    nonce       INTEGER NOT NULL,
    started_at  INTEGER,
    finished_at INTEGER NOT NULL,
    error       TEXT NOT NULL,
    retry_at    INTEGER NOT NULL,
    worker_id   TEXT,
    PRIMARY KEY (run_id, step_id, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE workers (
    namespace         TEXT NOT NULL,
    worker_id         TEXT NOT NULL,
    served            TEXT NOT NULL,
    max_concurrent    INTEGER NOT NULL,
    hostname          TEXT NOT NULL,
    pid               INTEGER NOT NULL,
    sdk_version       TEXT NOT NULL,
    build_id          TEXT NOT NULL,
    labels            TEXT,
    status            TEXT NOT NULL CHECK (status IN ('online', 'draining', 'offline')),
    active_count      INTEGER NOT NULL DEFAULT 0,
    total_completed   INTEGER NOT NULL DEFAULT 0,
    total_failed      INTEGER NOT NULL DEFAULT 0,
    registered_at     INTEGER NOT NULL,
    last_heartbeat_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, worker_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX workers_by_registered ON workers (namespace, registered_at, worker_id);
CREATE INDEX workers_by_id ON workers (worker_id);

CREATE TABLE workflow_versions (
    namespace     TEXT NOT NULL,
    workflow_type TEXT NOT NULL,
    version       TEXT NOT NULL,
    first_seen_at INTEGER NOT NULL,
    deprecated    INTEGER NOT NULL DEFAULT 0 CHECK (deprecated IN (0, 1)),
    is_default    INTEGER NOT NULL DEFAULT 0 CHECK (is_default IN (0, 1)),
    PRIMARY KEY (namespace, workflow_type, version)
) STRICT, WITHOUT ROWID;
