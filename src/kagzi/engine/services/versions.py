"""Chooses the version of a new run, and manages versions."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ...core import limits
from ...core.errors import InvalidArgument, ServerUnavailable, Unavailable, not_found
from ...core.keys.audit import Action
from ...core.outages import database_down, database_words
from ...core.pages.counting import Counted
from ...core.pages.cursor import Cursor
from ...core.providers import Clock
from ...core.records import Rows, Served
from ...core.times import Timestamp
from ...core.workflow_types.versions import (
    VersionChange,
    VersionMark,
    VersionRecord,
    best_first,
    default_version,
    version_for_start,
)
from ...store.protocol import Store, TypeKey
from ..checks import requests as checks
from ..commit.journal import OUTAGE_LIMIT_S
from ..commit.outages import Outages, backoff_s
from ..commit.wakeups import Wakeups
from .keys.audit import Audit
from .paging import Page, PageAsk, page_cursor, page_of, page_size, with_total

REMEMBERED_S = 1.0  # how long a server may miss a change by another one if the notification is lost
ALONE_REMEMBERED_S = 60.0  # no other server can change anything
ASK_TIMEOUT_S = 5.0
_REMEMBERED = 10_000
_ACTIONS: Mapping[VersionChange, Action] = {
    "default": Action.VERSION_DEFAULT,
    "no_default": Action.VERSION_NO_DEFAULT,
    "deprecate": Action.VERSION_DEPRECATE,
    "restore": Action.VERSION_RESTORE,
}


class _Known(NamedTuple):
    markers: Sequence[VersionMark]
    schemas: Mapping[str, tuple[str, ...]]
    until: float


class Versions:
    """`wakeups`: notifies other servers of types whose versions changed here.

    `alive_since` returns since when a worker must have reported to count as online.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        outages: Outages,
        wakeups: Wakeups,
        alone: bool,
        alive_since: Callable[[Timestamp], Timestamp],
        audit: Audit,
    ) -> None:
        self._audit = audit
        self._store = store
        self._clock = clock
        self._outages = outages
        self._stopped = asyncio.Event()
        self._remembered_s = ALONE_REMEMBERED_S if alone else REMEMBERED_S
        self._alive_since = alive_since
        self._known: dict[TypeKey, _Known] = {}
        self._loading: dict[TypeKey, asyncio.Task[Sequence[VersionMark]]] = {}
        self._wakeups = wakeups

    # --- new runs -----------------------------------------------------------------------------------------------------

    async def pin(self, key: TypeKey, requested: str) -> str:
        """The version of a run that is about to start; empty if its first worker decides. Raises PreconditionFailed for
        a deprecated one, Unavailable. Reads the store at a limited rate for each type, however many runs start."""
        known = self.pin_known(key, requested)
        return version_for_start(key.workflow_type, requested, await self._load(key)) if known is None else known

    def pin_known(self, key: TypeKey, requested: str) -> str | None:
        """As `pin`, without a read: None if one is needed. Raises PreconditionFailed."""
        known = self._known.get(key)
        if known is None or known.until <= asyncio.get_running_loop().time():
            return None
        return version_for_start(key.workflow_type, requested, known.markers)

    async def markers(self, key: TypeKey) -> Sequence[VersionMark]:
        """The known versions of a type."""
        known = self._known.get(key)
        if known is None or known.until <= asyncio.get_running_loop().time():
            return await self._load(key)
        return known.markers

    def schemas_known(self, key: TypeKey, version: str) -> tuple[str, ...] | None:
        """Digests of the valid schemas of a version, as of the last read: newer ones may have been registered since.
        None: a read is needed, see `schemas`. Thread-safe."""
        known = self._known.get(key)
        return None if known is None else known.schemas.get(version, ())

    async def schemas(self, key: TypeKey, version: str) -> tuple[str, ...]:
        """As `schemas_known`, reading the store at a limited rate for each type."""
        return self._schemas_of(await self.markers(key)).get(version, ())

    def _schemas_of(self, markers: Iterable[VersionMark]) -> dict[str, tuple[str, ...]]:
        now = self._clock.now()
        return {mark.version: mark.schemas.in_force(now) for mark in markers}

    async def _load(self, key: TypeKey) -> Sequence[VersionMark]:
        """Concurrent callers share one read."""
        loading = self._loading.get(key)
        if loading is None:
            loading = self._loading[key] = asyncio.get_running_loop().create_task(self._ask(key))
            loading.add_done_callback(lambda task: self._loaded(key, task))
        return await asyncio.shield(loading)

    async def _ask(self, key: TypeKey) -> Sequence[VersionMark]:
        """An unavailable store delays a start for a while, as in the journal, instead of refusing it."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + OUTAGE_LIMIT_S
        failures = 0
        while True:
            try:
                async with asyncio.timeout(ASK_TIMEOUT_S):
                    markers = await self._store.versions_of(key.namespace, (key.workflow_type,))
            except (Unavailable, TimeoutError) as error:
                self._outages.seen(error)
                failures += 1
                if loop.time() >= give_up_at:
                    raise database_down(database_words(error)) from error
                await self._pause(backoff_s(failures))
            else:
                return markers

    async def _pause(self, pause_s: float) -> None:
        """Raises ServerUnavailable if the engine stops meanwhile."""
        try:
            async with asyncio.timeout(pause_s):
                await self._stopped.wait()
        except TimeoutError:
            return
        raise ServerUnavailable("the server stopped before this was written. Try again.")

    def stop(self) -> None:
        """Callers that wait for an unavailable store get an error."""
        self._stopped.set()

    def _loaded(self, key: TypeKey, task: "asyncio.Task[Sequence[VersionMark]]") -> None:
        failed = task.cancelled() or task.exception() is not None
        if self._loading.get(key) is not task:
            return  # something changed during the read: only those who waited for it get the result
        del self._loading[key]
        if failed:
            return
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        markers = task.result()
        until = asyncio.get_running_loop().time() + self._remembered_s
        self._known[key] = _Known(markers, self._schemas_of(markers), until)

    # --- changes ------------------------------------------------------------------------------------------------------

    def forget(self, key: TypeKey) -> None:
        """Something changed here or on another server."""
        self._known.pop(key, None)
        self._loading.pop(key, None)

    def forget_all(self) -> None:
        """Notifications of other servers may have been lost."""
        self._known.clear()
        self._loading.clear()

    def registered(self, namespace: str, served: Iterable[Served]) -> None:
        """A worker serves these, and some are new: notifies all servers."""
        for workflow_type in {pair.workflow_type for pair in served}:
            self._changed(TypeKey(namespace, workflow_type))

    def _changed(self, key: TypeKey) -> None:
        self.forget(key)
        self._wakeups.versions_changed(key)

    async def set_default(self, namespace: str, workflow_type: str, version: str) -> VersionRecord:
        """Empty: unsets the default, so that the highest version is the default again. Returns the default. Raises
        NotFound, PreconditionFailed."""
        change: VersionChange = "default" if version else "no_default"
        markers = await self._change(namespace, workflow_type, version, change)
        return await self._get(namespace, workflow_type, version or default_version(markers) or markers[0].version)

    async def deprecate(self, namespace: str, workflow_type: str, version: str, *, undo: bool) -> VersionRecord:
        """Deprecated: no new runs; existing ones finish. Raises NotFound, PreconditionFailed."""
        checks.name(version, "version")
        await self._change(namespace, workflow_type, version, "restore" if undo else "deprecate")
        return await self._get(namespace, workflow_type, version)

    async def _change(
        self, namespace: str, workflow_type: str, version: str, change: VersionChange
    ) -> Sequence[VersionMark]:
        checks.name(namespace, "namespace")
        checks.name(workflow_type, "workflow_type")
        checks.optional_name(version, "version")
        entry = self._audit.entry(_ACTIONS[change], namespace, workflow_type, {"version": version})
        try:
            return await self._store.change_version(namespace, workflow_type, version, change, audit=entry)
        finally:
            self._changed(TypeKey(namespace, workflow_type))

    # --- reading ------------------------------------------------------------------------------------------------------

    async def list(self, namespace: str, workflow_type: str, page: PageAsk) -> Page[VersionRecord]:
        """The most recently added first; of one type, or of all."""
        checks.name(namespace, "namespace")
        checks.optional_name(workflow_type, "workflow_type")
        bound_to = msgspec.json.encode(("versions", namespace, workflow_type)).decode()
        cursor = page_cursor(page, bound_to)
        if cursor is not None:
            _check_place(cursor)
        rows = await self._store.list_versions(
            namespace,
            workflow_type=workflow_type or None,
            version=None,
            alive_since=self._alive_since(self._clock.now()),
            cursor=cursor,
            limit=page_size(page),
            count_cap=limits.VERSION_OPEN_RUNS,
        )
        records = await self._with_defaults(namespace, rows.rows)
        result = page_of(Rows(records, rows.has_more), cursor, bound_to, _place)
        what = Counted(rows="versions", namespace=namespace, key=workflow_type)
        return await with_total(result, page, self._store, what)

    async def _get(self, namespace: str, workflow_type: str, version: str) -> VersionRecord:
        rows = await self._store.list_versions(
            namespace,
            workflow_type=workflow_type,
            version=version,
            alive_since=self._alive_since(self._clock.now()),
            cursor=None,
            limit=1,
            count_cap=limits.VERSION_OPEN_RUNS,
        )
        for record in await self._with_defaults(namespace, rows.rows):
            return record
        raise not_found("version", f"{version} of {workflow_type}")

    async def _with_defaults(self, namespace: str, records: Sequence[VersionRecord]) -> tuple[VersionRecord, ...]:
        types = sorted({record.workflow_type for record in records})
        markers = await self._store.versions_of(namespace, types) if types else ()
        defaults = {
            workflow_type: default_version(mark for mark in markers if mark.workflow_type == workflow_type)
            for workflow_type in types
        }
        return tuple(
            msgspec.structs.replace(record, is_default=defaults[record.workflow_type] == record.version)
            for record in records
        )


def versions_by_type(served: Iterable[Served]) -> dict[str, tuple[str, ...]]:
    """The preferred version first."""
    by_type: dict[str, list[str]] = {}
    for pair in served:
        by_type.setdefault(pair.workflow_type, []).append(pair.version)
    return {workflow_type: best_first(versions) for workflow_type, versions in by_type.items()}


def _place(record: VersionRecord) -> Cursor:
    return Cursor(record.first_seen_at, msgspec.json.encode((record.workflow_type, record.version)).decode())


def _check_place(cursor: Cursor) -> None:
    try:
        names = msgspec.json.decode(cursor.id, type=tuple[str, str])
    except msgspec.MsgspecError:
        raise InvalidArgument(
            "page_token does not belong to this list. Begin with the first page.", field="page_token"
        ) from None
    for name in names:
        checks.name(name, "page_token")
