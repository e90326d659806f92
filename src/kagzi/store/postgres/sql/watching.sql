-- name: events_after
-- One seq, one event: begins and results of steps after a seq, with those of failed attempts. They are first found and
-- measured, then read for the page. The run's row comes from the same snapshot.
WITH r AS MATERIALIZED (
    SELECT run_id, namespace, seq, status, created_at, finished_at, status_text, progress, pause_requested, pause_reason,
        cancel_requested_at IS NOT NULL AS cancel_requested,
        (SELECT s.finished_at FROM steps AS s WHERE s.run_id = runs.run_id AND s.step_id = '$state') AS state_at
    FROM runs WHERE run_id = :run_id::uuid AND namespace IS NOT DISTINCT FROM :namespace::text
), numbered AS MATERIALIZED (
    SELECT DISTINCT ON (f.seq) f.* FROM (
        SELECT s.begun_seq AS seq, {SOURCE.BEGUN} AS source, s.step_id, s.attempt, 0::bigint AS forgotten, 0 AS bytes
        FROM r JOIN steps AS s ON s.run_id = r.run_id
        WHERE s.begun_seq >= 0 AND s.begun_seq > :after_seq::bigint AND s.kind < {KIND.FIRST_PAYLOAD} AND s.seq <> s.begun_seq
        UNION ALL
        SELECT s.seq, {SOURCE.RESULT}, s.step_id, s.attempt, 0, coalesce(octet_length(s.output), 0) + coalesce(octet_length(s.error::text), 0)
        FROM r JOIN steps AS s ON s.run_id = r.run_id
        WHERE s.seq > :after_seq AND s.kind < {KIND.FIRST_PAYLOAD} AND s.status IN ({STEP.COMPLETED}, {STEP.FAILED})
        UNION ALL
        SELECT a.begun_seq, {SOURCE.ATTEMPT_BEGUN}, a.step_id, a.attempt, a.forgotten, 0
        FROM r JOIN step_attempts AS a ON a.run_id = r.run_id WHERE a.begun_seq > :after_seq
        UNION ALL
        SELECT a.seq, {SOURCE.ATTEMPT_FAILED}, a.step_id, a.attempt, a.forgotten, octet_length(a.error::text)
        FROM r JOIN step_attempts AS a ON a.run_id = r.run_id WHERE a.seq > :after_seq
    ) AS f
    ORDER BY f.seq, f.source DESC LIMIT :limit::bigint + 1
), sized AS MATERIALIZED (
    SELECT numbered.*, row_number() OVER w AS place, sum(bytes) OVER w - bytes AS before, sum(bytes) OVER w AS total,
        count(*) OVER () AS count
    FROM numbered WINDOW w AS (ORDER BY numbered.seq)
), page AS MATERIALIZED (
    SELECT * FROM sized WHERE place <= :limit AND (total <= :page_bytes::bigint OR place = 1)
)
SELECT r.run_id::text AS run_id, r.namespace, r.seq AS run_seq, r.status AS run_status, r.created_at, r.finished_at AS run_finished_at,
    r.status_text, r.progress, r.pause_requested, r.pause_reason, r.cancel_requested, r.state_at,
    p.seq, p.source, p.step_id, p.attempt, p.count > (SELECT count(*) FROM page) AS more,
    s.name, s.kind, s.status, s.wake_at, s.child_run_id::text AS child_run_id,
    CASE WHEN p.source >= {SOURCE.ATTEMPT_BEGUN} THEN a.started_at ELSE s.started_at END AS started_at,
    CASE WHEN p.source >= {SOURCE.ATTEMPT_BEGUN} THEN a.finished_at ELSE s.finished_at END AS finished_at,
    CASE WHEN p.source = {SOURCE.RESULT} THEN s.output END AS output, CASE WHEN p.source = {SOURCE.RESULT} THEN s.output_meta END AS output_meta,
    CASE p.source WHEN {SOURCE.RESULT} THEN s.error WHEN {SOURCE.ATTEMPT_FAILED} THEN a.error END AS error, a.retry_at,
    CASE WHEN p.source = {SOURCE.BEGUN} AND s.kind = {KIND.SLEEP} THEN (
        SELECT w.error FROM step_attempts AS w
        WHERE w.run_id = r.run_id AND w.step_id = :woken::text AND w.error ->> 'subject_id' = s.step_id ORDER BY w.seq LIMIT 1
    ) END AS first_wake
FROM r
LEFT JOIN page AS p ON true
LEFT JOIN steps AS s ON s.run_id = r.run_id AND s.step_id = p.step_id
LEFT JOIN step_attempts AS a ON p.source >= {SOURCE.ATTEMPT_BEGUN} AND a.run_id = r.run_id AND a.step_id = p.step_id AND a.forgotten = p.forgotten
    AND a.attempt = p.attempt
ORDER BY p.seq;

-- name: markers_of
-- The position and status of watched runs.
SELECT r.run_id::text AS run_id, r.namespace, r.seq AS run_seq, r.status AS run_status, r.created_at,
    r.finished_at AS run_finished_at, r.status_text, r.progress, r.pause_requested, r.pause_reason,
    r.cancel_requested_at IS NOT NULL AS cancel_requested,
    (SELECT s.finished_at FROM steps AS s WHERE s.run_id = r.run_id AND s.step_id = '$state') AS state_at
FROM runs AS r WHERE r.run_id = ANY (:run_ids::uuid[]);
