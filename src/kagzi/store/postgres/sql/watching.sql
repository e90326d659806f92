-- name: events_after
-- One number, one event: begins and results of steps beyond a number, with those of failed attempts. They are found first and
-- measured; then, for the page, read. The run's row comes with them, from the same moment.
WITH r AS MATERIALIZED (
    SELECT run_id, namespace, seq, status, created_at, finished_at, status_text, progress, pause_requested, pause_reason,
        cancel_requested_at IS NOT NULL AS cancel_requested
    FROM runs WHERE run_id = $2::uuid AND namespace IS NOT DISTINCT FROM $1::text
), found AS MATERIALIZED (
    SELECT DISTINCT ON (f.seq) f.* FROM (
        SELECT s.begun_seq AS seq, 1 AS source, s.step_id, s.attempt, 0::bigint AS forgotten, 0 AS bytes
        FROM r JOIN steps AS s ON s.run_id = r.run_id
        WHERE s.begun_seq >= 0 AND s.begun_seq > $3::bigint AND s.kind < 100 AND s.seq <> s.begun_seq
        UNION ALL
        SELECT s.seq, 2, s.step_id, s.attempt, 0, coalesce(octet_length(s.output), 0) + coalesce(octet_length(s.error::text), 0)
        FROM r JOIN steps AS s ON s.run_id = r.run_id
        WHERE s.seq > $3 AND s.kind < 100 AND s.status IN (3, 4)
        UNION ALL
        SELECT a.begun_seq, 3, a.step_id, a.attempt, a.forgotten, 0
        FROM r JOIN step_attempts AS a ON a.run_id = r.run_id WHERE a.begun_seq > $3
        UNION ALL
        SELECT a.seq, 4, a.step_id, a.attempt, a.forgotten, octet_length(a.error::text)
        FROM r JOIN step_attempts AS a ON a.run_id = r.run_id WHERE a.seq > $3
    ) AS f
    ORDER BY f.seq, f.source DESC LIMIT $4::bigint + 1
), sized AS MATERIALIZED (
    SELECT found.*, row_number() OVER w AS place, sum(bytes) OVER w - bytes AS before, sum(bytes) OVER w AS total,
        count(*) OVER () AS count
    FROM found WINDOW w AS (ORDER BY found.seq)
), page AS MATERIALIZED (
    SELECT * FROM sized WHERE place <= $4 AND (total <= $5::bigint OR place = 1)
)
SELECT r.run_id::text AS run_id, r.namespace, r.seq AS run_seq, r.status AS run_status, r.created_at, r.finished_at AS run_finished_at,
    r.status_text, r.progress, r.pause_requested, r.pause_reason, r.cancel_requested,
    p.seq, p.source, p.step_id, p.attempt, p.count > (SELECT count(*) FROM page) AS more,
    s.name, s.kind, s.status, s.wake_at, s.child_run_id::text AS child_run_id,
    CASE WHEN p.source > 2 THEN a.started_at ELSE s.started_at END AS started_at,
    CASE WHEN p.source > 2 THEN a.finished_at ELSE s.finished_at END AS finished_at,
    CASE WHEN p.source = 2 THEN s.output END AS output, CASE WHEN p.source = 2 THEN s.output_meta END AS output_meta,
    CASE p.source WHEN 2 THEN s.error WHEN 4 THEN a.error END AS error, a.retry_at
FROM r
LEFT JOIN page AS p ON true
LEFT JOIN steps AS s ON s.run_id = r.run_id AND s.step_id = p.step_id
LEFT JOIN step_attempts AS a ON p.source > 2 AND a.run_id = r.run_id AND a.step_id = p.step_id AND a.forgotten = p.forgotten
    AND a.attempt = p.attempt
ORDER BY p.seq;

-- name: marks_of
-- How far runs are that somebody watches.
SELECT r.run_id::text AS run_id, r.namespace, r.seq AS run_seq, r.status AS run_status, r.created_at,
    r.finished_at AS run_finished_at, r.status_text, r.progress, r.pause_requested, r.pause_reason,
    r.cancel_requested_at IS NOT NULL AS cancel_requested
FROM runs AS r WHERE r.run_id = ANY ($1::uuid[]);
