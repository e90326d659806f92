-- name: count_schedules
-- Counted no further than the limit.
SELECT count(*) AS schedules FROM (SELECT 1 FROM schedules WHERE namespace = :namespace::text LIMIT :limit::bigint) AS counted;

-- name: insert_schedule
-- Nothing if the id is taken.
INSERT INTO schedules (
    namespace, schedule_id, workflow_type, enabled, paused_reason, next_at, due_at, last_fired_at, created_at, updated_at,
    revision, request_id, spec
)
VALUES (
    :namespace::text, :schedule_id::text, :workflow_type::text, :enabled::bool, :paused_reason::text, :next_at::bigint, :due_at::bigint, :last_fired_at::bigint, :created_at::bigint, :updated_at::bigint, :revision::bigint,
    :request_id::text, :spec::text::json
)
ON CONFLICT DO NOTHING
RETURNING *;

-- name: get_schedule
-- One schedule.
SELECT * FROM schedules WHERE namespace = :namespace::text AND schedule_id = :schedule_id::text;

-- name: replace_schedule
-- Only if nobody has changed it, and no time of it has come, since it was read.
UPDATE schedules
SET workflow_type = :workflow_type::text, enabled = :enabled::bool, paused_reason = :paused_reason::text, next_at = :next_at::bigint, due_at = :due_at::bigint,
    updated_at = :updated_at::bigint, revision = revision + 1, spec = :spec::text::json
WHERE namespace = :namespace::text AND schedule_id = :schedule_id::text AND revision = :read_revision::bigint AND next_at IS NOT DISTINCT FROM :read_next_at::bigint
RETURNING *;

-- name: list_schedules_older
-- A page of schedules, newest first.
SELECT * FROM schedules
WHERE namespace = :namespace::text AND (:workflow_type::text IS NULL OR workflow_type = :workflow_type)
    AND (:cursor_at::bigint IS NULL OR (created_at, schedule_id) < (:cursor_at, :cursor_id::text))
ORDER BY created_at DESC, schedule_id DESC
LIMIT :limit::bigint;

-- name: list_schedules_newer
-- The same towards the newer, nearest first: the reader turns the page around.
SELECT * FROM schedules
WHERE namespace = :namespace::text AND (:workflow_type::text IS NULL OR workflow_type = :workflow_type)
    AND (:cursor_at::bigint IS NULL OR (created_at, schedule_id) > (:cursor_at, :cursor_id::text))
ORDER BY created_at, schedule_id
LIMIT :limit::bigint;

-- name: delete_schedule
-- Its runs stay.
DELETE FROM schedules WHERE namespace = :namespace::text AND schedule_id = :schedule_id::text RETURNING 1;

-- name: delete_fires
-- What became of its times goes with it, so much at a time.
DELETE FROM schedule_fires WHERE (namespace, schedule_id, nominal_at, skipped) IN (
    SELECT namespace, schedule_id, nominal_at, skipped FROM schedule_fires
    WHERE namespace = :namespace::text AND schedule_id = :schedule_id::text LIMIT :limit::bigint
)
RETURNING 1;

-- name: forget_fires
-- Retention: the oldest, so many at a time.
DELETE FROM schedule_fires WHERE (namespace, schedule_id, nominal_at, skipped) IN (
    SELECT namespace, schedule_id, nominal_at, skipped FROM schedule_fires
    WHERE at < :before::bigint ORDER BY at LIMIT :limit::bigint
)
RETURNING 1;

-- name: list_fires_older
-- What became of a schedule's times, newest first; a run before the skip of the same time.
SELECT nominal_at, skipped, at, cause, run_id::text AS run_id, reason, skipped_until, count FROM schedule_fires
WHERE namespace = :namespace::text AND schedule_id = :schedule_id::text AND (:cursor_at::bigint IS NULL OR (nominal_at, NOT skipped) < (:cursor_at, :cursor_skipped::bool))
ORDER BY nominal_at DESC, skipped
LIMIT :limit::bigint;

-- name: list_fires_newer
-- The same towards the newer, nearest first.
SELECT nominal_at, skipped, at, cause, run_id::text AS run_id, reason, skipped_until, count FROM schedule_fires
WHERE namespace = :namespace::text AND schedule_id = :schedule_id::text AND (:cursor_at::bigint IS NULL OR (nominal_at, NOT skipped) > (:cursor_at, :cursor_skipped::bool))
ORDER BY nominal_at, skipped DESC
LIMIT :limit::bigint;

