-- Execution: signals, children, races, pauses, successors.

-- What a run is to others. on_close: 1 cancel, 2 abandon; NULL without a parent.
ALTER TABLE runs ADD COLUMN watched INTEGER NOT NULL DEFAULT 0 CHECK (watched IN (0, 1)); -- a step of another run waits for its end
ALTER TABLE runs ADD COLUMN on_close INTEGER CHECK (on_close IN (1, 2));
ALTER TABLE runs ADD COLUMN has_children INTEGER NOT NULL DEFAULT 0 CHECK (has_children IN (0, 1));
ALTER TABLE runs ADD COLUMN cascade_due INTEGER NOT NULL DEFAULT 0 CHECK (cascade_due IN (0, 1)); -- children may have to be cancelled
ALTER TABLE runs ADD COLUMN pause_requested INTEGER NOT NULL DEFAULT 0 CHECK (pause_requested IN (0, 1));
ALTER TABLE runs ADD COLUMN status_text TEXT;
ALTER TABLE runs ADD COLUMN progress REAL;
ALTER TABLE runs ADD COLUMN forked_from TEXT;
ALTER TABLE runs ADD COLUMN continued_as TEXT CHECK (continued_as IS NULL OR status = 4);
ALTER TABLE runs ADD COLUMN tried_builds TEXT; -- JSON: builds whose code did not fit
ALTER TABLE runs ADD COLUMN retry_request_id TEXT; -- of the last explicit retry: to recognise its repeat

CREATE INDEX runs_cascade ON runs (run_id) WHERE cascade_due = 1;

-- In order per run, and bound to one step each.
CREATE TABLE signals (
    run_id      TEXT NOT NULL,
    number      INTEGER NOT NULL,
    name        TEXT NOT NULL,
    payload     BLOB NOT NULL,
    meta        TEXT,
    request_id  TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    step_id     TEXT, -- NULL while no step has taken it
    PRIMARY KEY (run_id, number)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX signals_request ON signals (run_id, request_id);
CREATE INDEX signals_waiting ON signals (run_id, name, number) WHERE step_id IS NULL;

-- Steps that wait for runs they did not start. Those that did are named in the child's own row.
CREATE TABLE child_links (
    child_run_id   TEXT NOT NULL,
    parent_run_id  TEXT NOT NULL,
    parent_step_id TEXT NOT NULL,
    PRIMARY KEY (child_run_id, parent_run_id, parent_step_id)
) STRICT, WITHOUT ROWID;

-- The history again, with other rules of shape: a wait for a signal may have a time limit, and what a race closed has an end.
ALTER TABLE steps RENAME TO steps_of_0001;
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
    CHECK ((status IN (3, 4, 5)) = (finished_at IS NOT NULL)),
    CHECK (kind <> 2 OR wake_at IS NOT NULL),
    CHECK (wake_at IS NULL OR kind IN (2, 3)),
    CHECK (child_run_id IS NULL OR kind = 4)
) STRICT;
INSERT INTO steps SELECT * FROM steps_of_0001;
DROP TABLE steps_of_0001;

-- Order of replay and of lists.
CREATE INDEX steps_begun ON steps (run_id, begun_seq);
-- What parking, waking and signals look for; ordinary steps are in none of these.
CREATE INDEX steps_timed ON steps (run_id, wake_at) WHERE status = 2 AND wake_at IS NOT NULL;
CREATE INDEX steps_waiting ON steps (run_id, kind, name, begun_seq) WHERE status = 2 AND kind IN (3, 4);
CREATE INDEX steps_retries ON steps (run_id, retry_at) WHERE status = 1;

-- An explicit retry counts attempts afresh and keeps the earlier ones: their numbers come twice, their begun_seq does not.
ALTER TABLE step_attempts RENAME TO step_attempts_of_0001;
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
    PRIMARY KEY (run_id, step_id, begun_seq)
) STRICT, WITHOUT ROWID;
INSERT INTO step_attempts SELECT * FROM step_attempts_of_0001;
DROP TABLE step_attempts_of_0001;
