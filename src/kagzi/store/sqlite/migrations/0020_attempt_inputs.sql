-- What an attempt that failed was called with, for people; NULL if that is not recorded.
ALTER TABLE step_attempts ADD COLUMN input BLOB;
ALTER TABLE step_attempts ADD COLUMN input_meta TEXT;
