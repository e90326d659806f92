"""The harness: where runs are kept. `protocol.py` is the whole contract; PostgreSQL and SQLite each keep it."""
