-- How many signals a run has accepted that no step has; kept when it ends.
ALTER TABLE runs ADD COLUMN unread_signals INTEGER NOT NULL DEFAULT 0;

UPDATE runs SET unread_signals = counted.unread
FROM (SELECT run_id, count(*) AS unread FROM signals WHERE step_id IS NULL GROUP BY run_id) AS counted
WHERE runs.run_id = counted.run_id;
