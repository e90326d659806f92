-- name: parts_of_table
-- The number of partitions of a table; 0: not partitioned.
SELECT count(*)::int AS parts FROM pg_inherits AS p WHERE p.inhparent = to_regclass(:table::text);

-- name: other_servers
-- Other connected servers of ours: their prepared statements refer to the old tables.
SELECT count(*)::int AS servers FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'kagzi' AND pid <> pg_backend_pid();

-- name: partition_commands
-- The commands that turn a table into a hash-partitioned one, in order. Definitions are read before the table is
-- renamed, so that they name the new one; indexes come last, since inserts are faster without them. Hashing run_id
-- keeps the rows of a run together.
WITH whole AS (
    SELECT c.oid, c.relname AS name, c.relname || '_whole' AS aside, array_to_string(c.reloptions, ', ') AS options
    FROM pg_class AS c WHERE c.oid = to_regclass(:table::text)
), commands (place, command) AS (
    SELECT 1, format('ALTER TABLE %I RENAME TO %I', name, aside) FROM whole
    UNION ALL
    SELECT 2, format('CREATE TABLE %I (LIKE %I INCLUDING ALL EXCLUDING INDEXES) PARTITION BY HASH (run_id)', name, aside)
    FROM whole
    UNION ALL
    SELECT 3, format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS %s, REMAINDER %s)', name || '_' || n, name, :parts, n)
        || coalesce(' WITH (' || options || ')', '')
    FROM whole, generate_series(0, :parts::int - 1) AS n
    UNION ALL
    SELECT 4, format('INSERT INTO %I SELECT * FROM %I', name, aside) FROM whole
    UNION ALL
    SELECT 5, format('DROP TABLE %I', aside) FROM whole
    UNION ALL
    SELECT 6, format('ALTER TABLE %I ADD CONSTRAINT %I %s', name, k.conname, pg_get_constraintdef(k.oid))
    FROM whole JOIN pg_constraint AS k ON k.conrelid = whole.oid AND k.contype IN ('p', 'u')
    UNION ALL
    SELECT 7, pg_get_indexdef(i.indexrelid)
    FROM whole JOIN pg_index AS i ON i.indrelid = whole.oid
    WHERE NOT EXISTS (SELECT 1 FROM pg_constraint AS k WHERE k.conindid = i.indexrelid)
    UNION ALL
    SELECT 8, format('ANALYZE %I', name) FROM whole
)
SELECT command FROM commands ORDER BY place, command;
