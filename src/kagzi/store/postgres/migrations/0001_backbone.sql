-- Runs, their history, and who works on them. Times are microseconds since 1970 UTC; codes are those of core/states.py.
-- Text that is compared is in the order of its bytes, so that the server's locale decides nothing.

CREATE TABLE namespaces (
    namespace text COLLATE "C" PRIMARY KEY,
    enabled boolean NOT NULL DEFAULT true,
    created_at bigint NOT NULL,
    open_runs_limit bigint,
    running_runs_limit bigint,
    starts_per_second_limit double precision,
    stored_bytes_limit bigint,
    sessions_limit bigint,
    schedules_limit bigint
);

-- A row is narrow and updated often: payloads live in steps, and every page keeps room for new versions of its rows (HOT).
-- No column that changes with every step (seq, result_seq, steps) is in an index; lease_until is, and is renewed rarely.
CREATE TABLE runs (
    run_id uuid PRIMARY KEY,
    seq bigint NOT NULL DEFAULT 0,             -- numbers given out; any change to the run's steps raises it
    result_seq bigint NOT NULL DEFAULT 0,      -- no result has a higher number
    lease bigint NOT NULL DEFAULT 0,           -- raised by every claim; 0: never claimed
    nonce bigint NOT NULL DEFAULT 0,
    lease_until bigint,
    ready_at bigint,                           -- PENDING since
    due_at bigint,                             -- SLEEPING until; NULL: only an event wakes it
    deadline_at bigint,
    cancel_by bigint,
    cancel_requested_at bigint,
    created_at bigint NOT NULL,
    started_at bigint,
    claimed_at bigint,                         -- when the last claim was made
    finished_at bigint,
    steps integer NOT NULL DEFAULT 0,          -- begun steps, counted generously: a step begun again counts again
    attempt integer NOT NULL DEFAULT 1,
    lost_leases integer NOT NULL DEFAULT 0,
    status smallint NOT NULL,
    wait_reason smallint,
    priority smallint NOT NULL DEFAULT 0,
    namespace text COLLATE "C" NOT NULL,
    workflow_id text COLLATE "C" NOT NULL,
    workflow_type text COLLATE "C" NOT NULL,
    version text COLLATE "C",
    request_id text COLLATE "C" NOT NULL,
    worker_id text COLLATE "C",                -- the holder; after that the last one
    concurrency_key text COLLATE "C",
    parent_run_id uuid,
    parent_step_id text COLLATE "C",
    cancel_reason text,
    retry json,
    labels json,
    error json,
    problem json,
    CONSTRAINT runs_status CHECK (status BETWEEN 1 AND 7),
    CONSTRAINT runs_pending CHECK ((status = 1) = (ready_at IS NOT NULL)),
    CONSTRAINT runs_running CHECK (
        (status = 2) = (lease_until IS NOT NULL) AND (status <> 2 OR (worker_id IS NOT NULL AND lease > 0))
    ),
    CONSTRAINT runs_sleeping CHECK (
        (status = 3) = (wait_reason IS NOT NULL) AND (status = 3 OR due_at IS NULL)
        AND (wait_reason IS NULL OR wait_reason IN (2, 3) OR due_at IS NOT NULL)
    ),
    CONSTRAINT runs_ended CHECK ((status IN (4, 5, 6)) = (finished_at IS NOT NULL) AND (status <> 5 OR error IS NOT NULL)),
    CONSTRAINT runs_wait_reason CHECK (wait_reason BETWEEN 1 AND 4)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- One open run per workflow id; one run per request.
CREATE UNIQUE INDEX runs_open_workflow_id ON runs (namespace, workflow_id) WHERE status IN (1, 2, 3, 7);
CREATE UNIQUE INDEX runs_request_id ON runs (namespace, request_id);
-- What is claimed, woken, ended by the clock, taken from a lost worker. Their conditions name no status: those of the lists
-- below do, and a planner that has seen no such rows would read all open runs by one of them.
CREATE INDEX runs_to_claim ON runs (namespace, workflow_type, priority DESC, ready_at, run_id) WHERE ready_at IS NOT NULL;
CREATE INDEX runs_to_wake ON runs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX runs_leased ON runs (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX runs_held ON runs (namespace, worker_id) WHERE lease_until IS NOT NULL;
CREATE INDEX runs_deadline ON runs (deadline_at) WHERE deadline_at IS NOT NULL AND finished_at IS NULL;
CREATE INDEX runs_cancel_by ON runs (cancel_by) WHERE cancel_by IS NOT NULL AND finished_at IS NULL;
-- What people look for: the latest of an id, lists by time, by type, of what is open, of what went wrong, of a parent.
-- `created_at >= 0` always holds: it keeps the indexes of lists out of plans that are made while the tables are empty.
CREATE INDEX runs_ended_workflow_id ON runs (namespace, workflow_id, created_at) WHERE status IN (4, 5, 6);
CREATE INDEX runs_created ON runs (namespace, created_at, run_id) WHERE created_at >= 0;
CREATE INDEX runs_type ON runs (namespace, workflow_type, created_at, run_id) WHERE created_at >= 0;
CREATE INDEX runs_open ON runs (namespace, created_at, run_id) WHERE created_at >= 0 AND status IN (1, 2, 3, 7);
CREATE INDEX runs_trouble ON runs (namespace, created_at, run_id) WHERE created_at >= 0 AND status IN (5, 6);
CREATE INDEX runs_parent ON runs (parent_run_id) WHERE parent_run_id IS NOT NULL;

CREATE TABLE run_labels (
    namespace text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    run_id uuid NOT NULL,
    PRIMARY KEY (namespace, key, value, run_id)
);

-- The history. Kinds of 100 and more are a run's input, context and output. lease and nonce are those of the last writer:
-- a repeated command is recognised by them. due_at is wake_at or retry_at while that is ahead: status is in no index, so
-- that completing a step touches none.
CREATE TABLE steps (
    run_id uuid NOT NULL,
    begun_seq bigint NOT NULL,
    seq bigint NOT NULL DEFAULT 0,
    lease bigint NOT NULL DEFAULT 0,
    nonce bigint NOT NULL DEFAULT 0,
    created_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    due_at bigint,
    retry_at bigint,
    wake_at bigint,
    timeout_ms bigint NOT NULL DEFAULT 0,
    attempt integer NOT NULL DEFAULT 1,
    kind smallint NOT NULL,
    status smallint NOT NULL,
    once boolean NOT NULL DEFAULT false,
    step_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    worker_id text COLLATE "C",
    parent_step_id text COLLATE "C",
    parallel_group_id text COLLATE "C",
    child_run_id uuid,
    retry json,
    error json,
    input bytea,
    input_meta json,
    output bytea,
    output_meta json,
    details bytea,
    details_meta json,
    PRIMARY KEY (run_id, step_id),
    CONSTRAINT steps_status CHECK (status BETWEEN 1 AND 5),
    CONSTRAINT steps_result CHECK (kind >= 100 OR (status >= 3) = (seq > 0)),
    CONSTRAINT steps_failed CHECK (status <> 4 OR error IS NOT NULL),
    CONSTRAINT steps_pending CHECK ((status = 1) = (retry_at IS NOT NULL)),
    CONSTRAINT steps_due CHECK (due_at IS NULL OR status < 3)
) WITH (fillfactor = 85);

-- History is read in the order in which steps were begun, page by page. The condition always holds; it keeps the index from
-- those who look for one step: a planner that has only seen short runs takes it for as good as the primary key.
CREATE INDEX steps_begun ON steps (run_id, begun_seq) WHERE begun_seq >= 0;
CREATE INDEX steps_due ON steps (run_id, due_at) WHERE due_at IS NOT NULL;

-- Failed attempts that were followed by another.
CREATE TABLE step_attempts (
    run_id uuid NOT NULL,
    step_id text COLLATE "C" NOT NULL,
    attempt integer NOT NULL,
    begun_seq bigint NOT NULL,
    seq bigint NOT NULL,
    lease bigint NOT NULL,
    nonce bigint NOT NULL,
    started_at bigint,
    finished_at bigint NOT NULL,
    retry_at bigint NOT NULL,
    worker_id text COLLATE "C",
    error json NOT NULL,
    PRIMARY KEY (run_id, step_id, attempt)
);

CREATE TABLE workers (
    namespace text COLLATE "C" NOT NULL,
    worker_id text COLLATE "C" NOT NULL,
    status smallint NOT NULL CHECK (status BETWEEN 1 AND 3),
    active_count integer NOT NULL DEFAULT 0,
    total_completed bigint NOT NULL DEFAULT 0,
    total_failed bigint NOT NULL DEFAULT 0,
    registered_at bigint NOT NULL,
    last_heartbeat_at bigint NOT NULL,
    max_concurrent integer NOT NULL,
    pid bigint NOT NULL,
    hostname text NOT NULL,
    sdk_version text NOT NULL,
    build_id text NOT NULL,
    workflow_types text[] COLLATE "C" NOT NULL,
    served json NOT NULL,
    labels json,
    PRIMARY KEY (namespace, worker_id)
) WITH (fillfactor = 70);

-- Heartbeats name the worker only.
CREATE INDEX workers_worker_id ON workers (worker_id);
CREATE INDEX workers_registered ON workers (namespace, registered_at, worker_id);

CREATE TABLE workflow_versions (
    namespace text COLLATE "C" NOT NULL,
    workflow_type text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    first_seen_at bigint NOT NULL,
    deprecated boolean NOT NULL DEFAULT false,
    is_default boolean NOT NULL DEFAULT false,
    PRIMARY KEY (namespace, workflow_type, version)
);
