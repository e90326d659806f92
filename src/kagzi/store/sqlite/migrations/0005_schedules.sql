-- Schedules, and what became of their nominal times.

-- next_at is the nominal time that comes next, due_at when that is done: jitter later. Neither exists while it is paused.
CREATE TABLE schedules (
    namespace     TEXT NOT NULL,
    schedule_id   TEXT NOT NULL,
    workflow_type TEXT NOT NULL,
    enabled       INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    paused_reason TEXT,
    next_at       INTEGER,
    due_at        INTEGER,
    last_fired_at INTEGER,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    revision      INTEGER NOT NULL,
    request_id    TEXT,
    spec          TEXT NOT NULL, -- all that it says: read and written as a whole
    PRIMARY KEY (namespace, schedule_id),
    CHECK ((next_at IS NULL) = (due_at IS NULL) AND (due_at IS NULL OR due_at >= next_at)),
    CHECK (enabled OR next_at IS NULL)
) STRICT;

CREATE INDEX schedules_by_due ON schedules (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX schedules_by_created ON schedules (namespace, created_at, schedule_id);

-- A nominal time becomes one run at most; it may have been skipped before. One skip may stand for a range.
CREATE TABLE schedule_fires (
    namespace     TEXT NOT NULL,
    schedule_id   TEXT NOT NULL,
    nominal_at    INTEGER NOT NULL,
    skipped       INTEGER NOT NULL CHECK (skipped IN (0, 1)),
    at            INTEGER NOT NULL,
    cause         TEXT NOT NULL,
    run_id        TEXT,
    reason        TEXT,
    skipped_until INTEGER,
    count         INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, schedule_id, nominal_at, skipped),
    CHECK (skipped = (run_id IS NULL) AND skipped = (reason IS NOT NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX schedule_fires_by_at ON schedule_fires (at);

-- Whether the next one overlaps: only runs that a schedule started, and only until they end.
CREATE INDEX runs_schedule_open ON runs (namespace, schedule_id, created_at, run_id)
    WHERE schedule_id IS NOT NULL AND finished_at IS NULL;
