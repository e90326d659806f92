-- name: part_fire
-- What happened at a nominal time.
f.nominal_at, f.skipped, f.at, f.cause, f.run_id::text AS run_id, f.reason, f.skipped_until, f.count

-- name: count_schedules
-- Counting stops at the limit.
SELECT count(*) AS schedules FROM (
    SELECT 1 FROM schedules WHERE namespace = :namespace::text LIMIT :limit::bigint
) AS counted;

-- name: insert_schedule
-- No row if the id is taken.
INSERT INTO schedules (
    namespace, schedule_id, workflow_type, enabled, paused_reason, next_at, due_at, last_fired_at, created_at,
    updated_at, revision, request_id, spec
)
VALUES (
    :namespace::text, :schedule_id::text, :workflow_type::text, :enabled::bool, :paused_reason::text, :next_at::bigint,
    :due_at::bigint, :last_fired_at::bigint, :created_at::bigint, :updated_at::bigint, :revision::bigint,
    :request_id::text, :spec::text::json
)
ON CONFLICT DO NOTHING
RETURNING *;

-- name: get_schedule
-- One schedule.
SELECT * FROM schedules WHERE namespace = :namespace::text AND schedule_id = :schedule_id::text;

-- name: replace_schedule
-- Only if it was not changed, and did not fire, since it was read.
UPDATE schedules
SET workflow_type = :workflow_type::text, enabled = :enabled::bool, paused_reason = :paused_reason::text,
    next_at = :next_at::bigint, due_at = :due_at::bigint, updated_at = :updated_at::bigint, revision = revision + 1,
    spec = :spec::text::json
WHERE namespace = :namespace::text AND schedule_id = :schedule_id::text AND revision = :read_revision::bigint
    AND next_at IS NOT DISTINCT FROM :read_next_at::bigint
RETURNING *;

-- name: list_schedules
-- Newest first.
SELECT * FROM schedules /* INDEXED BY schedules_by_created */
WHERE namespace = :namespace::text AND (:workflow_type::text IS NULL OR workflow_type = :workflow_type)
    AND (created_at, schedule_id) {<|>} (:cursor_at::bigint, :cursor_id::text)
ORDER BY created_at {DESC|ASC}, schedule_id {DESC|ASC} LIMIT :limit::bigint;

-- name: delete_schedule
-- Its runs stay.
DELETE FROM schedules WHERE namespace = :namespace::text AND schedule_id = :schedule_id::text RETURNING 1;

-- name: delete_fires
-- The fires of a deleted schedule, some rows at a time.
DELETE FROM schedule_fires WHERE (namespace, schedule_id, nominal_at, skipped) IN (
    SELECT namespace, schedule_id, nominal_at, skipped FROM schedule_fires
    WHERE namespace = :namespace::text AND schedule_id = :schedule_id::text LIMIT :limit::bigint
)
RETURNING 1;

-- name: forget_fires
-- Retention: the oldest, some rows at a time.
DELETE FROM schedule_fires WHERE (namespace, schedule_id, nominal_at, skipped) IN (
    SELECT namespace, schedule_id, nominal_at, skipped FROM schedule_fires /* INDEXED BY schedule_fires_by_at */
    WHERE at < :before::bigint ORDER BY at LIMIT :limit::bigint
)
RETURNING 1;

-- name: list_fires
-- The fires of a schedule, newest first; a run before the skip of the same time.
SELECT {fire} FROM schedule_fires AS f
WHERE namespace = :namespace::text AND schedule_id = :schedule_id::text
    AND (nominal_at, NOT skipped) {<|>} (:cursor_at::bigint, :cursor_is_run::bool)
ORDER BY nominal_at {DESC|ASC}, skipped {ASC|DESC} LIMIT :limit::bigint;

-- name: due_schedules
-- The due schedules, and when the next one is due. Always returns a row, so that one statement is enough.
SELECT due.*, n.next_due_at
FROM (
    SELECT min(due_at) AS next_due_at FROM schedules /* INDEXED BY schedules_by_due */
    WHERE due_at IS NOT NULL AND due_at > :now::bigint
) AS n
LEFT JOIN (
    SELECT * FROM schedules /* INDEXED BY schedules_by_due */
    WHERE due_at IS NOT NULL AND due_at <= :now ORDER BY due_at LIMIT :limit::bigint
) AS due ON true
ORDER BY due.due_at;

-- name: lock_schedules
-- In the order of their ids, to avoid deadlocks between servers.
SELECT s.namespace, s.schedule_id, s.revision, s.next_at
FROM rows(:schedules) AS g (namespace text, schedule_id text)
JOIN schedules AS s ON s.namespace = g.namespace AND s.schedule_id = g.schedule_id
ORDER BY s.namespace, s.schedule_id
FOR UPDATE OF s;

-- name: fires_at
-- Which of these nominal times have started runs.
SELECT f.namespace, f.schedule_id, {fire}
FROM rows(:nominal_times) AS g (namespace text, schedule_id text, nominal_at bigint)
JOIN schedule_fires AS f
    ON f.namespace = g.namespace AND f.schedule_id = g.schedule_id AND f.nominal_at = g.nominal_at AND NOT f.skipped;

-- name: runs_of_requests
-- Runs that the same requests started earlier.
SELECT r.namespace, r.request_id, r.run_id::text AS run_id
FROM rows(:requests) AS g (namespace text, request_id text)
JOIN runs AS r ON r.namespace = g.namespace AND r.request_id = g.request_id;

-- name: record_fires
-- A time that is skipped again keeps the last reason.
INSERT INTO schedule_fires (
    namespace, schedule_id, nominal_at, skipped, at, cause, run_id, reason, skipped_until, count
)
SELECT g.namespace, g.schedule_id, g.nominal_at, g.run_id IS NULL, g.at, g.cause, g.run_id, g.reason, g.skipped_until,
    g.count
FROM rows(:fires) AS g (
    namespace text, schedule_id text, nominal_at bigint, at bigint, cause text, run_id uuid, reason text,
    skipped_until bigint, count bigint
)
WHERE true
ON CONFLICT (namespace, schedule_id, nominal_at, skipped) DO UPDATE
SET at = excluded.at, cause = excluded.cause, reason = excluded.reason, skipped_until = excluded.skipped_until,
    count = excluded.count;

-- name: move_schedules
-- Sets the next time; schedules that were only triggered keep theirs.
UPDATE schedules AS s
SET next_at = CASE WHEN g.moves THEN g.next_at ELSE s.next_at END,
    due_at = CASE WHEN g.moves THEN g.due_at ELSE s.due_at END,
    last_fired_at = coalesce(g.fired_at, s.last_fired_at)
FROM rows(:moves) AS g (namespace text, schedule_id text, moves bool, next_at bigint, due_at bigint, fired_at bigint)
WHERE s.namespace = g.namespace AND s.schedule_id = g.schedule_id;
