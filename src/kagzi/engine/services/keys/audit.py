"""The audit log of administrators: entries for the transactions of their changes, and the list of entries.

The caller is set once, where a call is authenticated (`CALLER`), and read here: services do not pass it on.
"""

from collections.abc import Mapping
from contextvars import ContextVar

import msgspec

from ....core import limits
from ....core.access import ANYONE, Caller
from ....core.errors import InvalidArgument
from ....core.keys.audit import Action, AuditEntry
from ....core.pages.counting import Counted
from ....core.pages.cursor import Cursor
from ....core.providers import Clock, Ids
from ....core.times import LAST_TIME, Timestamp
from ....store.protocol import Store
from ...checks import requests as checks
from ..paging import Page, PageAsk, page_cursor, page_of, page_size, with_total

CALLER: ContextVar[Caller] = ContextVar("kagzi_caller", default=ANYONE)
"""The caller of the current request."""
_FORGOTTEN_AT_ONCE = 500


class Audit:
    def __init__(self, store: Store, *, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids

    def entry(
        self, action: Action, namespace: str, subject: str, details: Mapping[str, object] | None = None
    ) -> AuditEntry:
        """The entry for an action of the current caller, to be passed to the store method that does it."""
        now, caller = self._clock.now(), CALLER.get()
        return AuditEntry(
            audit_id=self._ids.run_id(now, namespace),
            at=now,
            key_id=caller.key_id,
            key_name=caller.name,
            action=action.value,
            namespace=namespace,
            subject=subject,
            details={key: _text(value) for key, value in (details or {}).items()},
        )

    async def list(
        self, namespace: str, page: PageAsk, *, since: Timestamp | None = None, until: Timestamp | None = None
    ) -> Page[AuditEntry]:
        """Newest first, from `since` (inclusive) to `until` (exclusive); of one namespace, or of all."""
        checks.name(namespace, "namespace_id")
        checks.timestamp(since, "since")
        checks.timestamp(until, "until")
        if page.count and (since is not None or until is not None):
            raise InvalidArgument(
                "include_total_count counts the whole list and cannot go with since or until. Leave one out.",
                field="include_total_count",
            )
        bound_to = msgspec.json.encode(("audit", namespace, since, until)).decode()
        cursor = page_cursor(page, bound_to)
        rows = await self._store.list_audit(
            namespace,
            since=0 if since is None else since,
            until=LAST_TIME if until is None else until,
            cursor=cursor,
            limit=page_size(page),
        )
        result = page_of(rows, cursor, bound_to, lambda one: Cursor(one.at, one.audit_id))
        return await with_total(result, page, self._store, Counted(rows="audit", namespace=namespace))

    async def forget(self, now: Timestamp) -> bool:
        """A chore."""
        return await self._store.forget_audit(now - limits.AUDIT_KEPT_US, _FORGOTTEN_AT_ONCE)


def _text(value: object) -> str:
    """Values as in the API: true, null, 3, {"a":1}; text without quotes."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text[: limits.AUDIT_DETAIL_CHARACTERS]
