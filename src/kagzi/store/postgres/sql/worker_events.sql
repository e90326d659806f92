-- name: note_worker_events
-- What happened to workers, in this order.
INSERT INTO worker_events (namespace, worker_id, at, kind, detail)
SELECT e.namespace, e.worker_id, $5::bigint, e.kind, e.detail
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY
    AS e (namespace, worker_id, kind, detail, place)
ORDER BY e.place;

-- name: trim_worker_events
-- The latest of a worker are kept. What the statement before wrote is seen here.
DELETE FROM worker_events AS w
USING (
    SELECT at, number FROM worker_events WHERE namespace = $1::text AND worker_id = $2::text
    ORDER BY at DESC, number DESC OFFSET $3::bigint
) AS old
WHERE w.namespace = $1 AND w.worker_id = $2 AND w.at = old.at AND w.number = old.number;

-- name: list_worker_events_older
-- A page of events, latest first.
SELECT worker_id, at, number, kind, detail FROM worker_events
WHERE namespace = $1::text AND ($2::text IS NULL OR worker_id = $2)
    AND ($3::bigint IS NULL OR (at, number) < ($3, $4::bigint))
ORDER BY at DESC, number DESC
LIMIT $5::bigint;

-- name: list_worker_events_newer
-- The same towards the later, nearest first: the reader turns the page around.
SELECT worker_id, at, number, kind, detail FROM worker_events
WHERE namespace = $1::text AND ($2::text IS NULL OR worker_id = $2)
    AND ($3::bigint IS NULL OR (at, number) > ($3, $4::bigint))
ORDER BY at, number
LIMIT $5::bigint;

-- name: forget_worker_events
-- Old ones, some at a time.
DELETE FROM worker_events AS w
USING (SELECT namespace, worker_id, at, number FROM worker_events WHERE at < $1::bigint ORDER BY at LIMIT $2::bigint) AS old
WHERE w.namespace = old.namespace AND w.worker_id = old.worker_id AND w.at = old.at AND w.number = old.number
RETURNING w.number;
