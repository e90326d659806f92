-- name: part_schedule
-- The columns of a schedule, in the order in which they are read.
namespace, schedule_id, spec, enabled, paused_reason, next_at, due_at, last_fired_at, created_at, updated_at, revision, request_id

-- name: part_fire
-- Likewise of a fire.
nominal_at, at, cause, run_id, reason, skipped_until, count

-- name: count_schedules
-- Counted no further than the limit.
SELECT count(*) FROM (SELECT 1 FROM schedules WHERE namespace = ? LIMIT ?);

-- name: insert_schedule
-- The id is known to be free.
INSERT INTO schedules (namespace, schedule_id, workflow_type, enabled, paused_reason, next_at, due_at, last_fired_at, created_at,
                       updated_at, revision, request_id, spec)
VALUES (:namespace, :schedule_id, :workflow_type, :enabled, :paused_reason, :next_at, :due_at, :last_fired_at, :created_at,
        :updated_at, :revision, :request_id, :spec);

-- name: get_schedule
-- One schedule.
SELECT {schedule} FROM schedules WHERE namespace = ? AND schedule_id = ?;

-- name: replace_schedule
-- Only if nobody has changed it, and no time of it has come, since it was read.
UPDATE schedules SET workflow_type = :workflow_type, enabled = :enabled, paused_reason = :paused_reason, next_at = :next_at,
                     due_at = :due_at, updated_at = :updated_at, revision = revision + 1, spec = :spec
WHERE namespace = :namespace AND schedule_id = :schedule_id AND revision = :was_revision AND next_at IS :was_next_at;

-- name: list_schedules_older
-- A page of schedules, newest first.
SELECT {schedule} FROM schedules INDEXED BY schedules_by_created
WHERE namespace = :namespace AND (:workflow_type IS NULL OR workflow_type = :workflow_type)
  AND (created_at, schedule_id) < (coalesce(:at, 9223372036854775807), coalesce(:id, ''))
ORDER BY created_at DESC, schedule_id DESC LIMIT :limit;

-- name: list_schedules_newer
-- The same towards the newer, nearest first: the reader turns the page around.
SELECT {schedule} FROM schedules INDEXED BY schedules_by_created
WHERE namespace = :namespace AND (:workflow_type IS NULL OR workflow_type = :workflow_type)
  AND (created_at, schedule_id) > (:at, :id)
ORDER BY created_at, schedule_id LIMIT :limit;

-- name: delete_schedule
-- Its runs stay.
DELETE FROM schedules WHERE namespace = ? AND schedule_id = ?;

-- name: delete_fires
-- What became of its times goes with it, so much at a time.
DELETE FROM schedule_fires WHERE (namespace, schedule_id, nominal_at, skipped) IN (
    SELECT namespace, schedule_id, nominal_at, skipped FROM schedule_fires WHERE namespace = ? AND schedule_id = ? LIMIT ?);

-- name: forget_fires
-- Retention: the oldest, so many at a time.
DELETE FROM schedule_fires WHERE (namespace, schedule_id, nominal_at, skipped) IN (
    SELECT namespace, schedule_id, nominal_at, skipped FROM schedule_fires INDEXED BY schedule_fires_by_at
    WHERE at < ? ORDER BY at LIMIT ?);

-- name: list_fires_older
-- What became of a schedule's times, newest first; a run before the skip of the same time.
SELECT {fire} FROM schedule_fires
WHERE namespace = :namespace AND schedule_id = :schedule_id
  AND (:at IS NULL OR nominal_at < :at OR (nominal_at = :at AND skipped > :skipped))
ORDER BY nominal_at DESC, skipped LIMIT :limit;

-- name: list_fires_newer
-- The same towards the newer, nearest first.
SELECT {fire} FROM schedule_fires
WHERE namespace = :namespace AND schedule_id = :schedule_id AND nominal_at >= :at AND (nominal_at > :at OR skipped < :skipped)
ORDER BY nominal_at, skipped DESC LIMIT :limit;

-- name: due_schedules
-- Those whose time has come.
SELECT {schedule} FROM schedules INDEXED BY schedules_by_due WHERE due_at <= ? ORDER BY due_at LIMIT ?;

-- name: next_due_schedule
-- When the next one does.
SELECT min(due_at) FROM schedules INDEXED BY schedules_by_due WHERE due_at > ?;

-- name: schedule_cursor
-- Where a schedule stands.
SELECT revision, next_at FROM schedules WHERE namespace = ? AND schedule_id = ?;

-- name: find_fires
-- Which of these nominal times have become runs.
SELECT {fire} FROM schedule_fires
WHERE namespace = ? AND schedule_id = ? AND nominal_at IN (SELECT value FROM json_each(?)) AND skipped = 0;

-- name: find_requests
-- Runs that were started before by the same requests.
SELECT request_id, run_id FROM runs WHERE namespace = ? AND request_id IN (SELECT value FROM json_each(?));

-- name: open_scheduled_runs
-- Runs of a schedule that have not ended, newest first.
SELECT run_id, blocked_by IS NOT NULL AND status + 0 = {RUN.SLEEPING}, cancel_requested_at IS NOT NULL
FROM runs INDEXED BY runs_schedule_open
WHERE namespace = ? AND schedule_id = ? AND finished_at IS NULL ORDER BY created_at DESC, run_id DESC LIMIT ?;

-- name: record_fire
-- A time that is skipped again keeps the last reason.
INSERT INTO schedule_fires (namespace, schedule_id, nominal_at, skipped, at, cause, run_id, reason, skipped_until, count)
VALUES (:namespace, :schedule_id, :nominal_at, :run_id IS NULL, :at, :cause, :run_id, :reason, :skipped_until, :count)
ON CONFLICT (namespace, schedule_id, nominal_at, skipped) DO UPDATE
SET at = excluded.at, cause = excluded.cause, reason = excluded.reason, skipped_until = excluded.skipped_until,
    count = excluded.count;

-- name: move_schedule
-- On to the next time; one that was only triggered stays where it is.
UPDATE schedules SET next_at = CASE WHEN :moves THEN :next_at ELSE next_at END,
                     due_at = CASE WHEN :moves THEN :due_at ELSE due_at END,
                     last_fired_at = coalesce(:fired_at, last_fired_at)
WHERE namespace = :namespace AND schedule_id = :schedule_id;
