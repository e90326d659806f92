-- How long runs wait for a worker: `queued_at` is when the wait for the first claim began, `queued_us` the sum of all
-- waits that are over.
ALTER TABLE runs ADD COLUMN queued_at INTEGER;
ALTER TABLE runs ADD COLUMN queued_us INTEGER NOT NULL DEFAULT 0;
