-- How many signals a run has accepted that no step has; kept when it ends.
ALTER TABLE runs ADD COLUMN unread_signals integer NOT NULL DEFAULT 0;

UPDATE runs AS r SET unread_signals = c.unread
FROM (SELECT run_id, count(*) AS unread FROM signals WHERE step_id IS NULL GROUP BY run_id) AS c
WHERE r.run_id = c.run_id;
