-- What steps log.

-- The last lines that the body of a step logged: for people, outside of the history, gone with the run.
CREATE TABLE step_logs (
    run_id  TEXT NOT NULL,
    step_id TEXT NOT NULL,
    lines   TEXT NOT NULL,
    dropped INTEGER NOT NULL,
    PRIMARY KEY (run_id, step_id)
) STRICT, WITHOUT ROWID;
