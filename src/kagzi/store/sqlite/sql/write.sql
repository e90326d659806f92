-- name: insert_runs
-- Starts of a batch. On conflict nothing is inserted: the row count shows it, and each start is then processed alone.
INSERT INTO runs ({run.new}, created_at, started_at)
VALUES {values}
ON CONFLICT DO NOTHING;

-- name: insert_labels
-- For lists by label; created_at gives the order of the list.
INSERT INTO run_labels (namespace, key, value, created_at, run_id)
VALUES {values:5}
ON CONFLICT DO NOTHING;

-- name: insert_steps
-- Steps begun in a batch, with their result if that is in the same batch. Too low a row count means that one existed
-- already.
INSERT INTO steps (run_id, step_id, name, kind, status, attempt, begun_seq, seq, lease, nonce, retry, timeout_ms,
                   input, input_meta, output, output_meta, wake_at, parent_step_id, parallel_group_id, once,
                   created_at, started_at, finished_at, worker_id)
VALUES {values:24}
ON CONFLICT DO NOTHING;

-- name: complete_steps
-- Results of steps begun in an earlier batch of the same lease. The fence was checked before; this checks the step.
UPDATE steps SET status = {STEP.COMPLETED}, seq = wanted.column6, output = wanted.column7, output_meta = wanted.column8, finished_at = wanted.column9
FROM (VALUES {values:9}) AS wanted
WHERE steps.run_id = wanted.column1 AND steps.step_id = wanted.column2 AND steps.attempt = wanted.column3
  AND steps.lease = wanted.column4 AND steps.nonce = wanted.column5 AND steps.status = {STEP.RUNNING} AND steps.kind = {KIND.FUNCTION};

-- name: complete_runs
-- Ends of a batch: JSON rows of (run_id, lease, nonce, seq).
UPDATE runs SET status = {RUN.COMPLETED}, seq = wanted.seq, finished_at = :now, worker_id = NULL, lease_until = NULL, pause_requested = 0,
                awaits_signal = 0, retrying_steps = 0
FROM (SELECT json_extract(value, '$[0]') AS run_id, json_extract(value, '$[1]') AS lease, json_extract(value, '$[2]') AS nonce,
             json_extract(value, '$[3]') AS seq FROM json_each(:rows)) AS wanted
WHERE runs.run_id = wanted.run_id AND runs.lease = wanted.lease AND runs.nonce = wanted.nonce AND runs.status = {RUN.RUNNING};

-- name: complete_run
-- The same for one run, as parameters: JSON would cost more than the row itself.
UPDATE runs SET status = {RUN.COMPLETED}, seq = ?, finished_at = ?, worker_id = NULL, lease_until = NULL, pause_requested = 0,
                awaits_signal = 0, retrying_steps = 0
WHERE run_id = ? AND lease = ? AND nonce = ? AND status + 0 = {RUN.RUNNING};

-- name: advance_runs
-- Advances the seqs of the batch's runs: JSON rows of (run_id, lease, nonce, seq). Changes no indexed column.
UPDATE runs SET seq = wanted.seq
FROM (SELECT json_extract(value, '$[0]') AS run_id, json_extract(value, '$[1]') AS lease, json_extract(value, '$[2]') AS nonce,
             json_extract(value, '$[3]') AS seq FROM json_each(:rows)) AS wanted
WHERE runs.run_id = wanted.run_id AND runs.lease = wanted.lease AND runs.nonce = wanted.nonce AND runs.status + 0 = {RUN.RUNNING};

-- name: advance_run
-- The same for one run, as parameters.
UPDATE runs SET seq = ? WHERE run_id = ? AND lease = ? AND nonce = ? AND status + 0 = {RUN.RUNNING};

-- name: advance_and_renew_runs
-- The same for runs whose lease must be renewed.
UPDATE runs SET seq = wanted.seq, lease_until = :until
FROM (SELECT json_extract(value, '$[0]') AS run_id, json_extract(value, '$[1]') AS lease, json_extract(value, '$[2]') AS nonce,
             json_extract(value, '$[3]') AS seq FROM json_each(:rows)) AS wanted
WHERE runs.run_id = wanted.run_id AND runs.lease = wanted.lease AND runs.nonce = wanted.nonce AND runs.status + 0 = {RUN.RUNNING};

-- name: count_open_steps
-- Changes in the number of steps that wait for signals or are being retried, and of unread signals: JSON rows of (run_id,
-- waits, retries, unread). Few batches have any.
UPDATE runs SET awaits_signal = awaits_signal + wanted.waits, retrying_steps = retrying_steps + wanted.retries,
                unread_signals = unread_signals + wanted.unread
FROM (SELECT json_extract(value, '$[0]') AS run_id, sum(json_extract(value, '$[1]')) AS waits, sum(json_extract(value, '$[2]')) AS retries,
             sum(json_extract(value, '$[3]')) AS unread
      FROM json_each(:rows) GROUP BY 1) AS wanted
WHERE runs.run_id = wanted.run_id AND runs.finished_at IS NULL;

-- name: recount_open_steps
-- The same, counted from the steps of a run, after many of them changed at once.
UPDATE runs SET awaits_signal = (SELECT count(*) FROM steps AS s INDEXED BY steps_waiting WHERE s.run_id = runs.run_id
                                 AND s.status = {STEP.RUNNING} AND s.kind IN ({KIND.SIGNAL}, {KIND.CHILD}) AND s.kind = {KIND.SIGNAL}),
                retrying_steps = (SELECT count(*) FROM steps AS s WHERE s.run_id = runs.run_id AND s.kind = {KIND.FUNCTION}
                                  AND s.status IN ({STEP.PENDING}, {STEP.RUNNING}) AND s.attempt > 1)
WHERE run_id = ? AND finished_at IS NULL;

-- name: forget_lost_leases
-- A result is progress: leases lost before it do not count.
UPDATE runs SET lost_leases = 0 WHERE run_id IN (SELECT value FROM json_each(?));

-- name: fences_of
-- The fences of leased runs that the writer does not know (after a restart).
SELECT run_id, namespace, lease, nonce, seq, deadline_at, lease_until, worker_id, watched OR has_children OR unread_signals > 0,
       cancel_requested_at IS NOT NULL, lost_leases, pause_requested
FROM runs WHERE run_id IN (SELECT value FROM json_each(?)) AND status + 0 = {RUN.RUNNING};
