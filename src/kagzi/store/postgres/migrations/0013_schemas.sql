-- What workers register about the types that they serve. 0001 says how times, codes and text are written.

-- Of the latest registration, and of the one before it that said something else: while a build replaces another one, both are
-- there. NULL: nothing was ever registered.
ALTER TABLE workflow_versions
    ADD COLUMN schemas_at bigint,
    ADD COLUMN schemas_digest text COLLATE "C",
    ADD COLUMN earlier_digest text COLLATE "C";

-- By what they say: all workers of a build register the same, and write it once.
CREATE TABLE workflow_schemas (
    added_at bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    document text NOT NULL,
    PRIMARY KEY (namespace, digest)
);
