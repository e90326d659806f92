-- name: part_named_key
-- One of the given keys.
key_id = ANY (:key_ids::text[]);
