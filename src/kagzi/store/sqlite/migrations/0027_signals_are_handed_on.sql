-- What starts the next run if this one ends without having received the signal; NULL: nothing does.
ALTER TABLE signals ADD COLUMN start_request TEXT;
-- The run that got the signals that this one ended without having received.
ALTER TABLE runs ADD COLUMN handed_on_to TEXT;
