-- The build whose workers alone may claim the run, because it was adopted to it; NULL: any.
ALTER TABLE runs ADD COLUMN pinned_build text COLLATE "C";
