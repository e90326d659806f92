"""Notifies the other servers on this store that there is work, that runs ended, or that something happened to a run
whose worker may be connected there. Messages contain names only, at most one message per 5 ms."""

import asyncio
import logging

from ...core.errors import KagziError
from ...core.records import RunKey
from ...store.protocol import Bus, EndedRun, NullBus, RemoteNotice, TypeKey, Wake

logger = logging.getLogger("kagzi.engine")

SPACING_S = 0.005  # see docs/adr/0012
_NAMES = 1_000  # in one message; beyond it the others just poll
_ENDED_RUNS = 500  # named per namespace; beyond it the others look up all runs that they wait for there
_PUBLISH_TIMEOUT_S = 10.0


class Wakeups:
    """An optimisation: without messages everything is slower, but works. A failed message is logged and dropped."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._alone = isinstance(bus, NullBus)
        self._pending: set[TypeKey] = set()
        self._ended: dict[str, set[str]] = {}
        self._crowded: set[str] = set()  # namespaces with too many ended runs to name them
        self._notices: set[RemoteNotice] = set()
        self._work = asyncio.Event()
        self._failing = False

    def pending(self, key: TypeKey) -> None:
        """There is work of this type that no worker here can take now."""
        if not self._alone:
            self._pending.add(key)
            self._work.set()

    def ended(self, run: RunKey) -> None:
        """Names the run, so that servers that wait for other runs need not look anything up."""
        if self._alone or run.namespace in self._crowded:
            return
        runs = self._ended.setdefault(run.namespace, set())
        runs.add(run.run_id)
        if len(runs) > _ENDED_RUNS:
            del self._ended[run.namespace]
            self._crowded.add(run.namespace)
        self._work.set()

    def ended_somewhere(self, namespace: str) -> None:
        """Runs ended in this namespace that cannot be named."""
        if not self._alone:
            self._ended.pop(namespace, None)
            self._crowded.add(namespace)
            self._work.set()

    def notify(self, notice: RemoteNotice) -> None:
        """Something happened that concerns a type, or a worker that is not connected here."""
        if not self._alone:
            self._notices.add(notice)
            self._work.set()

    def permit_wanted(self, key: TypeKey) -> None:
        """Runs of this type wait here for a permit: asks other servers to report when one becomes free."""
        self.notify(RemoteNotice("", key.namespace, key.workflow_type, "permits"))

    def versions_changed(self, key: TypeKey) -> None:
        self.notify(RemoteNotice("", key.namespace, key.workflow_type, "versions"))

    def keys_changed(self, key_id: str) -> None:
        self.notify(RemoteNotice("", "", key_id, "keys"))

    async def run(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            await asyncio.sleep(0)  # local callers first: their responses are sent in this iteration of the event loop
            await self.flush()
            await asyncio.sleep(SPACING_S)

    async def flush(self) -> None:
        if not (self._pending or self._ended or self._crowded or self._notices):
            return
        pending, notices = frozenset(self._pending), frozenset(self._notices)
        named = frozenset(EndedRun(namespace, run_id) for namespace, ids in self._ended.items() for run_id in ids)
        ended = frozenset(self._crowded)
        namespaces = len(ended) + len(self._ended)
        for sent in (self._pending, self._ended, self._crowded, self._notices):
            sent.clear()
        if len(pending) + namespaces > _NAMES:
            wake = Wake(poll_again=True, notices=notices)
        else:
            wake = Wake(pending, ended, notices=notices, ended_runs=named)
        try:
            async with asyncio.timeout(_PUBLISH_TIMEOUT_S):
                await self._bus.publish(wake)
        except (KagziError, OSError, TimeoutError) as error:
            if not self._failing:
                logger.warning("other servers cannot be notified of new work (they poll every few seconds): %s", error)
            self._failing = True
        else:
            self._failing = False
