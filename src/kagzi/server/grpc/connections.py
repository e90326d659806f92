"""What calls may leave out because their connection has named it before: the namespace of a worker that registered on
it, the lease of a run that was polled on it.

A lease that is left out belongs to the connection, so another connection, another server, or a worker that shares the
connection with the one that polled the run cannot use it. Everything is checked by the fence as usual.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

from ...core import limits
from ...core.errors import InvalidArgument, LeaseLost, PreconditionFailed
from ...core.records import Lease, RunKey, RunLease
from ...core.times import Timestamp

PEER: ContextVar[Callable[[], str]] = ContextVar("peer", default=str)
"""Of a call of a worker: returns the name of its connection. Empty: not known."""

IDLE_S = 360.0
"""A connection without calls for this long has been closed (`grpc.max_connection_idle_ms`, and the longest poll)."""
_DISTINCT = ("ipv4:", "ipv6:", "websocket:", "in-process:")


class _Polled:
    """A run that a worker has polled. `holds`: the worker has not ended, parked or released it since."""

    __slots__ = ("holds", "leased", "lost", "pauses", "retry_at", "shared", "worker_id")

    def __init__(self, leased: RunLease, worker_id: str, *, shared: bool) -> None:
        self.leased = leased
        self.worker_id = worker_id
        self.shared = shared
        self.holds = True
        self.lost = False
        self.pauses = False
        self.retry_at: Timestamp | None = None


class _Worker:
    __slots__ = ("names_leases", "namespace")

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.names_leases = False


class _Connection:
    __slots__ = ("runs", "seen_s", "workers")

    def __init__(self, seen_s: float) -> None:
        self.seen_s = seen_s
        self.workers: OrderedDict[str, _Worker] = OrderedDict()
        self.runs: OrderedDict[str, _Polled] = OrderedDict()

    def __len__(self) -> int:
        return len(self.workers) + len(self.runs)


class Connections:
    """Connections by name. What is forgotten, because there is too much of it, has to be named by callers."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic, limit: int = limits.CONNECTION_FACTS) -> None:
        self._clock_s = clock_s
        self._limit = limit
        self._size = 0
        self._connections: OrderedDict[str, _Connection] = OrderedDict()  # the one that was used last is the last

    # --- what becomes known -------------------------------------------------------------------------------------------

    def registered(self, name: str, namespace: str, worker_id: str) -> None:
        if (connection := self._use(name)) is not None:
            self._add(connection.workers, worker_id, _Worker(namespace))
            self._forget_oldest(connection)

    def polled(self, name: str, worker_id: str, leased: Iterable[RunLease]) -> None:
        connection = self._use(name)
        if connection is None:
            return
        for each in leased:
            before = connection.runs.get(each.run.run_id)
            shared = before is not None and (before.shared or (before.holds and before.worker_id != worker_id))
            self._add(connection.runs, each.run.run_id, _Polled(each, worker_id, shared=shared))
        self._forget_oldest(connection)

    def gave_up(self, name: str, run: RunKey) -> None:
        """The run has ended, sleeps, was released, or its lease is lost. The lease stays known, for repeated calls."""
        if (polled := self._polled(name, run)) is not None:
            polled.holds = False

    def lost(self, name: str, leased: Iterable[RunLease]) -> None:
        """A heartbeat could not renew them. The worker may not know that yet."""
        for each in leased:
            polled = self._polled(name, each.run)
            if polled is not None and polled.leased == each:
                polled.lost = True

    def retry_due(self, name: str, run: RunKey, retry_at: Timestamp | None) -> None:
        """A step of the run has failed and is to be begun again then. None: the worker goes on with the run."""
        if (polled := self._polled(name, run)) is not None:
            polled.retry_at = retry_at

    def pauses(self, name: str, run: RunKey) -> None:
        """The worker begins a sleep as a step, and leaves the run when it has called Sleep."""
        if (polled := self._polled(name, run)) is not None:
            polled.pauses = True

    def names_leases(self, name: str, *, worker_id: str = "", run: RunKey | None = None) -> None:
        """The worker has named a lease: what it does not name in a heartbeat it does not hold."""
        if (connection := self._get(name)) is None:
            return
        polled = None if run is None else connection.runs.get(run.run_id)
        worker = connection.workers.get(worker_id if polled is None else polled.worker_id)
        if worker is not None:
            worker.names_leases = True

    # --- what is known ------------------------------------------------------------------------------------------------

    def lease_of(self, name: str, run: RunKey) -> Lease:
        """The lease of a run that was last polled on the connection. Raises InvalidArgument, LeaseLost,
        PreconditionFailed."""
        connection = self._use(name, create=False)
        if connection is None:
            why = "" if _is_distinct(name) else " Over this kind of connection, callers cannot be told apart."
            raise InvalidArgument(
                f"lease is missing, and nothing was polled on this connection.{why} Send the lease that came with the "
                "task.",
                field="lease",
            )
        polled = connection.runs.get(run.run_id)
        if polled is None or polled.leased.run != run:
            raise LeaseLost(
                f"run {run.run_id} was not polled on this connection to this server. Abandon it, or send the lease "
                "that came with the task.",
                subject="run",
                subject_id=run.run_id,
            )
        if polled.shared:
            raise PreconditionFailed(
                f"lease is missing, and several workers have polled run {run.run_id} on this connection. Send the "
                "lease that came with the task, or give each worker a connection of its own.",
                field="lease",
            )
        return polled.leased.lease

    def leaves_after_sleep(self, name: str, run: RunKey) -> bool:
        polled = self._polled(name, run)
        return polled is not None and polled.pauses and polled.holds

    def leased_by(self, name: str, namespace: str, worker_id: str, retry_after: Timestamp) -> list[RunLease]:
        """The runs that the worker has polled on the connection and not given up, unless it names leases itself. Not
        those with a step that should have been begun again before `retry_after`: it has left them."""
        connection = self._use(name, create=False)
        worker = None if connection is None else connection.workers.get(worker_id)
        if connection is None or (worker is not None and worker.names_leases):
            return []
        leased = (
            polled.leased
            for polled in connection.runs.values()
            if polled.holds
            and not polled.lost
            and polled.worker_id == worker_id
            and polled.leased.run.namespace == namespace
            and (polled.retry_at is None or polled.retry_at >= retry_after)
        )
        return list(leased)[: limits.HEARTBEAT_LEASES]

    def namespace_of(self, name: str, request: Any) -> str:
        """The namespace that a request leaves out: that of the worker or the run that it names, or the only one that
        workers on its connection are in. Empty: not known. Raises InvalidArgument if there are several."""
        connection = self._use(name, create=False)
        if connection is None:
            return ""
        worker = connection.workers.get(getattr(request, "worker_id", ""))
        if worker is not None:
            return worker.namespace
        polled = connection.runs.get(getattr(request, "run_id", ""))
        if polled is not None:
            return polled.leased.run.namespace
        namespaces = {worker.namespace for worker in connection.workers.values()}
        if len(namespaces) > 1:
            raise InvalidArgument(
                "namespace_id is empty, and workers of several namespaces are registered on this connection. Name one.",
                field="namespace_id",
            )
        return next(iter(namespaces), "")

    # --- bounds -------------------------------------------------------------------------------------------------------

    def _polled(self, name: str, run: RunKey) -> _Polled | None:
        connection = self._get(name)
        polled = None if connection is None else connection.runs.get(run.run_id)
        return polled if polled is not None and polled.leased.run == run else None

    def _get(self, name: str) -> _Connection | None:
        return self._connections.get(name)

    def _use(self, name: str, *, create: bool = True) -> _Connection | None:
        """The connection, used just now. None: it is not known, or cannot be told from others."""
        now_s = self._clock_s()
        while self._connections:
            name_of_oldest, oldest = next(iter(self._connections.items()))
            if oldest.seen_s + IDLE_S > now_s:
                break
            self._forget(name_of_oldest)
        connection = self._connections.get(name)
        if connection is None:
            if not create or not _is_distinct(name):
                return None
            connection = self._connections[name] = _Connection(now_s)
        connection.seen_s = now_s
        self._connections.move_to_end(name)
        return connection

    def _add(self, facts: "OrderedDict[str, Any]", key: str, fact: object) -> None:
        self._size += key not in facts
        facts[key] = fact
        facts.move_to_end(key)

    def _forget_oldest(self, current: _Connection) -> None:
        """First the connections that were unused for longest, then the oldest runs and workers of the current one."""
        while self._size > self._limit:
            oldest, connection = next(iter(self._connections.items()))
            if connection is not current:
                self._forget(oldest)
                continue
            (current.runs or current.workers).popitem(last=False)
            self._size -= 1

    def _forget(self, name: str) -> None:
        self._size -= len(self._connections.pop(name))


def _is_distinct(name: str) -> bool:
    """Whether no other connection has this name. gRPC names all clients of a Unix socket alike."""
    return name.startswith(_DISTINCT)
