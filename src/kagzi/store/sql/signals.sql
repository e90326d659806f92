-- name: unread_by_name
-- How many unread signals of each name a run has.
SELECT s.name, count(*) AS count FROM runs AS r
JOIN signals AS s /* INDEXED BY signals_waiting */ ON s.run_id = r.run_id AND s.step_id IS NULL
WHERE r.run_id = :run_id::uuid AND r.namespace = :namespace::text
GROUP BY s.name ORDER BY s.name LIMIT :limit::bigint;
