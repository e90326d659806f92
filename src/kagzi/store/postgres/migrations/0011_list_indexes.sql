-- Every run is written to these twice, when it starts and when it ends, and they cost a tenth of what that costs. Lists by type
-- and lists by version are merged from those of runs_type_version, which has both.
DROP INDEX runs_type;
DROP INDEX runs_version;
