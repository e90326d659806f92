"""Namespaces: their limits, their settings and their deletion."""

import asyncio
import math
from collections.abc import Callable, Collection, Mapping

import msgspec

from ...core import limits
from ...core.access import EVERY_NAMESPACE
from ...core.errors import AlreadyExists, InvalidArgument, NotFound, PreconditionFailed, Unavailable
from ...core.keys.audit import Action
from ...core.limits import Settings
from ...core.pages.counting import Counted
from ...core.pages.cursor import Cursor
from ...core.providers import Clock
from ...core.records import DEFAULT_NAMESPACE, NamespaceRecord
from ...core.states import ENDED, RunStatus
from ...store.protocol import Store
from ..checks import requests as checks
from .keys.audit import Audit
from .paging import Page, PageAsk, page_cursor, page_of, page_size, with_total

_REMEMBERED_S = 5.0
_REMEMBERED = 10_000
_COUNTED_LIMITS = {
    "open_runs_limit": checks.INT64_END,
    "running_runs_limit": checks.INT64_END,
    "stored_bytes_limit": checks.INT64_END,
    "sessions_limit": checks.INT32_END,
    "schedules_limit": checks.INT32_END,
}
"""The limits, and the end of the range of their fields in messages."""
_STARTS_PER_SECOND_MOST = 1_000_000.0
_BOUND_TO = "namespaces"


class Namespaces:
    """`on_deleted` is called when the deletion of a namespace begins."""

    def __init__(
        self, store: Store, settings: Settings, clock: Clock, on_deleted: Callable[[], None], audit: Audit
    ) -> None:
        self._audit = audit
        self._store = store
        self._clock = clock
        self._strict = settings.strict_namespaces
        self._known: dict[str, tuple[NamespaceRecord | None, float]] = {}
        self._on_deleted = on_deleted

    # --- checks of calls ----------------------------------------------------------------------------------------------

    async def check(self, namespace: str) -> None:
        """Raises InvalidArgument for an invalid name, and NotFound if it is being deleted or, with strict namespaces,
        unknown. Uses a cache of a few seconds; the store itself decides whether runs may be started."""
        _check_name(namespace, "namespace")
        record = await self._recent(namespace)
        if record is not None and record.deleting:
            raise _no_namespace(namespace)
        if record is None and self._strict:
            raise NotFound(
                f"namespace {namespace} not found. Create it first: this server runs with --strict-namespaces.",
                subject="namespace",
                subject_id=namespace,
            )

    async def admit(self, namespace: str) -> None:
        """Raises NotFound for a namespace that is being deleted. Any other name is allowed."""
        if len(namespace) <= limits.NAME_BYTES and namespace.isprintable():
            record = await self._recent(namespace)
            if record is not None and record.deleting:
                raise _no_namespace(namespace)

    async def _recent(self, namespace: str) -> NamespaceRecord | None:
        now = asyncio.get_running_loop().time()
        cached, until = self._known.get(namespace, (None, 0.0))
        if until > now:
            return cached
        try:
            record = await self._store.get_namespace(namespace)
        except Unavailable:
            if self._strict and cached is None:
                raise
            return cached  # the store will refuse the call, if necessary, once it is available
        if record is None and self._strict:
            return None  # not cached: it may be created at any moment
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[namespace] = (record, now + _REMEMBERED_S)
        return record

    # --- for administrators -------------------------------------------------------------------------------------------

    async def create(self, record: NamespaceRecord) -> NamespaceRecord:
        """Raises InvalidArgument, AlreadyExists."""
        _check(record)
        self._known.pop(record.namespace, None)
        now = self._clock.now()
        entry = self._audit.entry(Action.NAMESPACE_CREATE, record.namespace, record.namespace, _changes(record))
        created = msgspec.structs.replace(record, created_at=now)
        if await self._store.put_namespace(created, now, new=True, audit=entry):
            return await self.get(record.namespace)
        existing = await self._store.get_namespace(record.namespace)
        if existing is not None and existing.deleting:
            raise PreconditionFailed(
                f"namespace {record.namespace} is being deleted. Wait until it is gone, then create it.",
                subject="namespace",
                subject_id=record.namespace,
            )
        raise AlreadyExists(
            f"namespace {record.namespace} exists already. Update it instead.",
            subject="namespace",
            subject_id=record.namespace,
        )

    async def get(self, namespace: str) -> NamespaceRecord:
        """Includes namespaces that are being deleted. Raises NotFound."""
        checks.name(namespace, "namespace_id")
        record = await self._store.get_namespace(namespace)
        if record is None:
            raise _no_namespace(namespace)
        return record

    async def list(self, page: PageAsk) -> Page[NamespaceRecord]:
        """By name."""
        cursor = page_cursor(page, _BOUND_TO)
        rows = await self._store.list_namespaces(cursor, page_size(page))
        result = page_of(rows, cursor, _BOUND_TO, lambda record: Cursor(0, record.namespace))
        return await with_total(result, page, self._store, Counted(rows="namespaces"))

    async def update(self, record: NamespaceRecord, fields: Collection[str]) -> NamespaceRecord:
        """Changes only these fields. Creates the namespace if it was never used. Raises InvalidArgument, NotFound."""
        if not fields:
            raise InvalidArgument("fields is empty. Name those to change, such as limits.open_runs.", field="fields")
        _check(record)
        changes = {field: getattr(record, field) for field in fields}
        entry = self._audit.entry(Action.NAMESPACE_UPDATE, record.namespace, record.namespace, changes)
        updated = await self._store.update_namespace(record, fields, audit=entry)
        if updated is None and record.namespace == DEFAULT_NAMESPACE:
            await self._store.put_namespace(NamespaceRecord(namespace=DEFAULT_NAMESPACE), self._clock.now(), new=True)
            updated = await self._store.update_namespace(record, fields, audit=entry)
        self._known.pop(record.namespace, None)
        if updated is None:
            raise _no_namespace(record.namespace)
        return updated

    async def delete(self, namespace: str, *, confirm: str) -> None:
        """From now on the namespace is treated as if it did not exist; its rows are removed in the background. Raises
        InvalidArgument, NotFound, PreconditionFailed while something in it is open."""
        checks.name(namespace, "namespace_id")
        if namespace == DEFAULT_NAMESPACE:
            raise InvalidArgument(
                f"namespace {namespace} cannot be deleted. Delete its runs, or disable it.", field="namespace_id"
            )
        if confirm != namespace:
            raise InvalidArgument(
                f"confirm={confirm!r} is not the name of the namespace. Repeat it: all its runs are deleted.",
                field="confirm",
            )
        entry = self._audit.entry(Action.NAMESPACE_DELETE, namespace, namespace)
        deletion = await self._store.delete_namespace(namespace, self._clock.now(), limits.COUNT_CAP, audit=entry)
        self._known.pop(namespace, None)
        if deletion is None:
            raise _no_namespace(namespace)
        if not deletion.granted:
            raise _still_used(namespace, deletion.open_runs, deletion.schedules)
        self._on_deleted()


