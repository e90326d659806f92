-- name: take_outbox
-- SKIP LOCKED: servers share the work of an outbox; the locks of a server that dies end with its connection. Every row
-- can be read, whatever it contains: one that could not would block all others.
SELECT id, namespace, workflow_type, workflow_id, attempts, octet_length(request) AS request_bytes,
    CASE WHEN octet_length(request) <= $2 THEN request ELSE '' END AS request,
    CASE
        WHEN created_at BETWEEN clock_timestamp() - interval '1000 years' AND clock_timestamp()
        THEN CAST(extract(epoch FROM clock_timestamp() - created_at) * 1000000 AS bigint)
        ELSE 0
    END AS age_us
FROM kagzi_outbox
WHERE refused_at IS NULL AND due_at <= clock_timestamp()
ORDER BY due_at, id
LIMIT $1
FOR UPDATE SKIP LOCKED

-- name: delete_outbox
-- Rows that have become runs.
DELETE FROM kagzi_outbox WHERE id = ANY($1::bigint[])

-- name: keep_outbox
-- Rows that have not: retry later, or wait for an operator.
UPDATE kagzi_outbox AS o
SET attempts = least(o.attempts, 1000000) + 1, error = f.error,
    due_at = clock_timestamp() + make_interval(secs => f.delay_s),
    refused_at = CASE WHEN f.refused THEN clock_timestamp() END
FROM unnest($1::bigint[], $2::text[], $3::float8[], $4::boolean[]) AS f (id, error, delay_s, refused)
WHERE o.id = f.id

-- name: count_outbox
-- For metrics. Counting stops at 10,000 each, so that it stays cheap.
SELECT
    (SELECT count(*) FROM (SELECT 1 FROM kagzi_outbox WHERE refused_at IS NULL LIMIT 10000) AS w) AS waiting,
    (SELECT count(*) FROM (SELECT 1 FROM kagzi_outbox WHERE refused_at IS NOT NULL LIMIT 10000) AS r) AS refused

-- name: list_outbox
-- For operators: refused rows first.
SELECT id, namespace, workflow_type, workflow_id, created_at, due_at, attempts, error, refused_at
FROM kagzi_outbox
WHERE NOT $1 OR refused_at IS NOT NULL
ORDER BY refused_at IS NULL, id
LIMIT $2

-- name: retry_outbox
-- An operator has removed the reason.
UPDATE kagzi_outbox SET refused_at = NULL, due_at = clock_timestamp()
WHERE refused_at IS NOT NULL AND (id = ANY($1::bigint[]) OR $2)
RETURNING id

-- name: drop_outbox
-- Deletes refused rows. Rows that wait are left alone.
DELETE FROM kagzi_outbox WHERE refused_at IS NOT NULL AND (id = ANY($1::bigint[]) OR $2) RETURNING id
