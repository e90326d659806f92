-- name: versions_of
-- What decides about new runs of these types. A type has few versions; of many, only the latest are read.
SELECT workflow_type, version, deprecated, is_default, schemas_digest, earlier_digest, schemas_at FROM (
    SELECT workflow_type, version, deprecated, is_default, first_seen_at, schemas_digest, earlier_digest, schemas_at, row_number() OVER (
        PARTITION BY workflow_type ORDER BY is_default DESC, first_seen_at DESC, version) AS place
    FROM workflow_versions
    WHERE namespace = :namespace AND workflow_type IN (SELECT value FROM json_each(:workflow_types)))
WHERE place <= :most_versions ORDER BY workflow_type, first_seen_at DESC, version;

-- name: part_type_and_version_served
-- See list_versions.
json_extract(each.value, '$[0]') AS workflow_type, json_extract(each.value, '$[1]') AS version

-- name: part_each_served
-- See list_versions.
json_each(w.served)

-- name: get_schemas
-- By digest.
SELECT digest, document FROM workflow_schemas
WHERE namespace = :namespace AND digest IN (SELECT value FROM json_each(:digests));
