-- name: grant_deletion
-- From now on it accepts nothing new, and its rows may be deleted.
UPDATE namespaces SET deleting_at = coalesce(deleting_at, :now), enabled = 0 WHERE namespace = :namespace;

-- name: remove
-- Some rows that belonged to a namespace, in the order of their key.
DELETE FROM {table} WHERE namespace = :namespace AND {column} <= coalesce(
    (SELECT {column} FROM {table} WHERE namespace = :namespace ORDER BY {column} LIMIT 1 OFFSET :limit),
    (SELECT max({column}) FROM {table} WHERE namespace = :namespace))
RETURNING 1;

-- name: part_being_purged
-- Its rows are being deleted: a namespace is only marked when nothing is open in it.
deleting_at IS NOT NULL

-- name: part_bytes_of_run
-- What a run stores: the payloads of its history and signals, and errors.
coalesce((SELECT sum(coalesce(length(s.input), 0) + coalesce(length(s.output), 0) + coalesce(length(s.details), 0)
                     + coalesce(length(CAST(s.error AS BLOB)), 0)) FROM steps AS s WHERE s.run_id = oldest.run_id), 0)
+ coalesce((SELECT sum(coalesce(length(a.input), 0)) FROM step_attempts AS a WHERE a.run_id = oldest.run_id), 0)
+ coalesce((SELECT sum(f.bytes) FROM forgotten_steps AS f WHERE f.run_id = oldest.run_id), 0)
+ coalesce((SELECT sum(length(g.payload) + coalesce(length(CAST(g.start_request AS BLOB)), 0)) FROM signals AS g WHERE g.run_id = oldest.run_id), 0)

-- name: note_start
-- When a namespace may start its next run.
UPDATE namespaces SET next_start_at = ? WHERE namespace = ?;
