-- name: note_worker_events
-- What happened to workers, in this order.
INSERT INTO worker_events (namespace, worker_id, at, kind, detail)
SELECT e.namespace, e.worker_id, :now::bigint, e.kind, e.detail
FROM unnest(:namespaces::text[], :worker_ids::text[], :kinds::text[], :details::text[]) WITH ORDINALITY
    AS e (namespace, worker_id, kind, detail, place)
ORDER BY e.place;

-- name: trim_worker_events
-- The latest of a worker are kept. What the statement before wrote is seen here.
DELETE FROM worker_events AS w
USING (
    SELECT at, number FROM worker_events WHERE namespace = :namespace::text AND worker_id = :worker_id::text
    ORDER BY at DESC, number DESC OFFSET :most_events::bigint
) AS old
WHERE w.namespace = :namespace AND w.worker_id = :worker_id AND w.at = old.at AND w.number = old.number;

-- name: list_worker_events_older
-- A page of events, latest first.
SELECT worker_id, at, number, kind, detail FROM worker_events
WHERE namespace = :namespace::text AND (:worker_id::text IS NULL OR worker_id = :worker_id)
    AND (:cursor_at::bigint IS NULL OR (at, number) < (:cursor_at, :cursor_number::bigint))
ORDER BY at DESC, number DESC
LIMIT :limit::bigint;

-- name: list_worker_events_newer
-- The same towards the later, nearest first: the reader turns the page around.
SELECT worker_id, at, number, kind, detail FROM worker_events
WHERE namespace = :namespace::text AND (:worker_id::text IS NULL OR worker_id = :worker_id)
    AND (:cursor_at::bigint IS NULL OR (at, number) > (:cursor_at, :cursor_number::bigint))
ORDER BY at, number
LIMIT :limit::bigint;

-- name: forget_worker_events
-- Old ones, some at a time.
DELETE FROM worker_events AS w
USING (SELECT namespace, worker_id, at, number FROM worker_events WHERE at < :before::bigint ORDER BY at LIMIT :limit::bigint) AS old
WHERE w.namespace = old.namespace AND w.worker_id = old.worker_id AND w.at = old.at AND w.number = old.number
RETURNING w.number;
