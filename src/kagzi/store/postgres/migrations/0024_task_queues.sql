-- The task queue that the start of a run named, if it differs from its type; NULL: none. It has no effect.
ALTER TABLE runs ADD COLUMN task_queue text COLLATE "C";
