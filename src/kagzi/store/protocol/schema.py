"""The schema of a store and its migrations."""

from typing import Protocol

import msgspec


class SchemaStatus(msgspec.Struct, frozen=True):
    current: int  # 0: empty database
    latest: int  # the version that this code expects
    pending: tuple[str, ...] = ()  # names of migrations to apply


class Migrator(Protocol):
    """Applies `migrations/NNNN_name.sql` in order, under a lock, and records the checksum of each."""

    async def status(self) -> SchemaStatus:
        """Raises SchemaMismatch for a newer schema or a changed checksum."""
        ...

    async def migrate(self) -> SchemaStatus: ...
