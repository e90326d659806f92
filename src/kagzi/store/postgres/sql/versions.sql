-- name: versions_of
-- What decides about new runs of these types. A type has few versions; of many, only the latest are read.
SELECT t.workflow_type, v.version, v.deprecated, v.is_default, v.schemas_digest, v.earlier_digest, v.schemas_at
FROM unnest(:workflow_types::text[]) AS t (workflow_type)
CROSS JOIN LATERAL (
    SELECT version, deprecated, is_default, first_seen_at, schemas_digest, earlier_digest, schemas_at FROM workflow_versions
    WHERE namespace = :namespace::text AND workflow_type = t.workflow_type
    ORDER BY is_default DESC, first_seen_at DESC, version LIMIT :most_versions::bigint
) AS v
ORDER BY t.workflow_type, v.first_seen_at DESC, v.version;

-- name: part_type_and_version_served
-- See list_versions.
each ->> 'workflow_type' AS workflow_type, each ->> 'version' AS version

-- name: part_each_served
-- See list_versions.
LATERAL json_array_elements(w.served)

-- name: get_schemas
-- By digest.
SELECT digest, document FROM workflow_schemas WHERE namespace = :namespace::text AND digest = ANY (:digests::text[]);
