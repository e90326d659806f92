-- A link is in the namespace of both its ends: whoever looks for those who wait for a run looks in that run's namespace only.
ALTER TABLE child_links RENAME TO child_links_of_0002;
CREATE TABLE child_links (
    namespace      TEXT NOT NULL,
    child_run_id   TEXT NOT NULL,
    parent_run_id  TEXT NOT NULL,
    parent_step_id TEXT NOT NULL,
    PRIMARY KEY (namespace, child_run_id, parent_run_id, parent_step_id)
) STRICT, WITHOUT ROWID;
INSERT INTO child_links (namespace, child_run_id, parent_run_id, parent_step_id)
SELECT p.namespace, l.child_run_id, l.parent_run_id, l.parent_step_id
FROM child_links_of_0002 AS l CROSS JOIN runs AS p ON p.run_id = l.parent_run_id;
DROP TABLE child_links_of_0002;
