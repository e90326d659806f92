-- name: renew_leases
-- JSON rows of (run_id, namespace, lease, nonce). The end is set, never added to.
UPDATE runs SET lease_until = :until
FROM (SELECT json_extract(value, '$[0]') AS run_id, json_extract(value, '$[1]') AS namespace,
             json_extract(value, '$[2]') AS lease, json_extract(value, '$[3]') AS nonce FROM json_each(:rows)) AS wanted
WHERE runs.run_id = wanted.run_id AND runs.namespace = wanted.namespace AND runs.lease = wanted.lease AND runs.nonce = wanted.nonce
  AND runs.status + 0 = {RUN.RUNNING};

-- name: overdue_steps
-- Attempts of leased runs that should have been reported by now, with their position among the JSON rows.
SELECT wanted.key, s.step_id, s.attempt, s.timeout_ms FROM json_each(:rows) AS wanted
CROSS JOIN steps AS s INDEXED BY steps_limited ON s.run_id = json_extract(wanted.value, '$[0]')
CROSS JOIN runs AS r ON r.run_id = s.run_id
WHERE s.status = {STEP.RUNNING} AND s.kind = {KIND.FUNCTION} AND s.timeout_ms > 0 AND s.started_at + s.timeout_ms * 1000 <= :at
  AND s.lease = r.lease AND s.nonce = r.nonce AND r.namespace = json_extract(wanted.value, '$[1]')
  AND r.lease = json_extract(wanted.value, '$[2]') AND r.nonce = json_extract(wanted.value, '$[3]') AND r.status + 0 = {RUN.RUNNING};

-- name: leases_of
-- The current leases of these runs, and whether their cancellation was requested; one row.
SELECT json_group_array(json_array(run_id, namespace, lease, nonce, cancel_requested_at IS NOT NULL, coalesce(cancel_reason, ''),
                                   pause_requested))
FROM runs WHERE run_id IN (SELECT value FROM json_each(?)) AND status + 0 = {RUN.RUNNING};

-- name: shorten_leases
-- Their session closed: they end soon, unless they are renewed.
UPDATE runs SET lease_until = :until
FROM (SELECT json_extract(value, '$[0]') AS run_id, json_extract(value, '$[1]') AS namespace,
             json_extract(value, '$[2]') AS lease, json_extract(value, '$[3]') AS nonce FROM json_each(:rows)) AS wanted
WHERE runs.run_id = wanted.run_id AND runs.namespace = wanted.namespace AND runs.lease = wanted.lease AND runs.nonce = wanted.nonce
  AND runs.status + 0 = {RUN.RUNNING} AND runs.lease_until > :until
RETURNING runs.run_id;

-- name: release_leases
-- Handed back, not counted as lost. PAUSED if requested.
UPDATE runs SET status = CASE WHEN pause_requested THEN {RUN.PAUSED} ELSE {RUN.PENDING} END, ready_at = CASE WHEN pause_requested THEN NULL ELSE :now END,
                pause_requested = 0, worker_id = NULL, lease_until = NULL
FROM (SELECT json_extract(value, '$[0]') AS run_id, json_extract(value, '$[1]') AS namespace,
             json_extract(value, '$[2]') AS lease, json_extract(value, '$[3]') AS nonce FROM json_each(:rows)) AS wanted
WHERE runs.run_id = wanted.run_id AND runs.namespace = wanted.namespace AND runs.lease = wanted.lease AND runs.nonce = wanted.nonce
  AND runs.status + 0 = {RUN.RUNNING}
RETURNING runs.run_id, runs.namespace, runs.workflow_type, runs.status;

-- name: lost_before_ack
-- A stream broke before the worker confirmed these runs. The first time, a run is PENDING at once, and that is counted;
-- one that has lost a worker since its last progress keeps its lease for a grace period.
UPDATE runs SET status = CASE WHEN lost_leases > 0 THEN {RUN.RUNNING} WHEN pause_requested THEN {RUN.PAUSED} ELSE {RUN.PENDING} END,
                ready_at = iif(lost_leases > 0 OR pause_requested, NULL, :now),
                worker_id = iif(lost_leases > 0, worker_id, NULL),
                lease_until = iif(lost_leases > 0, min(lease_until, wanted.until), NULL),
                pause_requested = pause_requested AND lost_leases > 0, lost_leases = max(lost_leases, 1)
FROM (SELECT json_extract(value, '$[0]') AS run_id, json_extract(value, '$[1]') AS namespace,
             json_extract(value, '$[2]') AS lease, json_extract(value, '$[3]') AS nonce,
             json_extract(:untils, '$[' || key || ']') AS until FROM json_each(:rows)) AS wanted
WHERE runs.run_id = wanted.run_id AND runs.namespace = wanted.namespace AND runs.lease = wanted.lease AND runs.nonce = wanted.nonce
  AND runs.status + 0 = {RUN.RUNNING}
RETURNING runs.run_id, runs.namespace, runs.workflow_type, runs.status;

-- name: orphan_runs_of
-- All leases of a worker whose process has ended: the next fire takes the runs back.
UPDATE runs SET lease_until = :until WHERE worker_id = :worker_id AND namespace = :namespace AND status = {RUN.RUNNING} RETURNING run_id;

-- name: release_of_worker
-- All runs of a worker that leaves.
UPDATE runs SET status = CASE WHEN pause_requested THEN {RUN.PAUSED} ELSE {RUN.PENDING} END, ready_at = CASE WHEN pause_requested THEN NULL ELSE :now END,
                pause_requested = 0, worker_id = NULL, lease_until = NULL
WHERE worker_id = :worker_id AND namespace = :namespace AND status = {RUN.RUNNING}
RETURNING run_id, namespace, workflow_type, status;
