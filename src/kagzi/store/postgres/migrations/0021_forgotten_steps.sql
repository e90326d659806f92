-- What explicit retries of runs discard. 0001 says how times and text are written.

-- Steps whose results a retry of their run has discarded: for people, outside of the history, gone with the run.
-- retry_seq: the seq of the retry in its run. bytes: of its payloads and its error. Trimmed by every retry, so that it
-- stays small.
CREATE TABLE forgotten_steps (
    run_id uuid NOT NULL,
    retry_seq bigint NOT NULL,
    retried_at bigint NOT NULL,
    begun_seq bigint NOT NULL,
    seq bigint NOT NULL,
    claim bigint NOT NULL,
    bytes bigint NOT NULL,
    created_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    wake_at bigint,
    timeout_ms bigint NOT NULL,
    attempt integer NOT NULL,
    kind smallint NOT NULL,
    status smallint NOT NULL,
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
    PRIMARY KEY (run_id, retry_seq, step_id),
    CONSTRAINT forgotten_steps_status CHECK (status BETWEEN 3 AND 5),
    CONSTRAINT forgotten_steps_failed CHECK ((status = 4) = (error IS NOT NULL))
);
