"""Group commit. While one batch is being written the next gathers; an idle journal writes at once.

Nothing is answered before it is durable. One refused operation leaves its neighbours alone, one locked run waits aside,
one greedy namespace gets its share and no more, and an outage of the store is waited out: every operation can be repeated.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta

from ..core import limits
from ..core.commands import Command
from ..core.errors import InternalError, KagziError, ResourceExhausted, ServerUnavailable, Unavailable, limit_reached
from ..core.outcomes import Busy, Outcome
from ..core.seams import Clock
from ..store.protocol import LeaseTerms, Store
from .lanes import Entry, Lane, Sink, weight_bytes
from .outages import Outages, backoff_s
from .refusals import refused

logger = logging.getLogger("kagzi.engine")

WRITE_TIMEOUT_S = 30.0
OUTAGE_LIMIT_S = 30.0  # how long callers are kept waiting for a store that cannot be reached
ROOM_TIMEOUT_S = 60.0
BUSY_TRIES = 30  # with pauses that grow to half a second: about 12 s

Effects = Callable[[Sequence[Command], Sequence[Outcome]], None]


class Journal:
    """`effects` hears of every command with its final outcome, once per commit, before those who wait are answered."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        terms: Callable[[int], LeaseTerms],
        outages: Outages,
        outage_limit_s: float = OUTAGE_LIMIT_S,
    ) -> None:
        self._store = store
        self._clock = clock
        self._terms = terms
        self._outages = outages
        self._outage_limit_s = outage_limit_s
        self._lane = Lane()
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._committing: list[Entry] = []
        self._busy_tries: dict[str, int] = {}
        self._room: dict[str, list[asyncio.Future[None]]] = {}
        self._closed = False
        self.effects: Effects = _no_effects

    # --- in ------------------------------------------------------------------------------------------------------------

    async def submit(self, command: Command) -> Outcome:
        """What it came to. Raises ResourceExhausted if the queue is full, Unavailable if the journal is closed."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def answer(answers: list[tuple[int, Outcome]]) -> None:
            if not future.done():
                future.set_result(answers[0][1])

        self.submit_many(((0, command),), answer)
        return await future

    def submit_many(self, operations: Sequence[tuple[int, Command]], sink: Sink) -> None:
        """Queue operations, in order. `sink` is called once per commit with the (token, outcome) pairs it brought.

        Raises ResourceExhausted before any is queued if the namespace's queue is full: await `room` to wait instead.
        """
        if self._closed:
            raise ServerUnavailable("the server is stopping. Try another one, or again.")
        if not operations:
            return
        namespace = operations[0][1].run.namespace
        lane = self._lane
        if lane.full(namespace):
            raise _queue_full(namespace)
        for token, command in operations:
            lane.add((command, weight_bytes(command), sink, token))
        self._idle.clear()
        self._work.set()

    async def room(self, namespace: str) -> None:
        """Returns when the namespace's queue takes more: the back-pressure of a session."""
        if not self._lane.full(namespace):
            return
        try:
            async with asyncio.timeout(ROOM_TIMEOUT_S):
                while self._lane.full(namespace) and not self._closed:
                    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    self._room.setdefault(namespace, []).append(future)
                    await future
        except TimeoutError:
            raise _queue_full(namespace) from None

    # --- the loop --------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Write batches for ever. If it died in the middle of one, that one is written (again) first."""
        while True:
            if not self._committing:
                self._committing = self._lane.gather()
                if self._room:
                    self._tell_room()
            if not self._committing:
                if not self._lane.aside:
                    self._idle.set()
                await self._work.wait()
                self._work.clear()
                continue
            batch = self._committing
            outcomes = await self._write(batch)
            self._committing = []
            if self._busy_tries or Busy in map(type, outcomes):
                batch, outcomes = self._without_busy(batch, outcomes)
            self._settle(batch, outcomes)

    async def stop(self, timeout_s: float) -> None:
        """Take nothing more, write what is there, then fail what could not be written."""
        self._closed = True
        self._tell_room()
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            logger.warning("the journal could not write everything before it stopped")

    def abandon(self) -> None:
        """After the loop has ended: whoever still waits is told that the outcome is unknown."""
        rest = self._committing + self._lane.remove_all()
        self._committing = []
        self._fail(rest, ServerUnavailable("the server stopped before this was written. Try again."))

    async def _write(self, batch: list[Entry]) -> Sequence[Outcome]:
        commands = [entry[0] for entry in batch]
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + self._outage_limit_s
        failures = 0
        while True:
            now = self._clock.now()
            try:
                async with asyncio.timeout(WRITE_TIMEOUT_S):
                    outcomes = await self._store.write(commands, now, self._terms(now))
            except (Unavailable, TimeoutError) as error:
                failures += 1
                self._outages.seen(error)
                if loop.time() >= give_up_at:
                    return self._give_up(commands, error)
                await asyncio.sleep(backoff_s(failures))
            except Exception:
                logger.exception("the store failed on a batch of %d operations: trying one by one", len(commands))
                return await self._one_by_one(commands)
            else:
                self._outages.over()
                return outcomes

    async def _one_by_one(self, commands: Sequence[Command]) -> list[Outcome]:
        """A statement that fails in a way the store did not foresee costs only the command that made it fail."""
        outcomes: list[Outcome] = []
        for command in commands:
            now = self._clock.now()
            try:
                async with asyncio.timeout(WRITE_TIMEOUT_S):
                    outcomes.extend(await self._store.write((command,), now, self._terms(now)))
            except (Unavailable, TimeoutError) as error:
                self._outages.seen(error)
                outcomes.append(refused(ServerUnavailable("the store cannot be reached. Try again.")))
            except Exception:
                logger.exception("the store failed on %s of run %s", type(command).__name__, command.run.run_id)
                outcomes.append(refused(InternalError("the store failed on this operation; see the server's log.")))
        return outcomes

    def _give_up(self, commands: Sequence[Command], error: BaseException) -> list[Outcome]:
        """The store has been away for too long: fail the batch, and what queued up behind it."""
        problem = ServerUnavailable(f"the store could not be reached for {self._outage_limit_s:g} s. Try again.")
        queued = self._lane.remove_all()
        self._busy_tries.clear()
        logger.error("%d operations could not be written: %s", len(commands) + len(queued), error)
        self._fail(queued, problem)
        self._tell_room()
        return [refused(problem)] * len(commands)

    # --- runs whose row is locked ----------------------------------------------------------------------------------------

    def _without_busy(self, batch: list[Entry], outcomes: Sequence[Outcome]) -> tuple[list[Entry], list[Outcome]]:
        """Set operations of locked runs aside, to be tried again; answers the others."""
        done: list[Entry] = []
        done_outcomes: list[Outcome] = []
        locked: dict[str, list[Entry]] = {}
        for entry, outcome in zip(batch, outcomes, strict=True):
            run_id = entry[0].run.run_id
            if outcome.__class__ is Busy:
                locked.setdefault(run_id, []).append(entry)
            else:
                done.append(entry)
                done_outcomes.append(outcome)
                if run_id not in locked:
                    self._busy_tries.pop(run_id, None)
        for run_id, entries in locked.items():
            self._try_later(run_id, entries)
        return done, done_outcomes

    def _try_later(self, run_id: str, entries: list[Entry]) -> None:
        tries = self._busy_tries[run_id] = self._busy_tries.get(run_id, 0) + 1
        if tries > BUSY_TRIES:
            del self._busy_tries[run_id]
            rest = self._lane.remove_run(entries[0][0].run.namespace, run_id)  # a hole in a run's order is worse
            self._fail(entries + rest, ServerUnavailable(f"run {run_id} is locked by another transaction. Try again."))
            return
        self._lane.set_aside(run_id, entries)
        asyncio.get_running_loop().call_later(backoff_s(tries, first_s=0.002, most_s=0.5), self._bring_back, run_id)

    def _bring_back(self, run_id: str) -> None:
        self._lane.bring_back(run_id)
        self._work.set()

    # --- out -------------------------------------------------------------------------------------------------------------

    def _settle(self, batch: list[Entry], outcomes: Sequence[Outcome]) -> None:
        try:
            self.effects([entry[0] for entry in batch], outcomes)
        except Exception:
            logger.exception("a commit was durable, but what follows from it could not all be done")
        parcels: dict[Sink, list[tuple[int, Outcome]]] = {}
        for entry, outcome in zip(batch, outcomes, strict=True):
            sink = entry[2]
            parcel = parcels.get(sink)
            if parcel is None:
                parcels[sink] = [(entry[3], outcome)]
            else:
                parcel.append((entry[3], outcome))
        for sink, answers in parcels.items():
            try:
                sink(answers)
            except Exception:
                logger.exception("%d operations are durable, but their answers could not be delivered", len(answers))

    def _fail(self, entries: list[Entry], problem: KagziError) -> None:
        if entries:
            self._settle(entries, [refused(problem)] * len(entries))

    def _tell_room(self) -> None:
        for namespace in list(self._room):
            if self._closed or not self._lane.full(namespace):
                for future in self._room.pop(namespace):
                    if not future.done():
                        future.set_result(None)


def _queue_full(namespace: str) -> ResourceExhausted:
    return ResourceExhausted(
        f"namespace {namespace} has {limits.JOURNAL_QUEUE_OPERATIONS} operations or "
        f"{limits.JOURNAL_QUEUE_BYTES} bytes waiting to be written, which is the limit. Send more slowly.",
        subject="namespace",
        subject_id=namespace,
        metadata=limit_reached("journal_queue_operations", limits.JOURNAL_QUEUE_OPERATIONS),
        retry_after=timedelta(seconds=1),
    )


def _no_effects(commands: Sequence[Command], outcomes: Sequence[Outcome]) -> None:
    """Until the engine is composed nothing follows from a commit."""
