-- name: abandon_step
-- A branch that lost: its waits are gone. The seq is the race's; it is no result.
UPDATE steps SET status = 5, seq = :seq, retry_at = NULL, finished_at = :now
WHERE run_id = :run_id AND step_id IN (SELECT value FROM json_each(:losers)) AND status IN (1, 2) AND kind < 100
RETURNING kind;

-- name: set_status
-- For people; the last value wins.
UPDATE runs SET status_text = ?, progress = ? WHERE run_id = ?;

-- name: beat_step
-- How far a long step is.
UPDATE steps SET details = :details, details_meta = :details_meta
WHERE run_id = :run_id AND step_id = :step_id AND kind = 1 AND status = 2;
