-- name: open_scheduled_runs
-- Runs of these schedules that have not ended, oldest first.
SELECT r.namespace, r.schedule_id, r.run_id, r.blocked_by IS NOT NULL AND r.status + 0 = {RUN.SLEEPING} AS waits,
       r.cancel_requested_at IS NOT NULL AS stops
FROM rows(:schedules) AS g (namespace text, schedule_id text)
CROSS JOIN runs AS r ON +r.namespace = g.namespace AND r.run_id IN (
    SELECT run_id FROM runs INDEXED BY runs_schedule_open
    WHERE namespace = g.namespace AND schedule_id = g.schedule_id AND finished_at IS NULL
    ORDER BY created_at DESC, run_id DESC LIMIT :limit)
ORDER BY r.created_at, r.run_id;
