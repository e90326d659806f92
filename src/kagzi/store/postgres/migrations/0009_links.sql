-- A link is in the namespace of both its ends: whoever looks for those who wait for a run looks in that run's namespace only.
ALTER TABLE child_links ADD COLUMN namespace text COLLATE "C";
UPDATE child_links AS l SET namespace = p.namespace FROM runs AS p WHERE p.run_id = l.parent_run_id;
DELETE FROM child_links WHERE namespace IS NULL;
ALTER TABLE child_links DROP CONSTRAINT child_links_pkey;
ALTER TABLE child_links ADD PRIMARY KEY (namespace, child_run_id, parent_run_id, parent_step_id);
