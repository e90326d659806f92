-- name: create_namespaces
-- A namespace comes into being with its first start or worker.
INSERT INTO namespaces (namespace, created_at)
SELECT namespace, $2::bigint FROM unnest($1::text[]) AS given (namespace) ORDER BY namespace
ON CONFLICT (namespace) DO NOTHING;

-- name: get_namespace
-- A namespace with its limits.
SELECT * FROM namespaces WHERE namespace = $1::text;

-- name: put_namespace
-- Insert or replace, limits and all; the time of its making stays.
INSERT INTO namespaces (
    namespace, enabled, created_at, open_runs_limit, running_runs_limit, starts_per_second_limit, stored_bytes_limit,
    sessions_limit, schedules_limit
)
VALUES (
    $1::text, $2::bool, $3::bigint, $4::bigint, $5::bigint, $6::double precision, $7::bigint, $8::bigint, $9::bigint
)
ON CONFLICT (namespace) DO UPDATE
SET enabled = excluded.enabled, open_runs_limit = excluded.open_runs_limit,
    running_runs_limit = excluded.running_runs_limit, starts_per_second_limit = excluded.starts_per_second_limit,
    stored_bytes_limit = excluded.stored_bytes_limit, sessions_limit = excluded.sessions_limit,
    schedules_limit = excluded.schedules_limit;
