-- name: part_named_key
-- One of those that are named.
key_id = ANY (:key_ids::text[]);
