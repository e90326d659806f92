-- How many steps of an open run wait for a signal, and how many have failed and are tried again; 0 in a run that has ended.
ALTER TABLE runs ADD COLUMN awaits_signal INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN retrying_steps INTEGER NOT NULL DEFAULT 0;

UPDATE runs SET awaits_signal = counted.waits, retrying_steps = counted.retries
FROM (SELECT s.run_id, sum(s.kind = 3) AS waits, sum(s.kind = 1) AS retries
      FROM runs AS r CROSS JOIN steps AS s ON s.run_id = r.run_id
      WHERE r.finished_at IS NULL AND ((s.kind = 3 AND s.status = 2) OR (s.kind = 1 AND s.status IN (1, 2) AND s.attempt > 1))
      GROUP BY s.run_id) AS counted
WHERE runs.run_id = counted.run_id;

-- Few runs are in either: what fails, and what waits for somebody to say something.
CREATE INDEX runs_failing ON runs (namespace, created_at, run_id) WHERE retrying_steps > 0 OR problem IS NOT NULL;
CREATE INDEX runs_waiting ON runs (namespace, created_at, run_id) WHERE awaits_signal > 0;

-- What ended when: lists by end read one range for each status, and so do retention and statistics.
DROP INDEX runs_finished;
CREATE INDEX runs_finished ON runs (namespace, status, finished_at, run_id) WHERE finished_at IS NOT NULL;
