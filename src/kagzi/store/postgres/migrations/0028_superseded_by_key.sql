-- Open runs of a key, oldest first: a start that replaces the oldest one finds it also where it sleeps, among any number
-- of other keys and of runs that have ended. Runs without a key are not in it.
CREATE INDEX runs_open_by_key ON runs (namespace, workflow_type, concurrency_key, run_id)
    WHERE concurrency_key IS NOT NULL AND finished_at IS NULL;
