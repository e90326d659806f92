-- name: part_named_key
-- One of those that are named.
key_id IN (SELECT value FROM json_each(:key_ids));
