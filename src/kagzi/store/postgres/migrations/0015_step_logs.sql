-- What steps log. 0001 says how times and text are written.

-- The last lines that the body of a step logged: for people, outside of the history, gone with the run.
CREATE TABLE step_logs (
    run_id uuid NOT NULL,
    dropped bigint NOT NULL,
    step_id text COLLATE "C" NOT NULL,
    lines text NOT NULL,
    PRIMARY KEY (run_id, step_id)
);
