-- name: renew_leases
-- JSON rows of (run_id, namespace, lease, nonce). Set, never added to.
UPDATE runs SET lease_until = :until
FROM (SELECT json_extract(value, '$[0]') AS run_id, json_extract(value, '$[1]') AS namespace,
             json_extract(value, '$[2]') AS lease, json_extract(value, '$[3]') AS nonce FROM json_each(:rows)) AS given
WHERE runs.run_id = given.run_id AND runs.namespace = given.namespace AND runs.lease = given.lease AND runs.nonce = given.nonce
  AND runs.status + 0 = 2;

-- name: leases_of
-- Who holds these runs now, and whether they were asked to stop; one row.
SELECT json_group_array(json_array(run_id, namespace, lease, nonce, cancel_requested_at IS NOT NULL, coalesce(cancel_reason, '')))
FROM runs WHERE run_id IN (SELECT value FROM json_each(?)) AND status + 0 = 2;

-- name: cut_leases
-- Their session closed: they end soon, unless somebody renews them.
UPDATE runs SET lease_until = :until
FROM (SELECT json_extract(value, '$[0]') AS run_id, json_extract(value, '$[1]') AS namespace,
             json_extract(value, '$[2]') AS lease, json_extract(value, '$[3]') AS nonce FROM json_each(:rows)) AS given
WHERE runs.run_id = given.run_id AND runs.namespace = given.namespace AND runs.lease = given.lease AND runs.nonce = given.nonce
  AND runs.status + 0 = 2 AND runs.lease_until > :until
RETURNING runs.run_id;

-- name: release_leases
-- Handed back, not counted. PAUSED if that was asked for.
UPDATE runs SET status = CASE WHEN pause_requested THEN 7 ELSE 1 END, ready_at = CASE WHEN pause_requested THEN NULL ELSE :now END,
                pause_requested = 0, worker_id = NULL, lease_until = NULL
FROM (SELECT json_extract(value, '$[0]') AS run_id, json_extract(value, '$[1]') AS namespace,
             json_extract(value, '$[2]') AS lease, json_extract(value, '$[3]') AS nonce FROM json_each(:rows)) AS given
WHERE runs.run_id = given.run_id AND runs.namespace = given.namespace AND runs.lease = given.lease AND runs.nonce = given.nonce
  AND runs.status + 0 = 2
RETURNING runs.run_id, runs.namespace, runs.workflow_type, runs.status;

-- name: release_of_worker
-- Everything a leaving worker holds.
UPDATE runs SET status = CASE WHEN pause_requested THEN 7 ELSE 1 END, ready_at = CASE WHEN pause_requested THEN NULL ELSE :now END,
                pause_requested = 0, worker_id = NULL, lease_until = NULL
WHERE worker_id = :worker_id AND namespace = :namespace AND status = 2
RETURNING run_id, namespace, workflow_type, status;
