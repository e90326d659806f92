"""What an operator said about workflow types, as the writer remembers it, and their rows."""

from ....core.times import Timestamp
from ....core.workflow_types.queues import TypeLimits
from ...rows import read_limits
from ..connection.connection import Database
from ..write.text_validation import require_plain


class Types:
    """All types that have limits: the only writer reads them once. A rollback forgets them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._limited: dict[tuple[str, str], TypeLimits] | None = None

    def forget_all(self) -> None:
        self._limited = None

    def limits(self, namespace: str, workflow_type: str) -> TypeLimits | None:
        """None: nothing limits it."""
        limited = self._limited
        if limited is None:
            limited = self._limited = self._read()
        return limited.get((namespace, workflow_type)) if limited else None

    def _read(self) -> dict[tuple[str, str], TypeLimits]:
        rows = self._database.records("all_type_limits")
        found = {(row["namespace"], row["workflow_type"]): read_limits(row) for row in rows}
        return {key: limits for key, limits in found.items() if limits.limiting}

    def put(self, namespace: str, workflow_type: str, limits: TypeLimits, now: Timestamp) -> None:
        require_plain(namespace=namespace, workflow_type=workflow_type)
        self._limited = None
        self._database.run("ensure_namespace", (namespace, now))
        before = self._database.record("get_type_limits", (namespace, workflow_type))
        if before is not None and read_limits(before).starts_per_second_per_key != limits.starts_per_second_per_key:
            self._database.run("forget_key_rates", (namespace, workflow_type))
        given = {
            "namespace": namespace,
            "workflow_type": workflow_type,
            "paused": limits.paused,
            "max_running": limits.max_running,
            "max_running_per_key": limits.max_running_per_key,
            "starts_per_second": limits.starts_per_second,
            "starts_per_second_per_key": limits.starts_per_second_per_key,
            "when_full": limits.when_full,
        }
        self._database.run("put_type_limits", given)
