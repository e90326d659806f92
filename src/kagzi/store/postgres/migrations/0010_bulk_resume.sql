-- Paused runs can be resumed by filter, too.
ALTER TABLE bulk_operations DROP CONSTRAINT bulk_operations_action;
ALTER TABLE bulk_operations ADD CONSTRAINT bulk_operations_action CHECK (action IN ('cancel', 'retry', 'terminate', 'delete', 'resume'));
