-- name: part_named_key
-- One of the given keys.
key_id IN (SELECT value FROM json_each(:key_ids));
