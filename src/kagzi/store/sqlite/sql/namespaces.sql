-- name: get_namespace
-- A tenant and its limits.
SELECT namespace, enabled, created_at, open_runs_limit, running_runs_limit, starts_per_second_limit, stored_bytes_limit,
       sessions_limit, schedules_limit
FROM namespaces WHERE namespace = ?;

-- name: ensure_namespace
-- It comes into being with its first start or worker.
INSERT INTO namespaces (namespace, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING;

-- name: put_namespace
-- Insert or replace, limits and all; the time of creation stays.
INSERT INTO namespaces (namespace, enabled, created_at, open_runs_limit, running_runs_limit, starts_per_second_limit,
                        stored_bytes_limit, sessions_limit, schedules_limit)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (namespace) DO UPDATE SET enabled = excluded.enabled, open_runs_limit = excluded.open_runs_limit,
    running_runs_limit = excluded.running_runs_limit, starts_per_second_limit = excluded.starts_per_second_limit,
    stored_bytes_limit = excluded.stored_bytes_limit, sessions_limit = excluded.sessions_limit,
    schedules_limit = excluded.schedules_limit;
