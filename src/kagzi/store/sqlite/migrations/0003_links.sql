-- What a run is to a schedule, and to the run it waits behind.
ALTER TABLE runs ADD COLUMN schedule_id TEXT; -- the schedule that started it
ALTER TABLE runs ADD COLUMN blocked_by TEXT; -- SLEEPING until that run has ended
ALTER TABLE runs ADD COLUMN pause_reason TEXT;
ALTER TABLE runs ADD COLUMN paused_due_at INTEGER; -- of a PAUSED run that had not begun: when it was to begin

CREATE INDEX runs_by_schedule ON runs (namespace, schedule_id, created_at, run_id) WHERE schedule_id IS NOT NULL;
CREATE INDEX runs_blocked ON runs (blocked_by) WHERE blocked_by IS NOT NULL;

-- Steps whose worker has a limited time to report them; no others.
CREATE INDEX steps_limited ON steps (run_id) WHERE status = 2 AND kind = 1 AND timeout_ms > 0;
