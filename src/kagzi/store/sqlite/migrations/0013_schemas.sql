-- What workers register about the types that they serve.

-- Of the latest registration, and of the one before it that said something else: while a build replaces another one, both
-- are there. NULL: nothing was ever registered.
ALTER TABLE workflow_versions ADD COLUMN schemas_at INTEGER;
ALTER TABLE workflow_versions ADD COLUMN schemas_digest TEXT;
ALTER TABLE workflow_versions ADD COLUMN earlier_digest TEXT;

-- By what they say: all workers of a build register the same, and write it once.
CREATE TABLE workflow_schemas (
    namespace TEXT NOT NULL,
    digest    TEXT NOT NULL,
    document  TEXT NOT NULL,
    added_at  INTEGER NOT NULL,
    PRIMARY KEY (namespace, digest)
) STRICT, WITHOUT ROWID;
