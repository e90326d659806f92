-- What explicit retries of runs discard.

-- Steps whose results a retry of their run has discarded: for people, outside of the history, gone with the run.
-- retry_seq: the seq of the retry in its run. bytes: of its payloads and its error. Trimmed by every retry, so that it
-- stays small.
CREATE TABLE forgotten_steps (
    run_id            TEXT NOT NULL,
    retry_seq         INTEGER NOT NULL,
    retried_at        INTEGER NOT NULL,
    step_id           TEXT NOT NULL,
    name              TEXT NOT NULL,
    kind              INTEGER NOT NULL,
    status            INTEGER NOT NULL CHECK (status BETWEEN 3 AND 5),
    attempt           INTEGER NOT NULL,
    begun_seq         INTEGER NOT NULL,
    seq               INTEGER NOT NULL,
    claim             INTEGER NOT NULL,
    bytes             INTEGER NOT NULL,
    retry             TEXT,
    timeout_ms        INTEGER NOT NULL,
    created_at        INTEGER NOT NULL,
    started_at        INTEGER,
    finished_at       INTEGER,
    wake_at           INTEGER,
    child_run_id      TEXT,
    parent_step_id    TEXT,
    parallel_group_id TEXT,
    worker_id         TEXT,
    error             TEXT,
    input             BLOB,
    input_meta        TEXT,
    output            BLOB,
    output_meta       TEXT,
    details           BLOB,
    details_meta      TEXT,
    PRIMARY KEY (run_id, retry_seq, step_id),
    CHECK ((status = 4) = (error IS NOT NULL))
) STRICT;
