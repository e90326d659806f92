-- Sleeping runs of a type, in list order. Many runs sleep, and many of a type have ended: neither runs_status nor
-- runs_type_version finds those that are both without reading the others. Runs that never sleep are not in it.
CREATE INDEX runs_asleep_by_type ON runs (namespace, workflow_type, created_at, run_id) WHERE created_at >= 0 AND status = 3;
