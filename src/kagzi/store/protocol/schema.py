"""How a store gets its tables."""

from typing import Protocol

import msgspec


class SchemaStatus(msgspec.Struct, frozen=True):
    current: int  # 0: empty database
    latest: int  # what this code knows
    pending: tuple[str, ...] = ()  # names of migrations to apply


class Migrator(Protocol):
    """Applies `migrations/NNNN_name.sql` in order, under a lock, remembering each one's checksum."""

    async def status(self) -> SchemaStatus:
        """Raises SchemaMismatch for a newer schema or a changed checksum."""
        ...

    async def migrate(self) -> SchemaStatus: ...
