-- The build that all workers of a version have. When it changes, runs that wait for a signal are replayed once, in the
-- order of lists: code_build is the build that they are replayed with, and the others are where that continues (NULL: it is done).
ALTER TABLE workflow_versions ADD COLUMN code_build text COLLATE "C";
ALTER TABLE workflow_versions ADD COLUMN replay_at bigint;
ALTER TABLE workflow_versions ADD COLUMN replay_run_id text COLLATE "C";
CREATE INDEX workflow_versions_replayed ON workflow_versions (replay_at) WHERE replay_at >= 0;