def _check_name(namespace: str, field: str) -> None:
    checks.name(namespace, field)
    if namespace == EVERY_NAMESPACE:
        raise InvalidArgument(
            f"{field}={namespace!r} means every namespace: none can be called that. Name one.", field=field
        )


def _changes(record: NamespaceRecord) -> dict[str, object]:
    """The fields of a new namespace that are set."""
    limits = {field: getattr(record, field) for field in (*_COUNTED_LIMITS, "starts_per_second_limit")}
    return {field: value for field, value in limits.items() if value is not None}


def _check(record: NamespaceRecord) -> None:
    _check_name(record.namespace, "namespace_id")
    for field, end in _COUNTED_LIMITS.items():
        value: int | None = getattr(record, field)
        if value is not None:
            checks.within(value, 0, end - 1, f"limits.{field.removesuffix('_limit')}")
    rate = record.starts_per_second_limit
    if rate is not None and not (math.isfinite(rate) and 0 < rate <= _STARTS_PER_SECOND_MOST):
        raise InvalidArgument(
            f"limits.starts_per_second={rate} must be greater than 0 and at most {_STARTS_PER_SECOND_MOST:g}. "
            "To stop all starts, disable the namespace.",
            field="limits.starts_per_second",
        )
    _check_retention(record.retention_seconds)


def _check_retention(seconds: Mapping[str, int]) -> None:
    known = sorted(status.value for status in ENDED)
    longest = limits.DURATION_MAX_US // 1_000_000
    for word, value in seconds.items():
        if word not in known:
            raise InvalidArgument(
                f"retention_seconds[{word!r}]: retention applies only to ended runs. Use one of: {', '.join(known)}.",
                field="retention_seconds",
            )
        checks.within(value, limits.RETENTION_MIN_S, longest, f"retention_seconds[{word}]")


def _no_namespace(namespace: str) -> NotFound:
    return NotFound(f"namespace {namespace} not found", subject="namespace", subject_id=namespace)


def _still_used(namespace: str, open_runs: int, schedules: int) -> PreconditionFailed:
    cap = limits.COUNT_CAP
    counts = [
        f"{count}{'+' if count >= cap else ''} {what if count == 1 else what + 's'}"
        for count, what in ((open_runs, "open run"), (schedules, "enabled schedule"))
        if count
    ]
    return PreconditionFailed(
        f"namespace {namespace} has {' and '.join(counts)}. "
        "Disable it, cancel the runs or let them end, delete or pause the schedules; then delete it.",
        subject="namespace",
        subject_id=namespace,
        metadata={"open_runs": str(open_runs), "schedules": str(schedules)},
    )


FORGETTABLE = tuple(status for status in RunStatus if status in ENDED)
