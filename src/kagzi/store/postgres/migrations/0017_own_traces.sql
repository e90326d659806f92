-- The first claim (its lease) of those that have a trace each, because the run was old or had many records by then; 0: there is none.
ALTER TABLE runs ADD COLUMN own_traces_from bigint NOT NULL DEFAULT 0;
