"""Group commit. While one batch is being written, the next one collects; an idle journal writes at once.

Nothing is acknowledged before it is durable. A refused operation does not affect others; a run that is locked, or on
whose operations the store fails, is set aside; a busy namespace gets its share and no more. The journal waits out an
outage of the store, since every operation can be repeated.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta

from ...core import limits
from ...core.effects import NO_EFFECTS, Effects, merge
from ...core.errors import (
    KagziError,
    ResourceExhausted,
    ServerUnavailable,
    StoreBroken,
    StoreLost,
    Unavailable,
    limit_reached,
)
from ...core.outages import database_down, database_words
from ...core.providers import Clock
from ...core.run.commands import Command
from ...core.run.outcomes import Busy, Deferred, Failed, LeaseLost, Outcome, RunClosed
from ...store.protocol import LeaseTerms, Store
from ..checks.refusals import refused
from ..timing.store_clock import StoreClock
from .outages import Outages, backoff_s
from .stuck_runs import StuckRuns
from .time_limit import TimeLimit
from .turns import Turns
from .weights import weight_bytes
from .write_queues import Entry, Sink, WriteQueues

logger = logging.getLogger("kagzi.engine")

WRITE_TIMEOUT_S = 30.0
OUTAGE_LIMIT_S = 30.0  # how long callers wait for an unavailable store
CAPACITY_TIMEOUT_S = 60.0
TRIES = 30  # for a run that is set aside; with pauses that grow to half a second: about 12 s

OnCommit = Callable[[Sequence[Command], Sequence[Outcome], Effects], None]

_Written = tuple[Sequence[Outcome], Effects]

_ASIDE = frozenset({Busy, Failed})  # outcomes that changed nothing and are retried


class Journal:
    """`on_commit` gets all commands with their final outcomes, and the effects, once per commit, before callers get
    theirs."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        store_clock: StoreClock,
        terms: Callable[[int], LeaseTerms],
        outages: Outages,
        stuck: StuckRuns,
        on_commit: OnCommit,
        outage_limit_s: float = OUTAGE_LIMIT_S,
        tries: int = TRIES,
        queues: WriteQueues | None = None,
    ) -> None:
        self.measurements = outages.measurements
        self._store = store
        self._clock = clock
        self._store_clock = store_clock
        self._terms = terms
        self._outages = outages
        self._outage_limit_s = outage_limit_s
        self._stuck = stuck
        self._most_tries = tries
        self._queues = WriteQueues() if queues is None else queues
        self._turns = Turns()
        self._time_limit = TimeLimit(WRITE_TIMEOUT_S)
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._committing: list[Entry] = []
        self._tries: dict[str, int] = {}  # by run that is set aside, or is being retried
        self._capacity_waiters: dict[str, list[asyncio.Future[None]]] = {}
        self._closed = False
        self._on_commit = on_commit

    # --- in -----------------------------------------------------------------------------------------------------------

    async def submit(self, command: Command) -> Outcome:
        """Returns the outcome. Raises ResourceExhausted if the queue is full, Unavailable if the journal is closed."""
        return await self.enqueue(command)

    def enqueue(self, command: Command) -> asyncio.Future[Outcome]:
        """As `submit`, without an await before the command is queued. A caller that disconnects afterwards leaves it in
        the queue."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def answer(answers: list[tuple[int, Outcome]]) -> None:
            if not future.done():
                future.set_result(answers[0][1])

        self.submit_many(((0, command),), answer)
        return future

    def submit_many(self, operations: Sequence[tuple[int, Command]], sink: Sink) -> None:
        """Queue operations, in order. `sink` is called once per commit with its (token, outcome) pairs.

        Raises ResourceExhausted before any is queued if the namespace's queue is full: await `wait_for_capacity` to
        wait instead.
        """
        if self._closed:
            raise ServerUnavailable("the server is stopping. Try again, or use another server.")
        if not operations:
            return
        namespace = operations[0][1].run.namespace
        queues = self._queues
        if queues.full(namespace):
            raise _queue_full(namespace)
        queues.add_all(operations, sink)
        self._idle.clear()
        self._work.set()

    def is_full(self, namespace: str) -> bool:
        """Whether the namespace's queue is full."""
        return self._queues.full(namespace)

    async def wait_for_capacity(self, namespace: str) -> None:
        """Returns when the namespace's queue has capacity: the back-pressure of a session."""
        if not self._queues.full(namespace):
            return
        try:
            async with asyncio.timeout(CAPACITY_TIMEOUT_S):
                while self._queues.full(namespace) and not self._closed:
                    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    self._capacity_waiters.setdefault(namespace, []).append(future)
                    await future
        except TimeoutError:
            raise _queue_full(namespace) from None

    def hold_back(self, sink: Sink) -> None:
        """Its reader does not keep up: write none of its operations until `unblock`."""
        if not self._closed:
            self._queues.hold_back(sink)

    def unblock(self, sink: Sink) -> None:
        self._queues.unblock(sink)
        self._work.set()

    @property
    def queued_operations(self) -> int:
        return self._queues.operations + len(self._committing)

    @property
    def queued_bytes(self) -> int:
        """The bytes of all operations that are not being written yet."""
        return self._queues.bytes

    # --- the loop -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Writes batches forever. If it died while it wrote a batch, that batch is written (again) first."""
        loop = asyncio.get_running_loop()
        large = True  # whether large operations were allowed at the last gathering
        while True:
            if not self._committing:
                large = self._turns.large_allowed()
                self._committing = self._queues.gather(large=large)
                if self._capacity_waiters:
                    self._notify_capacity()
            if not self._committing:
                if not large and self._queues.has_large:  # if they were allowed, none is left
                    self._turns.call_when_large_allowed(self._work.set)
                elif not self._queues.aside:
                    self._idle.set()
                await self._work.wait()
                self._work.clear()
                continue
            batch = self._committing
            began_s = loop.time()
            outcomes, effects = await self._write(batch)
            ended_s = loop.time()
            self._turns.written([entry[1] for entry in batch], ended_s - began_s, ended_s)
            self.measurements.committed(ended_s - began_s, len(batch))
            self._committing = []
            kinds = set(map(type, outcomes))
            if self._tries or not _ASIDE.isdisjoint(kinds):
                batch, outcomes = self._without_aside(batch, outcomes)
            if Deferred in kinds:
                self._turns.was_large()
                batch, outcomes = self._without_deferred(batch, outcomes)
            self._settle(batch, outcomes, effects)

    async def stop(self, timeout_s: float) -> None:
        """Accept nothing more, write what is queued, then fail what could not be written."""
        self._closed = True
        self._turns.stop()
        self._queues.unblock_all()
        self._work.set()
        self._notify_capacity()
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            logger.warning("the journal could not write everything before it stopped")

    def abandon(self) -> None:
        """After the loop has ended: tells remaining callers that the outcome is unknown."""
        self._time_limit.close()
        rest = self._committing + self._queues.remove_all()
        self._committing = []
        self._fail(rest, ServerUnavailable("the server stopped before this was written. Try again."))

    async def _write(self, batch: list[Entry]) -> _Written:
        commands = [entry[0] for entry in batch]
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + self._outage_limit_s
        failures = 0
        while True:
            try:
                await self._store_clock.confirm()
                now = self._clock.now()
                with self._outages.asking(), self._time_limit:
                    written = await self._store.write(commands, now, self._terms(now))
            except (Unavailable, TimeoutError) as error:
                if isinstance(error, StoreBroken) and len(commands) == 1:
                    return [Failed(str(error))], NO_EFFECTS
                failures += 1
                self._outages.seen(error)
                if loop.time() >= give_up_at or isinstance(error, StoreLost):
                    return self._give_up(commands, error), NO_EFFECTS
                await asyncio.sleep(backoff_s(failures))
            except Exception as error:
                self.measurements.store_failed(error)
                logger.exception("the store failed on a batch of %d operations: trying one by one", len(commands))
                return await self._one_by_one(commands)
            else:
                self._outages.over()
                return written

    async def _one_by_one(self, commands: Sequence[Command]) -> _Written:
        """If a statement fails unexpectedly, only the command that caused it fails, and later commands of its run."""
        outcomes: list[Outcome] = []
        effects: list[Effects] = []
        failed: dict[str, Failed] = {}
        for command in commands:
            run_id = command.run.run_id
            if run_id in failed:
                outcomes.append(failed[run_id])
                continue
            now = self._clock.now()
            try:
                async with asyncio.timeout(WRITE_TIMEOUT_S):
                    (outcome,), effect = await self._store.write((command,), now, self._terms(now))
            except (Unavailable, TimeoutError) as error:
                self._outages.seen(error)
                outcomes += [Busy()] * (len(commands) - len(outcomes))
                break
            except Exception as error:
                logger.exception("the store failed on %s of run %s", type(command).__name__, run_id)
                failed[run_id] = outcome = Failed(f"{type(error).__name__}: {error}")
            else:
                effects.append(effect)
            outcomes.append(outcome)
        return outcomes, merge(effects)

    def _give_up(self, commands: Sequence[Command], error: BaseException) -> list[Outcome]:
        """The store has been away too long, or for good: fails the batch and everything that is queued."""
        problem = database_down(database_words(error))
        queued = self._queues.remove_all()
        self._tries.clear()
        logger.error("%d operations could not be written: %s", len(commands) + len(queued), error)
        self._fail(queued, problem)
        self._notify_capacity()
        return [refused(problem)] * len(commands)

    # --- runs that are locked, or on which the store fails ------------------------------------------------------------

    def _without_aside(self, batch: list[Entry], outcomes: Sequence[Outcome]) -> tuple[list[Entry], list[Outcome]]:
        """Sets operations of such runs aside for a retry; returns the others."""
        done: list[Entry] = []
        done_outcomes: list[Outcome] = []
        aside: dict[str, list[Entry]] = {}
        why: dict[str, Outcome] = {}
        for entry, outcome in zip(batch, outcomes, strict=True):
            run_id = entry[0].run.run_id
            if outcome.__class__ in _ASIDE:
                aside.setdefault(run_id, []).append(entry)
                why.setdefault(run_id, outcome)
            else:
                done.append(entry)
                done_outcomes.append(outcome)
                if run_id not in aside:
                    self._tries.pop(run_id, None)
        for run_id, entries in aside.items():
            self._try_later(run_id, entries, why[run_id])
        return done, done_outcomes

    def _without_deferred(self, batch: list[Entry], outcomes: Sequence[Outcome]) -> tuple[list[Entry], list[Outcome]]:
        """Moves operations whose responses would exceed the batch's limit to the next batch; returns the others."""
        marked = [
            (entry, outcome, outcome.__class__ is Deferred) for entry, outcome in zip(batch, outcomes, strict=True)
        ]
        self._queues.put_back([entry for entry, _, deferred in marked if deferred])
        done = [(entry, outcome) for entry, outcome, deferred in marked if not deferred]
        return [entry for entry, _ in done], [outcome for _, outcome in done]

    def _try_later(self, run_id: str, entries: list[Entry], why: Outcome) -> None:
        tries = self._tries[run_id] = self._tries.get(run_id, 0) + 1
        if tries > self._most_tries:
            del self._tries[run_id]
            # Its later operations fail too: a gap in a run's order would be worse.
            entries = entries + self._queues.remove_run(entries[0][0].run.namespace, run_id)
            if isinstance(why, Failed):
                self._give_up_run(entries, why.reason)
            else:
                self._fail(entries, ServerUnavailable(f"run {run_id} is locked by another transaction. Try again."))
            return
        if isinstance(why, Failed) and tries == 1:
            what = type(entries[0][0]).__name__
            logger.warning("the store failed on %s of run %s, which is tried again: %s", what, run_id, why.reason)
        self._queues.set_aside(run_id, entries)
        asyncio.get_running_loop().call_later(backoff_s(tries, first_s=0.002, most_s=0.5), self._bring_back, run_id)

    def _give_up_run(self, entries: list[Entry], reason: str) -> None:
        """Tells the worker to hand the run back; if that has happened repeatedly, pauses the run and tells the worker
        that."""
        problem, pause = self._stuck.give_up(entries[0][0], reason)
        if pause is None:
            self._fail(entries, problem)
            return

        def paused(answers: list[tuple[int, Outcome]]) -> None:
            outcome = LeaseLost() if isinstance(answers[0][1], RunClosed) else refused(problem)
            self._settle(entries, [outcome] * len(entries))

        self._queues.add((pause, weight_bytes(pause), paused, 0))
        self._work.set()

    def _bring_back(self, run_id: str) -> None:
        self._queues.bring_back(run_id)
        self._work.set()

    # --- out ----------------------------------------------------------------------------------------------------------

    def _settle(self, batch: list[Entry], outcomes: Sequence[Outcome], effects: Effects = NO_EFFECTS) -> None:
        try:
            self._on_commit([entry[0] for entry in batch], outcomes, effects)
        except Exception:
            logger.exception("a commit succeeded, but some of its effects failed")
        deliveries: dict[Sink, list[tuple[int, Outcome]]] = {}
        for entry, outcome in zip(batch, outcomes, strict=True):
            sink = entry[2]
            delivery = deliveries.get(sink)
            if delivery is None:
                deliveries[sink] = [(entry[3], outcome)]
            else:
                delivery.append((entry[3], outcome))
        for sink, answers in deliveries.items():
            try:
                sink(answers)
            except Exception:
                logger.exception("%d operations are durable, but their answers could not be delivered", len(answers))

    def _fail(self, entries: list[Entry], problem: KagziError) -> None:
        if entries:
            self._settle(entries, [refused(problem)] * len(entries))

    def _notify_capacity(self) -> None:
        for namespace in list(self._capacity_waiters):
            if self._closed or not self._queues.full(namespace):
                for future in self._capacity_waiters.pop(namespace):
                    if not future.done():
                        future.set_result(None)


def _queue_full(namespace: str) -> ResourceExhausted:
    return ResourceExhausted(
        f"namespace {namespace} has reached its limit of operations waiting to be written "
        f"({limits.JOURNAL_QUEUE_OPERATIONS} operations or {limits.JOURNAL_QUEUE_BYTES} bytes), or the server has "
        f"(journal_total_bytes) and the namespace has its share of it ({limits.JOURNAL_SHARE_BYTES} bytes). "
        "Send more slowly.",
        subject="namespace",
        subject_id=namespace,
        metadata=limit_reached("journal_queue_operations", limits.JOURNAL_QUEUE_OPERATIONS),
        retry_after=timedelta(seconds=1),
    )
