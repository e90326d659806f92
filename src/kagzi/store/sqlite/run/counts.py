"""How long lists are."""

from ....core.pages.counting import Counted
from ..connection.connection import Database
from ..connection.connections import Connections


class ListCounts(Connections):
    """Keeps `store.protocol.CountVerbs`."""

    async def count_rows(self, what: Counted, cap: int) -> int:
        return await self._scan(what.namespace, _count_rows, what, cap)


def _count_rows(database: Database, what: Counted, cap: int) -> int:
    parameters = {
        "namespace": what.namespace,
        "key": what.key or None,
        "step_name": what.step_name or None,
        "status": None if what.status is None else what.status.value,
        "alive_since": what.alive_since,
        "cap": cap,
    }
    row = database.row(f"total_{what.rows}", parameters)
    return 0 if row is None else row[0]
