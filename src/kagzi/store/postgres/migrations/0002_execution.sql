-- Signals, children, races, pauses, forks and continuations. 0001 says how times, codes and text are written.

-- Nothing that steps change is in an index; the flags are set once in a run's life and are in partial indexes only while true.
ALTER TABLE runs
    ADD COLUMN watched boolean NOT NULL DEFAULT false,          -- a step of another run waits for the end of this one
    ADD COLUMN has_children boolean NOT NULL DEFAULT false,     -- a step of this run started another run
    ADD COLUMN cascade_due boolean NOT NULL DEFAULT false,      -- some of its children may have to be cancelled
    ADD COLUMN pause_requested boolean NOT NULL DEFAULT false,  -- of a RUNNING run: PAUSED when its holder lets go
    ADD COLUMN diverged boolean NOT NULL DEFAULT false,         -- PAUSED because the code did not fit the history
    ADD COLUMN on_close smallint,                               -- when its parent ends: 1 cancel, 2 abandon
    ADD COLUMN paused_due_at bigint,                            -- of a PAUSED run that had not begun: when it was to begin
    ADD COLUMN progress double precision,
    ADD COLUMN forked_from uuid,
    ADD COLUMN continued_as uuid,
    ADD COLUMN status_text text,
    ADD COLUMN pause_reason text,
    ADD COLUMN retry_request_id text COLLATE "C",               -- the last request to try a failed run again
    ADD COLUMN tried_builds text[] COLLATE "C",                 -- builds whose code did not fit
    ADD CONSTRAINT runs_on_close CHECK (on_close IN (1, 2)),
    ADD CONSTRAINT runs_continued CHECK (continued_as IS NULL OR status = 4),
    ADD CONSTRAINT runs_pause_requested CHECK (NOT pause_requested OR status = 2),
    ADD CONSTRAINT runs_diverged CHECK (NOT diverged OR (status = 7 AND problem IS NOT NULL));

CREATE INDEX runs_cascade ON runs (run_id) WHERE cascade_due;
CREATE INDEX runs_diverged ON runs (namespace, workflow_type) WHERE diverged;

-- Steps of other runs than the parent that wait for a run's end: they found it by its workflow id.
CREATE TABLE child_links (
    child_run_id uuid NOT NULL,
    parent_run_id uuid NOT NULL,
    parent_step_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (child_run_id, parent_run_id, parent_step_id)
);

-- Signals in the order in which they came. Bound to a step they stay: a repeated request is recognised by them, and a step
-- that is forgotten gives its signal back.
CREATE TABLE signals (
    run_id uuid NOT NULL,
    number bigint NOT NULL,
    received_at bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    request_id text COLLATE "C" NOT NULL,
    step_id text COLLATE "C",
    payload bytea NOT NULL,
    payload_meta json,
    PRIMARY KEY (run_id, number)
);

CREATE UNIQUE INDEX signals_request_id ON signals (run_id, request_id);
CREATE INDEX signals_unbound ON signals (run_id, name, number) WHERE step_id IS NULL;

-- A run that was tried again after it had failed keeps the attempts of the steps it forgot: `forgotten` is the seq at which.
ALTER TABLE step_attempts ADD COLUMN forgotten bigint NOT NULL DEFAULT 0;
ALTER TABLE step_attempts DROP CONSTRAINT step_attempts_pkey;
ALTER TABLE step_attempts ADD PRIMARY KEY (run_id, step_id, forgotten, attempt);
ALTER TABLE step_attempts ALTER COLUMN retry_at DROP NOT NULL;
