"""The store on SQLite: one file (or memory), one writer. `store.py` is the entry point; the SQL is in `sql/`, the
tables in `migrations/`."""

from .migrate import SqliteMigrator
from .store import SqliteStore

__all__ = ["SqliteMigrator", "SqliteStore"]
