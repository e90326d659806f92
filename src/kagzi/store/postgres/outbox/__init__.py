"""A user's outbox: a table in a database that is not the store's."""
