"""Kagzi on PostgreSQL."""

from .bus import PostgresBus
from .migrate import PostgresMigrator
from .store import PostgresStore

__all__ = ["PostgresBus", "PostgresMigrator", "PostgresStore"]
