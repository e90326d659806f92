-- name: pending_runs
-- The best candidates of one version (NULL: not pinned), at most as many as wanted, as (-priority, ready_at, run_id).
-- One row of JSON, here and below: every row fetched releases the GIL, and a busy event loop is slow to return it.
SELECT json_group_array(json_array(-priority, ready_at, run_id)) FROM (
    SELECT priority, ready_at, run_id FROM runs INDEXED BY runs_pending
    WHERE namespace = :namespace AND workflow_type = :workflow_type AND version IS :version AND status = {RUN.PENDING}
      AND (deadline_at IS NULL OR deadline_at > :now) AND (pinned_build IS NULL OR pinned_build = :build_id)
    ORDER BY priority DESC, ready_at, run_id LIMIT :limit);

-- name: lease_runs
-- Increment the lease counter and lease the runs. With a single writer no lock is needed.
UPDATE runs SET status = {RUN.RUNNING}, lease = lease + 1, nonce = :nonce, worker_id = :worker_id, lease_until = :until, ready_at = NULL,
                started_at = coalesce(started_at, :now), version = coalesce(version, :version), queued_us = queued_us + max(:now - ready_at, 0),
                queued_at = iif(started_at IS NULL, coalesce(queued_at, ready_at), queued_at),
                own_traces_from = iif(own_traces_from = 0 AND (created_at < :old_before OR seq >= :long_seq), lease + 1, own_traces_from)
WHERE run_id IN (SELECT value FROM json_each(:run_ids)) AND status + 0 = {RUN.PENDING};

-- name: leased_runs
-- What the workers need to know about the runs just leased.
SELECT json_group_array(json_array(run_id, namespace, lease, seq, workflow_id, workflow_type, version, attempt, json(labels),
                                   created_at, deadline_at, cancel_requested_at, cancel_reason, parent_run_id,
                                   watched OR has_children OR unread_signals > 0, lost_leases, started_at, own_traces_from))
FROM runs WHERE run_id IN (SELECT value FROM json_each(?));

-- name: inputs_of
-- Input and context of claimed runs; large ones are read one by one. A context beside the input is never large.
SELECT json_group_array(json_array(run_id, kind, iif(length(output) <= 65536, hex(output), NULL), output_meta,
    iif(input IS NULL, NULL, hex(input)), input_meta)) FROM steps
WHERE run_id IN (SELECT value FROM json_each(?)) AND step_id IN ('$input', '$context');

-- name: large_input
-- An input or context that is too large to be read with others.
SELECT output FROM steps WHERE run_id = ? AND step_id IN ('$input', '$context') AND kind = ?;

-- name: claimed_bytes
-- About how many bytes are read for each claimed run: input, context and first step, which are read whole. SQLite knows
-- lengths without reading the values.
SELECT json_group_object(wanted.value, (SELECT coalesce(sum(coalesce(length(output), 0) + coalesce(length(details), 0)), 0) FROM (
    SELECT output, details FROM steps INDEXED BY steps_begun WHERE run_id = wanted.value ORDER BY begun_seq LIMIT 3)))
FROM json_each(?) AS wanted;

-- name: history_after
-- Steps of a run in the order in which they were begun, read until the page is full. The columns of
-- part_history_columns, without the results that the reader has.
SELECT step_id, kind, status, begun_seq, attempt, seq, coalesce(finished_at, started_at) AS at,
    iif(known, NULL, output) AS output, iif(known, NULL, output_meta) AS output_meta, iif(known, NULL, error) AS error,
    retry_at, wake_at, child_run_id, iif(known, NULL, details) AS details, iif(known, NULL, details_meta) AS details_meta
FROM (
    SELECT *, coalesce(seq BETWEEN 1 AND ?, 0) AS known FROM steps INDEXED BY steps_begun
    WHERE run_id = ? AND begun_seq > ? AND kind < {KIND.FIRST_PAYLOAD}
)
ORDER BY begun_seq;

-- name: short_histories
-- All steps of runs that have few, without large payloads: a run with those is read by itself. The columns of
-- part_history_columns.
SELECT json_group_array(json_array(run_id, large, step_id, kind, status, begun_seq, attempt, seq, coalesce(finished_at, started_at),
    iif(large OR output IS NULL, NULL, hex(output)), output_meta, iif(large, NULL, error), retry_at, wake_at, child_run_id,
    iif(large OR details IS NULL, NULL, hex(details)), details_meta))
FROM (
    SELECT s.*, coalesce(length(s.output), 0) + coalesce(length(s.details), 0) + coalesce(length(s.error), 0) > 4096 AS large
    FROM json_each(?) AS wanted CROSS JOIN steps AS s INDEXED BY steps_begun ON s.run_id = wanted.value
    WHERE s.kind < {KIND.FIRST_PAYLOAD}
    ORDER BY wanted.key, s.begun_seq
);

-- name: leased_run
-- Whether this lease is the current one.
SELECT 1 FROM runs WHERE run_id = ? AND namespace = ? AND lease = ? AND nonce = ? AND status = {RUN.RUNNING};
