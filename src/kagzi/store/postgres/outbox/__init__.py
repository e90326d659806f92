"""The outbox of a user: a table in a database that is not the store's."""
