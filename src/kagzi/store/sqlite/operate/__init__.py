"""The other verbs on SQLite: namespaces, workers, schedules, retention, transfers, statistics."""
