"""The store on PostgreSQL."""

from .connection.bus import PostgresBus
from .migrate import PostgresMigrator
from .store import PostgresStore

__all__ = ["PostgresBus", "PostgresMigrator", "PostgresStore"]
