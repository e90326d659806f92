"""The writer's cache of the limits of workflow types."""

from ....core.workflow_types.queues import TypeLimits
from ...rows import read_limits
from ..connection.connection import Database


class Types:
    """All types that have limits. They are read once, since there is only one writer. A rollback clears the cache."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._limited: dict[tuple[str, str], TypeLimits] | None = None

    def forget_all(self) -> None:
        self._limited = None

    def limits(self, namespace: str, workflow_type: str) -> TypeLimits | None:
        """None: the type has no limits."""
        limited = self._limited
        if limited is None:
            limited = self._limited = self._read()
        return limited.get((namespace, workflow_type)) if limited else None

    def _read(self) -> dict[tuple[str, str], TypeLimits]:
        rows = self._database.records("all_type_limits")
        types = {(row["namespace"], row["workflow_type"]): read_limits(row) for row in rows}
        return {key: limits for key, limits in types.items() if limits.limiting}
