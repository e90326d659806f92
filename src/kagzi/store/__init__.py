"""Where runs are stored. `protocol/` is the whole contract; PostgreSQL and SQLite both implement it."""
