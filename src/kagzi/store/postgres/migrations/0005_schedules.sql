-- Schedules, and what became of their nominal times. 0001 says how times, codes and text are written.

-- next_at is the nominal time that comes next, due_at when that is done: jitter later. Neither exists while it is paused.
CREATE TABLE schedules (
    namespace text COLLATE "C" NOT NULL,
    schedule_id text COLLATE "C" NOT NULL,
    workflow_type text COLLATE "C" NOT NULL,
    enabled boolean NOT NULL,
    paused_reason text,
    next_at bigint,
    due_at bigint,
    last_fired_at bigint,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    revision bigint NOT NULL,
    request_id text COLLATE "C",
    spec json NOT NULL,                                         -- all that it says: read and written as a whole
    PRIMARY KEY (namespace, schedule_id),
    CONSTRAINT schedules_due CHECK ((next_at IS NULL) = (due_at IS NULL) AND (due_at IS NULL OR due_at >= next_at)),
    CONSTRAINT schedules_paused CHECK (enabled OR next_at IS NULL)
) WITH (fillfactor = 70);

CREATE INDEX schedules_by_due ON schedules (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX schedules_by_created ON schedules (namespace, created_at, schedule_id);

-- A nominal time becomes one run at most; it may have been skipped before. One skip may stand for a range.
CREATE TABLE schedule_fires (
    namespace text COLLATE "C" NOT NULL,
    schedule_id text COLLATE "C" NOT NULL,
    nominal_at bigint NOT NULL,
    skipped boolean NOT NULL,
    at bigint NOT NULL,
    cause text COLLATE "C" NOT NULL,
    run_id uuid,
    reason text,
    skipped_until bigint,
    count bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, schedule_id, nominal_at, skipped),
    CONSTRAINT schedule_fires_run CHECK (skipped = (run_id IS NULL) AND skipped = (reason IS NOT NULL))
);

CREATE INDEX schedule_fires_by_at ON schedule_fires (at);

-- Whether the next one overlaps: only runs that a schedule started, and only until they end.
CREATE INDEX runs_schedule_open ON runs (namespace, schedule_id, created_at, run_id)
    WHERE schedule_id IS NOT NULL AND finished_at IS NULL;
