-- name: note_worker_events
-- What happened to workers, in this order: JSON rows of (namespace, worker_id, kind, detail).
INSERT INTO worker_events (namespace, worker_id, at, kind, detail)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), :now, json_extract(value, '$[2]'), json_extract(value, '$[3]')
FROM json_each(:rows) ORDER BY key;

-- name: trim_worker_events
-- The latest of a worker are kept.
DELETE FROM worker_events WHERE number IN (
    SELECT number FROM worker_events WHERE namespace = :namespace AND worker_id = :worker_id
    ORDER BY at DESC, number DESC LIMIT -1 OFFSET :keep);

-- name: list_older_worker_events
-- Latest first.
SELECT worker_id, at, number, kind, detail FROM worker_events
WHERE namespace = :namespace AND (:worker_id IS NULL OR worker_id = :worker_id) AND (at, number) < (:at, :number)
ORDER BY at DESC, number DESC LIMIT :limit;

-- name: list_newer_worker_events
-- The page before; turned round by the caller.
SELECT worker_id, at, number, kind, detail FROM worker_events
WHERE namespace = :namespace AND (:worker_id IS NULL OR worker_id = :worker_id) AND (at, number) > (:at, :number)
ORDER BY at, number LIMIT :limit;

-- name: forget_worker_events
-- Old ones, some at a time.
DELETE FROM worker_events WHERE number IN (SELECT number FROM worker_events WHERE at < ? ORDER BY at LIMIT ?);