-- name: due_schedules
-- Those whose time has come, and when the next one does: always a row, so that one question is enough.
SELECT s.*, n.next_due_at
FROM (SELECT min(due_at) AS next_due_at FROM schedules WHERE due_at IS NOT NULL AND due_at > :now::bigint) AS n
LEFT JOIN (
    SELECT * FROM schedules WHERE due_at IS NOT NULL AND due_at <= :now ORDER BY due_at LIMIT :limit::bigint
) AS s ON true
ORDER BY s.due_at;

-- name: lock_schedules
-- In the order of their ids, so that two servers cannot wait for each other.
SELECT s.namespace, s.schedule_id, s.revision, s.next_at
FROM schedules AS s
JOIN unnest(:namespaces::text[], :schedule_ids::text[]) AS g (namespace, schedule_id)
    ON g.namespace = s.namespace AND g.schedule_id = s.schedule_id
ORDER BY s.namespace, s.schedule_id
FOR UPDATE OF s;

-- name: find_fires
-- Which of these nominal times have become runs.
SELECT f.namespace, f.schedule_id, f.nominal_at, f.skipped, f.at, f.cause, f.run_id::text AS run_id, f.reason, f.skipped_until,
    f.count
FROM unnest(:namespaces::text[], :schedule_ids::text[], :nominal_times::bigint[]) AS g (namespace, schedule_id, nominal_at)
JOIN schedule_fires AS f
    ON f.namespace = g.namespace AND f.schedule_id = g.schedule_id AND f.nominal_at = g.nominal_at AND NOT f.skipped;

-- name: find_requests
-- Runs that were started before by the same requests.
SELECT r.namespace, r.request_id, r.run_id::text AS run_id
FROM unnest(:namespaces::text[], :request_ids::text[]) AS g (namespace, request_id)
JOIN runs AS r ON r.namespace = g.namespace AND r.request_id = g.request_id;

-- name: open_scheduled_runs
-- Runs of these schedules that have not ended, oldest first.
SELECT r.namespace, r.schedule_id, r.run_id::text AS run_id, r.blocked_by IS NOT NULL AND r.status + 0 = {RUN.SLEEPING} AS waits,
    r.cancel_requested_at IS NOT NULL AS stops
FROM unnest(:namespaces::text[], :schedule_ids::text[]) AS g (namespace, schedule_id)
CROSS JOIN LATERAL (
    SELECT * FROM runs
    WHERE namespace = g.namespace AND schedule_id = g.schedule_id AND finished_at IS NULL
    ORDER BY created_at DESC, run_id DESC LIMIT :limit::bigint
) AS r
ORDER BY r.created_at, r.run_id;

-- name: record_fires
-- A time that is skipped again keeps the last reason.
INSERT INTO schedule_fires (namespace, schedule_id, nominal_at, skipped, at, cause, run_id, reason, skipped_until, count)
SELECT g.namespace, g.schedule_id, g.nominal_at, g.run_id IS NULL, g.at, g.cause, g.run_id, g.reason, g.skipped_until, g.count
FROM rows(:fires) AS g (
    namespace text, schedule_id text, nominal_at bigint, at bigint, cause text, run_id uuid, reason text,
    skipped_until bigint, count bigint
)
ON CONFLICT (namespace, schedule_id, nominal_at, skipped) DO UPDATE
SET at = excluded.at, cause = excluded.cause, reason = excluded.reason, skipped_until = excluded.skipped_until,
    count = excluded.count;

-- name: move_schedules
-- On to the next time; those that were only triggered stay where they are.
UPDATE schedules AS s
SET next_at = CASE WHEN g.moves THEN g.next_at ELSE s.next_at END, due_at = CASE WHEN g.moves THEN g.due_at ELSE s.due_at END,
    last_fired_at = coalesce(g.fired_at, s.last_fired_at)
FROM rows(:moves) AS g (namespace text, schedule_id text, moves bool, next_at bigint, due_at bigint, fired_at bigint)
WHERE s.namespace = g.namespace AND s.schedule_id = g.schedule_id;
