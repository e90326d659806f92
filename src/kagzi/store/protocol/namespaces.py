"""For whom runs are executed."""

from typing import Protocol

from ...core.records import NamespaceRecord
from ...core.times import Timestamp


class NamespaceVerbs(Protocol):
    """Tenants, with their limits."""

    async def get_namespace(self, namespace: str) -> NamespaceRecord | None: ...

    async def put_namespace(self, record: NamespaceRecord, now: Timestamp) -> None:
        """Insert or replace, limits and all."""
        ...
