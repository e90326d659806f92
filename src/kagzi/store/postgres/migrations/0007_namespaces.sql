-- Lists in order by what people ask for, and what is known and allowed of a namespace. 0001 says how things are written.

-- One index for lists by status instead of two by groups of them: one status among many others is found at once, and in order.
DROP INDEX runs_open;
DROP INDEX runs_trouble;
CREATE INDEX runs_status ON runs (namespace, status, created_at, run_id) WHERE created_at >= 0;
DROP INDEX runs_parent;
CREATE INDEX runs_parent ON runs (parent_run_id, created_at, run_id) WHERE parent_run_id IS NOT NULL;
-- Few runs of a version among many others are found at once, too.
CREATE INDEX runs_version ON runs (namespace, version, created_at, run_id) WHERE created_at >= 0;
CREATE INDEX runs_type_version ON runs (namespace, workflow_type, version, created_at, run_id) WHERE created_at >= 0;
-- Most runs are in neither of these.
CREATE INDEX runs_with_key ON runs (namespace, concurrency_key, created_at, run_id)
    WHERE created_at >= 0 AND concurrency_key IS NOT NULL;
CREATE INDEX runs_problem ON runs (namespace, created_at, run_id) WHERE problem IS NOT NULL;

-- created_at is here so that a list by label needs no sort.
ALTER TABLE run_labels ADD COLUMN created_at bigint;
UPDATE run_labels AS l SET created_at = r.created_at FROM runs AS r WHERE r.run_id = l.run_id;
DELETE FROM run_labels WHERE created_at IS NULL;
ALTER TABLE run_labels DROP CONSTRAINT run_labels_pkey;
ALTER TABLE run_labels ADD PRIMARY KEY (namespace, key, value, created_at, run_id);

ALTER TABLE namespaces
    ADD COLUMN retention json,                                  -- seconds by the word of a status
    ADD COLUMN deleting_at bigint,                              -- asked for; it takes nothing new
    ADD COLUMN purging boolean NOT NULL DEFAULT false,          -- granted: nothing was open in it
    ADD COLUMN next_start_at bigint NOT NULL DEFAULT 0,         -- when the next start is due, were they even
    ADD COLUMN stored_bytes bigint,
    ADD COLUMN stored_bytes_at bigint,
    ADD COLUMN measured_until bigint NOT NULL DEFAULT 0,        -- somebody measures it, or has; nobody else need until then
    ADD COLUMN limiting boolean NOT NULL GENERATED ALWAYS AS (
        open_runs_limit IS NOT NULL OR starts_per_second_limit IS NOT NULL OR stored_bytes_limit IS NOT NULL
    ) STORED,
    ADD CONSTRAINT namespaces_deleting CHECK (deleting_at IS NULL OR NOT enabled),
    ADD CONSTRAINT namespaces_purging CHECK (NOT purging OR deleting_at IS NOT NULL);

-- What happened in a minute, kept when the runs are gone. rolled_up has one row: minutes before its own are done.
CREATE TABLE run_stats (
    namespace text COLLATE "C" NOT NULL,
    workflow_type text COLLATE "C" NOT NULL,
    minute bigint NOT NULL,
    started bigint NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    cancelled bigint NOT NULL,
    p50_us bigint,
    p95_us bigint,
    PRIMARY KEY (namespace, minute, workflow_type)
);

CREATE INDEX run_stats_old ON run_stats (minute);

CREATE TABLE rolled_up (
    only_row smallint PRIMARY KEY CHECK (only_row = 1),
    minute bigint NOT NULL
);
