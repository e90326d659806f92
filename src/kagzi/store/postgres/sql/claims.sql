-- name: claim_runs
-- Lock and lease what is wanted: each group is a type, a set of versions and how many; locked rows are passed over.
-- History is read by the next statement: this one locks new rows but would read with an old snapshot.
-- Runs of namespaces that limit running ones are marked: unless their row is locked, the claim is taken back.
WITH groups AS MATERIALIZED (
    SELECT g.*,
        (SELECT array_agg(v.version) FROM unnest($8::int[], $9::text[]) AS v (n, version) WHERE v.n = g.n) AS versions,
        n.running_runs_limit AS run_limit
    FROM unnest($4::text[], $5::text[], $6::text[], $7::bigint[]) WITH ORDINALITY
        AS g (namespace, workflow_type, first_version, wanted, n)
    LEFT JOIN namespaces AS n ON n.namespace = g.namespace
), picked AS MATERIALIZED (
    SELECT groups.n, groups.run_limit IS NOT NULL AS limited, p.run_id,
        row_number() OVER (PARTITION BY groups.n ORDER BY p.priority DESC, p.ready_at, p.run_id) AS place
    FROM groups
    CROSS JOIN LATERAL (
        SELECT r.run_id, r.priority, r.ready_at FROM runs AS r
        WHERE r.namespace = groups.namespace AND r.workflow_type = groups.workflow_type AND r.ready_at IS NOT NULL
            AND (r.version IS NULL OR r.version = ANY (groups.versions))
            AND (r.deadline_at > $1::bigint) IS NOT FALSE
        ORDER BY r.priority DESC, r.ready_at, r.run_id
        LIMIT CASE
            WHEN groups.run_limit IS NULL THEN groups.wanted
            ELSE greatest(0, least(groups.wanted, groups.run_limit - (
                SELECT count(*) FROM runs AS c WHERE c.namespace = groups.namespace AND c.lease_until IS NOT NULL
            )))
        END
        FOR UPDATE SKIP LOCKED
    ) AS p
), taken AS (
    UPDATE runs AS r
    SET status = 2, lease = r.lease + 1, nonce = $2::bigint, lease_until = $3::bigint, worker_id = w.worker_id,
        version = coalesce(r.version, groups.first_version), ready_at = NULL, claimed_at = $1,
        started_at = coalesce(r.started_at, $1)
    FROM picked
    JOIN groups ON groups.n = picked.n
    JOIN unnest($10::int[], $11::text[], $12::bigint[], $13::bigint[]) AS w (n, worker_id, after, until)
        ON w.n = picked.n AND picked.place > w.after AND picked.place <= w.until
    WHERE r.run_id = picked.run_id
    RETURNING r.*, picked.n, picked.place, picked.limited
)
SELECT run_id::text AS run_id, namespace, lease, nonce, worker_id, workflow_id, workflow_type, version, attempt, labels,
    created_at, deadline_at, seq, cancel_requested_at, cancel_reason, parent_run_id::text AS parent_run_id, limited
FROM taken ORDER BY n, place;

-- name: first_pages
-- Input, context and the first page of history of claimed runs: whole steps until the bytes are used up, at least one.
SELECT given.n, p.* FROM unnest($1::uuid[]) WITH ORDINALITY AS given (run_id, n)
CROSS JOIN LATERAL (
    SELECT sized.*, sized.total - sized.bytes AS before FROM (
        SELECT s.*, sum(s.bytes) OVER (ORDER BY s.begun_seq, s.step_id) AS total,
            lead(s.begun_seq) OVER (ORDER BY s.begun_seq, s.step_id) IS NOT NULL AS more
        FROM (
            SELECT step_id, kind, status, begun_seq, attempt, seq, finished_at, output, output_meta, error, retry_at,
                wake_at, child_run_id::text AS child_run_id, details, details_meta,
                CASE WHEN kind >= 100 THEN 0 ELSE $2::bigint + coalesce(octet_length(output), 0) + octet_length(step_id)
                    + coalesce(octet_length(error::text), 0) + coalesce(octet_length(details), 0) END AS bytes
            FROM steps WHERE steps.run_id = given.run_id AND kind <> 102 AND begun_seq >= 0
            ORDER BY steps.begun_seq LIMIT $4::bigint
        ) AS s
    ) AS sized
) AS p
WHERE p.total <= $3::bigint OR p.before = 0
ORDER BY given.n, p.begun_seq;

-- name: next_page
-- A later page of the same, for the holder of the lease only: no row at all if somebody else holds the run.
SELECT r.run_id IS NOT NULL AS held, p.* FROM runs AS r
LEFT JOIN LATERAL (
    SELECT sized.*, sized.total - sized.bytes AS before FROM (
        SELECT s.*, sum(s.bytes) OVER (ORDER BY s.begun_seq) AS total,
            lead(s.begun_seq) OVER (ORDER BY s.begun_seq) IS NOT NULL AS more
        FROM (
            SELECT step_id, kind, status, begun_seq, attempt, seq, finished_at, output, output_meta, error, retry_at,
                wake_at, child_run_id::text AS child_run_id, details, details_meta,
                $6::bigint + coalesce(octet_length(output), 0) + octet_length(step_id)
                    + coalesce(octet_length(error::text), 0) + coalesce(octet_length(details), 0) AS bytes
            FROM steps WHERE steps.run_id = r.run_id AND kind < 100 AND begun_seq >= 0 AND steps.begun_seq > $5::bigint
            ORDER BY steps.begun_seq LIMIT $8::bigint
        ) AS s
    ) AS sized
) AS p ON p.total <= $7::bigint OR p.before = 0
WHERE r.run_id = $2::uuid AND r.namespace IS NOT DISTINCT FROM $1::text AND r.lease = $3::bigint AND r.nonce = $4::bigint AND r.status + 0 = 2
ORDER BY p.begun_seq;
