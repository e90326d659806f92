"""Workers: registration, heartbeats, draining and leaving."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from ...core import limits
from ...core.checks.refused_requests import error_of
from ...core.errors import InvalidArgument, not_found
from ...core.ids import is_uuid
from ...core.keys.audit import Action, AuditEntry
from ...core.pages.counting import Counted
from ...core.pages.cursor import Cursor
from ...core.providers import Clock, Ids
from ...core.records import RunLease, Served, WorkerRecord
from ...core.run.outcomes import Refused
from ...core.states import WorkerStatus
from ...core.text.plurals import counted
from ...core.times import US_PER_S, Timestamp
from ...core.workers import Diagnostic, WorkerEvent, with_liveness
from ...core.workflow_types.schemas import NO_TYPE_SCHEMAS, TypeSchemas
from ...store.protocol import RemoteNotice, Store
from ..background.diagnostics_log import DiagnosticsLog
from ..background.new_builds import NewBuilds
from ..background.step_logs import StepLogs
from ..checks import requests as checks
from ..checks.bounds import truncate_text
from ..commit.dispatcher import Dispatcher
from ..commit.wakeups import Wakeups
from ..matching.heartbeats import Heartbeats
from ..matching.lease_times import LeaseTimes
from ..matching.leases import Leases
from ..matching.liveness import Liveness
from ..matching.ports import HeartbeatAnswer
from .keys.audit import Audit
from .namespaces import Namespaces
from .paging import Page, PageAsk, page_cursor, page_of, page_size, with_total
from .versions import Versions

logger = logging.getLogger("kagzi.engine")

_REMEMBERED_S = 5.0
_REMEMBERED = 10_000
_SWEPT = 500
_NUMBER_DIGITS = 18
BY_OPERATOR = "an operator asked for it"
"""Why a worker drains, as shown in its events."""


class ConnectedWorker(Protocol):
    """The session of a worker that is connected to this server."""

    @property
    def silent_s(self) -> float: ...

    @property
    def active_count(self) -> int: ...

    def drain(self) -> None: ...

    def deregistered(self) -> None: ...


class Workers:
    """`sessions`: the connected workers, by namespace and id."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        ids: Ids,
        lease_times: LeaseTimes,
        leases: Leases,
        heartbeats: Heartbeats,
        namespaces: Namespaces,
        versions: Versions,
        liveness: Liveness,
        sessions: Mapping[tuple[str, str], ConnectedWorker],
        dispatcher: Dispatcher,
        wakeups: Wakeups,
        audit: Audit,
    ) -> None:
        self._audit = audit
        self._store = store
        self._clock = clock
        self._ids = ids
        self._lease_times = lease_times
        self._leases = leases
        self._heartbeats = heartbeats
        self._namespaces = namespaces
        self._versions = versions
        self._liveness = liveness
        self._diagnostics = DiagnosticsLog(clock)
        self.step_logs = StepLogs(store)
        self._known: dict[tuple[str, str], tuple[WorkerRecord, float]] = {}
        self._sessions = sessions
        self._dispatcher = dispatcher
        self._wakeups = wakeups
        self.new_builds = NewBuilds(store, clock=clock, liveness=liveness, dispatcher=dispatcher)

    async def register(
        self, worker: WorkerRecord, schemas: Mapping[Served, TypeSchemas] = NO_TYPE_SCHEMAS
    ) -> WorkerRecord:
        """Inserts or updates the worker, with the `schemas` of what it serves. Generates a worker_id if it has none. A
        process that was told to drain is returned as DRAINING. Diverged runs are offered to builds that have not tried
        them.

        Raises InvalidArgument, NotFound, Unavailable."""
        now = self._clock.now()
        worker = msgspec.structs.replace(
            worker,
            worker_id=worker.worker_id or self._ids.token(),
            status=WorkerStatus.ONLINE,
            registered_at=now,
            last_heartbeat_at=now,
        )
        checks.worker(worker)
        checks.type_schemas(schemas)
        await self._namespaces.check(worker.namespace)
        registration = await self._store.register_worker(worker, now, schemas)
        if isinstance(registration, Refused):
            raise error_of(registration.error)
        if registration.draining:
            worker = msgspec.structs.replace(worker, status=WorkerStatus.DRAINING)
        if registration.new_versions:
            self._versions.registered(worker.namespace, worker.served)
        self._heartbeats.joined((worker.namespace, worker.worker_id), worker.active_count)
        self._remember(worker)
        effects = await self._store.resume_diverged(worker.namespace, worker.served, worker.build_id, now)
        self._dispatcher.dispatch(effects)
        self.new_builds.changed()
        return worker

    async def heartbeat(
        self,
        namespace: str,
        worker_id: str,
        *,
        active_count: int,
        completed_delta: int,
        failed_delta: int,
        leased: Sequence[RunLease],
        diagnostics: Sequence[Diagnostic] = (),
    ) -> HeartbeatAnswer:
        checks.name(namespace, "namespace")
        checks.name(worker_id, "worker_id")
        checks.leases(leased)
        for field, value in (
            ("active_count", active_count),
            ("completed_delta", completed_delta),
            ("failed_delta", failed_delta),
        ):
            checks.within(value, 0, checks.INT32_END - 1, field)
        worker = await self.known(namespace, worker_id)
        if worker is None or worker.status is WorkerStatus.OFFLINE:
            return HeartbeatAnswer(accepted=False)
        self._heartbeats.note((namespace, worker_id), active_count, completed_delta, failed_delta)
        if diagnostics:
            await self.note_diagnostics(namespace, worker_id, diagnostics)
        mine = [item for item in leased if item.run.namespace == namespace and is_uuid(item.run.run_id)]
        known = set(mine)
        strange = tuple(item for item in leased if item not in known)
        renewal = await self._leases.renew(mine) if mine else None
        return HeartbeatAnswer(
            accepted=True,
            should_drain=worker.status is WorkerStatus.DRAINING,
            lost=strange if renewal is None else strange + renewal.lost,
            cancel_requested=() if renewal is None else tuple(run for run, _ in renewal.cancel_requested),
        )

    async def deregister(self, namespace: str, worker_id: str, *, drain: bool) -> None:
        """`drain`: it gets no more runs and finishes those it holds. Otherwise its runs are PENDING at once."""
        if drain:
            await self._drain(namespace, worker_id, "at its own request", None)
            return
        checks.name(namespace, "namespace")
        checks.name(worker_id, "worker_id")
        known = await self.leave(namespace, worker_id)
        if (session := self._sessions.get((namespace, worker_id))) is not None:
            session.deregistered()
        if not known:
            raise not_found("worker", worker_id)

    async def drain(self, namespace: str, worker_id: str, why: str) -> WorkerRecord:
        """It gets no more runs, finishes what it can within its grace period, hands back the rest and leaves, whichever
        server it is connected to. Returns its current record. Raises NotFound."""
        entry = self._audit.entry(Action.WORKER_DRAIN, namespace, worker_id)
        return await self._drain(namespace, worker_id, why, entry)

    async def _drain(self, namespace: str, worker_id: str, why: str, audit: AuditEntry | None) -> WorkerRecord:
        checks.name(namespace, "namespace")
        checks.name(worker_id, "worker_id")
        self.forget(namespace, worker_id)
        now = self._clock.now()
        worker = await self._store.drain_worker(namespace, worker_id, why, now, audit=audit)
        if worker is None:
            raise not_found("worker", worker_id)
        if worker.status is WorkerStatus.DRAINING:
            self.new_builds.changed()
            if (session := self._sessions.get((namespace, worker_id))) is not None:
                session.drain()
            else:
                self._wakeups.notify(RemoteNotice(worker_id, namespace, "", "drain"))
        return with_liveness(worker, self._liveness.alive_since(now))

    async def mark_lost(self, namespace: str, worker_id: str, unheard_since: Timestamp) -> None:
        """Its session broke at that time, and it did not reconnect here. Unless it reported elsewhere, it is lost."""
        lost = await self._store.expire_workers(unheard_since, self._clock.now(), 1, (namespace, worker_id))
        if lost:
            self.forget(namespace, worker_id)
            self.new_builds.changed()
            logger.warning("worker %s was lost: its session broke and it did not come back", worker_id)

    async def died(self, workers: Sequence[tuple[str, str]]) -> None:
        """The processes of these workers (namespace and id) are known to have ended: others take over their runs
        without waiting for the leases to expire. Each of these runs counts one lost lease, as usual."""
        for namespace, worker_id in workers:
            self.forget(namespace, worker_id)
            leased = await self._store.worker_died(namespace, worker_id, self._clock.now())
            if leased:
                logger.warning(
                    "worker %s died with its process; other workers take over its runs: %d", worker_id, leased
                )

    async def sweep(self, now: Timestamp) -> bool:
        """A chore: marks workers as lost that no server has heard from. Returns whether there may be more. After a
        start or an outage, all workers get time to report."""
        if not self._lease_times.may_end(now):
            return False
        lost = await self._store.expire_workers(self._liveness.alive_since(now), now, _SWEPT)
        if lost:
            logger.warning("lost %s: no more heartbeats", counted(lost, "worker"))
        return lost >= _SWEPT

    async def forget_old(self, now: Timestamp) -> bool:
        """A chore: deletes old events, and workers that left long ago. Returns whether there may be more."""
        return await self._store.forget_workers(now - limits.WORKER_EVENTS_AGE_US, _SWEPT) >= _SWEPT

    async def note_diagnostics(self, namespace: str, worker_id: str, diagnostics: Sequence[Diagnostic]) -> None:
        """Records problems that a worker reports. Long texts are truncated, so that they can be recorded."""
        truncated = [
            Diagnostic(
                truncate_text(each.kind, limits.NAME_BYTES), truncate_text(each.detail, limits.TROUBLE_DETAIL_BYTES)
            )
            for each in diagnostics[: limits.DIAGNOSTICS]
        ]
        self._diagnostics.write(namespace, worker_id, truncated)
        if truncated:
            await self._store.note_diagnostics(namespace, worker_id, truncated, self._clock.now())

    async def leave(self, namespace: str, worker_id: str) -> bool:
        """OFFLINE, with all its runs handed back. False: unknown."""
        self.forget(namespace, worker_id)
        self._heartbeats.left((namespace, worker_id))
        known, effects = await self._store.worker_left(namespace, worker_id, self._clock.now(), hand_back=True)
        self._dispatcher.dispatch(effects)
        self.new_builds.changed()
        return known

    async def set_status(self, namespace: str, worker_id: str, status: WorkerStatus) -> None:
        self.forget(namespace, worker_id)
        await self._store.set_worker_status(namespace, worker_id, status, self._clock.now())

    async def get(self, namespace: str, worker_id: str) -> WorkerRecord:
        checks.name(namespace, "namespace")
        checks.name(worker_id, "worker_id")
        worker = await self._store.get_worker(namespace, worker_id)
        if worker is None:
            raise not_found("worker", worker_id)
        now = self._clock.now()
        return with_liveness(self._as_known_here(worker, now), self._liveness.alive_since(now))

    def _as_known_here(self, worker: WorkerRecord, now: Timestamp) -> WorkerRecord:
        """Adds current data of a worker connected here: the store is only updated from time to time."""
        session = self._sessions.get((worker.namespace, worker.worker_id))
        if session is None:
            return worker
        seen_at = now - int(session.silent_s * US_PER_S)
        return msgspec.structs.replace(
            worker, last_heartbeat_at=max(worker.last_heartbeat_at, seen_at), active_count=session.active_count
        )

    async def known(self, namespace: str, worker_id: str) -> WorkerRecord | None:
        """The worker as of a few seconds ago at most, so that a poll or a heartbeat costs no query."""
        remembered = self._known.get((namespace, worker_id))
        if remembered is not None and remembered[1] > asyncio.get_running_loop().time():
            return remembered[0]
        worker = await self._store.get_worker(namespace, worker_id)
        if worker is not None:
            self._remember(worker)
        return worker

    async def list(
        self, namespace: str, *, workflow_type: str | None, status: WorkerStatus | None, page: PageAsk
    ) -> Page[WorkerRecord]:
        """Newest registration first."""
        checks.name(namespace, "namespace")
        checks.optional_name(workflow_type or "", "workflow_type")
        bound_to = msgspec.json.encode(("workers", namespace, workflow_type, status)).decode()
        cursor = page_cursor(page, bound_to)
        now = self._clock.now()
        alive_since = self._liveness.alive_since(now)
        rows = await self._store.list_workers(
            namespace,
            workflow_type=workflow_type or None,
            status=status,
            cursor=cursor,
            limit=page_size(page),
            alive_since=alive_since,
        )
        what = Counted(
            rows="workers", namespace=namespace, key=workflow_type or "", status=status, alive_since=alive_since
        )
        result = page_of(rows, cursor, bound_to, lambda worker: Cursor(worker.registered_at, worker.worker_id))
        result = msgspec.structs.replace(result, rows=tuple(self._as_known_here(each, now) for each in result.rows))
        return await with_total(result, page, self._store, what)

    async def events(self, namespace: str, worker_id: str, page: PageAsk) -> Page[WorkerEvent]:
        """The events of a worker, or (empty id) of all workers of the namespace; latest first."""
        checks.name(namespace, "namespace")
        checks.optional_name(worker_id, "worker_id")
        bound_to = msgspec.json.encode(("worker events", namespace, worker_id)).decode()
        cursor = page_cursor(page, bound_to)
        if cursor is not None and not (cursor.id.isdecimal() and len(cursor.id) <= _NUMBER_DIGITS):
            raise InvalidArgument(
                "page_token does not belong to this list. Begin with the first page.", field="page_token"
            )
        rows = await self._store.list_worker_events(
            namespace, worker_id=worker_id or None, cursor=cursor, limit=page_size(page)
        )
        if worker_id and cursor is None and not rows.rows:
            raise not_found("worker", worker_id)
        result = page_of(rows, cursor, bound_to, lambda event: Cursor(event.at, str(event.number)))
        what = Counted(rows="worker_events", namespace=namespace, key=worker_id)
        return await with_total(result, page, self._store, what)

    def _remember(self, worker: WorkerRecord) -> None:
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        until = asyncio.get_running_loop().time() + _REMEMBERED_S
        self._known[worker.namespace, worker.worker_id] = (worker, until)

    def forget(self, namespace: str, worker_id: str) -> None:
        """Removes it from the cache, which may be outdated."""
        self._known.pop((namespace, worker_id), None)
