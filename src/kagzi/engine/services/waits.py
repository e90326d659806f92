"""Waits for the ends of runs. Subscribes first, then reads; a run started here that is still open is not read."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from ...core import limits
from ...core.errors import InternalError, ResourceExhausted, Unavailable, limit_reached
from ...core.ids import is_uuid
from ...core.records import RunEnd, RunKey
from ...core.states import RunStatus
from ...store.protocol import Store
from ..checks.requests import no_run
from ..commit.outages import backoff_s

logger = logging.getLogger("kagzi.engine")

Deliver = Callable[[Sequence[RunEnd], Sequence[str]], None]

LIVE_RUNS = 50_000  # per namespace; beyond it the oldest is read like any other
_READ_RUNS = 500
_CALL_TIMEOUT_S = 30.0


class Waits:
    """The waits of one client. `deliver` is called once for each id, with its end or as unknown."""

    def __init__(self, hub: "WaitHub", namespace: str, deliver: Deliver) -> None:
        self._hub = hub
        self._namespace = namespace
        self.deliver = deliver
        self.ids: set[str] = set()

    def add(self, run_ids: Iterable[str]) -> None:
        """Raises ResourceExhausted, before any is added, if there would be too many."""
        new = set(run_ids) - self.ids
        if len(self.ids) + len(new) > limits.WAITS_PER_STREAM:
            raise ResourceExhausted(
                f"{len(self.ids) + len(new)} runs to wait for; the limit is {limits.WAITS_PER_STREAM} per stream. "
                "Forget some, or open another stream.",
                field="run_ids",
                metadata=limit_reached("waits_per_stream", limits.WAITS_PER_STREAM),
            )
        self.ids |= new
        self._hub.subscribe(self, [RunKey(self._namespace, run_id) for run_id in new])

    def forget(self, run_ids: Iterable[str]) -> None:
        gone = self.ids.intersection(run_ids)
        self.ids -= gone
        self._hub.unsubscribe(self, [RunKey(self._namespace, run_id) for run_id in gone])

    def close(self) -> None:
        self.forget(tuple(self.ids))


class WaitHub:
    """All waits on this server. Ends are reported by the journal and the timers, and read for runs of other servers."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[RunKey, list[Waits]] = {}
        # An OrderedDict: finding the first key of a dict takes longer the more keys before it were deleted.
        self._live: dict[str, OrderedDict[str, None]] = {}
        self._to_read: OrderedDict[RunKey, None] = OrderedDict()
        self._work = asyncio.Event()

    # --- waiting ------------------------------------------------------------------------------------------------------

    def open(self, namespace: str, deliver: Deliver) -> Waits:
        return Waits(self, namespace, deliver)

    def subscribe(self, waits: Waits, runs: Iterable[RunKey]) -> None:
        for run in runs:
            self._waiting.setdefault(run, []).append(waits)
            live = self._live.get(run.namespace)
            if live is None or run.run_id not in live:
                self._to_read[run] = None
        if self._to_read:
            self._work.set()

    def unsubscribe(self, waits: Waits, runs: Iterable[RunKey]) -> None:
        for run in runs:
            waiting = self._waiting.get(run)
            if waiting is not None and waits in waiting:
                waiting.remove(waits)
                if not waiting:
                    del self._waiting[run]

    async def wait(self, run: RunKey, timeout_ms: int) -> RunEnd | RunStatus:
        """The end, or the status if the run has not ended within the timeout. Raises NotFound."""
        future: asyncio.Future[RunEnd | None] = asyncio.get_running_loop().create_future()

        def deliver(endings: Sequence[RunEnd], not_found: Sequence[str]) -> None:
            if not future.done():
                future.set_result(endings[0] if endings else None)

        waits = self.open(run.namespace, deliver)
        try:
            if timeout_ms > 0:
                waits.add((run.run_id,))
                async with asyncio.timeout(timeout_ms / 1_000):
                    end = await future
                if end is None:
                    raise no_run(run.run_id)
                return end
        except TimeoutError:
            pass
        finally:
            waits.close()
        (ending,) = await self._store.endings_of((run,))
        if ending is None:
            raise no_run(run.run_id)
        return ending

    # --- known ends and open runs -------------------------------------------------------------------------------------

    def waited_for(self, run: RunKey) -> bool:
        return run in self._waiting

    def started_here(self, run: RunKey) -> None:
        live = self._live.get(run.namespace)
        if live is None:
            live = self._live[run.namespace] = OrderedDict()
        elif len(live) >= LIVE_RUNS:
            live.popitem(last=False)
        live[run.run_id] = None

    def ended_here(self, run: RunKey) -> None:
        live = self._live.get(run.namespace)
        if live is not None:
            live.pop(run.run_id, None)
            if not live:
                del self._live[run.namespace]

    def ended(self, endings: Iterable[RunEnd]) -> None:
        deliveries: dict[Waits, list[RunEnd]] = {}
        for end in endings:
            self.ended_here(end.run)
            for waits in self._waiting.pop(end.run, ()):
                waits.ids.discard(end.run.run_id)
                deliveries.setdefault(waits, []).append(end)
        for waits, some in deliveries.items():
            try:
                waits.deliver(some, ())
            except Exception:
                logger.exception("%d runs ended, but waiting callers could not be notified", len(some))

    # --- polling ------------------------------------------------------------------------------------------------------

    def poll_runs(self, runs: Iterable[RunKey]) -> None:
        for run in runs:
            self.ended_here(run)
            if run in self._waiting:
                self._to_read[run] = None
        if self._to_read:
            self._work.set()

    def poll_namespace(self, namespace: str) -> None:
        """Runs may have ended there without notice here: none of its runs is assumed to be open any more."""
        self._live.pop(namespace, None)
        self.poll_runs([run for run in self._waiting if run.namespace == namespace])

    def poll_all(self) -> None:
        self._live.clear()
        self.poll_runs(list(self._waiting))

    def poll_again(self) -> None:
        """The regular fallback, in case a wake-up from another server was lost."""
        if self._waiting:
            self.poll_runs(list(self._waiting))

    async def run(self) -> None:
        self._work.set()  # if the task died before, there may be work
        failures = 0
        while True:
            await self._work.wait()
            self._work.clear()
            while self._to_read:
                # Removed before they are read: a request during the read needs a newer result.
                runs = [self._to_read.popitem(last=False)[0] for _ in range(min(len(self._to_read), _READ_RUNS))]
                try:
                    await self._read([run for run in runs if run in self._waiting])
                except (Unavailable, TimeoutError) as error:
                    logger.debug("the ends of %d runs could not be looked up: %s", len(runs), error)
                    self._to_read.update(dict.fromkeys(runs))
                    failures += 1
                    await asyncio.sleep(backoff_s(failures))
                except BaseException:
                    self._to_read.update(dict.fromkeys(runs))  # still to be read
                    raise
                else:
                    failures = 0

    async def _read(self, runs: list[RunKey]) -> None:
        malformed = [run for run in runs if not is_uuid(run.run_id)]
        runs = [run for run in runs if is_uuid(run.run_id)]
        unknown = malformed
        if runs:
            async with asyncio.timeout(_CALL_TIMEOUT_S):
                endings = await self._store.endings_of(runs)
            if not endings:
                raise InternalError("the store answered for none of the runs that were asked for")
            self._to_read.update(dict.fromkeys(runs[len(endings) :]))  # more than a page: the rest is read next
            self.ended([end for end in endings if isinstance(end, RunEnd)])
            unknown = malformed + [run for run, end in zip(runs, endings, strict=False) if end is None]
        for run in unknown:
            for waits in self._waiting.pop(run, ()):
                waits.ids.discard(run.run_id)
                waits.deliver((), (run.run_id,))
