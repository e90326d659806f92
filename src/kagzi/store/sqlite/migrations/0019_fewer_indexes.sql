-- Each of these was a page that every start wrote. Lists by type and lists by version are merged from those of
-- runs_by_type_version, which has both; what a worker holds is found among what is held.
DROP INDEX runs_by_type;
DROP INDEX runs_by_version;
DROP INDEX runs_worker;
