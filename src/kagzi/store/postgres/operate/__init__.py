"""The other verbs on PostgreSQL: namespaces, workers, schedules, retention, transfers, statistics."""
