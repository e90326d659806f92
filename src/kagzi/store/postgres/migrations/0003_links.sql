-- What a run is to a schedule, and to the run it waits behind. 0001 says how times, codes and text are written.
ALTER TABLE runs
    ADD COLUMN schedule_id text COLLATE "C",                    -- the schedule that started it
    ADD COLUMN blocked_by uuid;                                 -- SLEEPING until that run has ended

CREATE INDEX runs_schedule ON runs (namespace, schedule_id, created_at, run_id) WHERE schedule_id IS NOT NULL;
CREATE INDEX runs_blocked ON runs (blocked_by) WHERE blocked_by IS NOT NULL;
