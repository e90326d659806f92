-- Workflow types as queues. 0001 says how times, codes and text are written.

-- A row exists only for types that an operator has said something about. Whoever counts against its limits locks it.
CREATE TABLE workflow_types (
    namespace text COLLATE "C" NOT NULL,
    workflow_type text COLLATE "C" NOT NULL,
    paused boolean NOT NULL DEFAULT false,
    max_running bigint,
    max_running_per_key bigint,
    starts_per_second double precision,
    starts_per_second_per_key double precision,
    when_full text COLLATE "C" NOT NULL DEFAULT 'queue',
    limiting boolean NOT NULL GENERATED ALWAYS AS (
        paused OR max_running IS NOT NULL OR max_running_per_key IS NOT NULL OR starts_per_second IS NOT NULL
        OR starts_per_second_per_key IS NOT NULL
    ) STORED,
    next_start_at bigint NOT NULL DEFAULT 0,   -- when the next start is due, were they even
    turn text COLLATE "C" NOT NULL DEFAULT '', -- the key that was served last
    PRIMARY KEY (namespace, workflow_type),
    CONSTRAINT workflow_types_when_full CHECK (when_full IN ('queue', 'reject', 'cancel-oldest'))
) WITH (fillfactor = 50);

-- The same per key, while it lies ahead.
CREATE TABLE workflow_keys (
    namespace text COLLATE "C" NOT NULL,
    workflow_type text COLLATE "C" NOT NULL,
    concurrency_key text COLLATE "C" NOT NULL,
    next_start_at bigint NOT NULL,
    PRIMARY KEY (namespace, workflow_type, concurrency_key)
);

CREATE INDEX workflow_keys_past ON workflow_keys (namespace, workflow_type, next_start_at);

-- Keys in turn: from one to the next without reading the runs between. Runs without a key are not in it.
CREATE INDEX runs_by_key ON runs (namespace, workflow_type, concurrency_key, priority DESC, ready_at, run_id)
    WHERE concurrency_key IS NOT NULL AND ready_at IS NOT NULL;
-- Runs that go on after a wait: a rate that holds back new ones does not hold them. New runs are not in it.
CREATE INDEX runs_to_go_on ON runs (namespace, workflow_type, priority DESC, ready_at, run_id)
    WHERE ready_at IS NOT NULL AND lease > 0;
