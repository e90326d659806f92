"""PostgreSQL is killed while commits wait for its synchronous standby, and started again in place; at the end it is
gone and the standby takes over. Whatever anybody was told, the standby must have.

Acknowledged is: a start and a signal whose call returned, a result that was heard, and a step if the next one has
begun.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from kagzi import Kagzi, Run, RunStatus
from kagzi.core.errors import KagziError, Unavailable
from tests.support.ledger import Ledger
from tests.support.polling import until
from tests.support.standby import WAITING, Pair, connected

from . import flows

T = TypeVar("T")

RUNS = 6  # started in each round, and again while nothing can be replicated
TIMEOUT_S = 120.0

_RUNS = "SELECT run_id::text FROM runs"
_ENDED = "SELECT run_id::text FROM runs WHERE finished_at IS NOT NULL"
_SIGNALLED = "SELECT run_id::text FROM signals"
_STEPS = "SELECT run_id::text || '/' || step_id FROM steps WHERE kind = 1 AND seq > 0"


class Acknowledged(NamedTuple):
    """What the world outside has been told, or what a server has: sets of names."""

    starts: set[str]
    signals: set[str]
    steps: set[str]
    endings: set[str]

    def __sub__(self, other: "Acknowledged") -> "Acknowledged":
        return Acknowledged(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))

    @property
    def count(self) -> int:
        return sum(len(each) for each in self)


class Round(NamedTuple):
    waiting: int  # commits, when PostgreSQL was killed
    unreplicated: int  # things that the restarted server shows and the standby does not have
    acknowledged_alone: Acknowledged  # of these, what somebody was told


class Campaign:
    """`round` after `round`, with `recover` between them; then `stop`, `lost`, and `finish` with a client of a server
    on the standby.

    `window_s`: how long a wrong answer has to show itself. On a quiet machine half a second is enough.
    """

    def __init__(self, pair: Pair, database: str, ledger: Ledger, client: Kagzi, *, window_s: float) -> None:
        self._pair = pair
        self._database = database
        self._ledger = ledger
        self._client = client
        self._window_s = window_s
        self._started: list[Run[int]] = []
        self._signalled: set[str] = set()
        self._ended: set[str] = set()
        self._calls: list[asyncio.Task[Run[int]] | asyncio.Task[None]] = []
        self.rounds: list[Round] = []

    async def round(self) -> None:
        """Afterwards the standby is detached, and calls are under way: `recover`, or `stop`."""
        ready = await self._start_all()
        await asyncio.gather(*(self._start() for _ in range(RUNS)))  # whose steps are under way
        await self._pair.detach()
        if len(self.rounds) % 3 == 2:  # their completions come first; otherwise the calls do, most of the time
            await self._pair.waiting()
        starts = [asyncio.create_task(self._start()) for _ in range(RUNS)]
        signals = [asyncio.create_task(self._signal(run)) for run in ready]
        endings = [asyncio.create_task(self._result(run)) for run in ready]
        waiting = await self._pair.waiting(2)
        if len(self.rounds) % 2:
            await self._cancel_one()
        self._pair.restart_in_place()
        await self._pair.replayed()
        on_standby = await self._has(self._pair.on_standby(self._database))
        await self._watch(on_standby)
        unreplicated = await self._has(self._database) - on_standby
        self.rounds.append(Round(waiting, unreplicated.count, self.acknowledged() - on_standby))
        self._calls = [*starts, *signals, *endings]

    async def recover(self) -> None:
        await self._pair.attach()
        async with asyncio.timeout(TIMEOUT_S):
            await asyncio.gather(*self._calls)

    async def stop(self) -> None:
        for task in self._calls:
            task.cancel()
        await asyncio.wait(self._calls)

    async def _watch(self, on_standby: Acknowledged) -> None:
        """Returns as soon as something was acknowledged that the standby, which gets nothing now, does not have."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._window_s
        while loop.time() < end and not (self.acknowledged() - on_standby).count:  # noqa: ASYNC110  the ledger is a file
            await asyncio.sleep(0.1)

    async def lost(self) -> Acknowledged:
        """The standby is the primary now: what of the things that were told it does not have."""
        acknowledged = self.acknowledged()
        await self._pair.promote()
        return acknowledged - await self._has(self._pair.on_standby(self._database))

    async def finish(self, client: Kagzi) -> int:
        """Every run that was acknowledged ends as if nothing had been; answers how many."""

        async def finish(run_id: str) -> None:
            run = client.get(run_id)
            if run_id not in self._signalled and not (await run.status()).ended:
                await run.signal(flows.proceed, 1)
            assert await run.result(timeout=f"{TIMEOUT_S:g}s") == 1

        async with asyncio.timeout(TIMEOUT_S):
            await asyncio.gather(*(finish(run.id) for run in self._started))
        return len(self._started)

    def acknowledged(self) -> Acknowledged:
        steps: set[str] = set()
        for entry in self._ledger.entries():
            number = int(entry.step_id.removeprefix("s"))
            if entry.event == "begin" and number:
                steps.add(f"{entry.run_id}/s{number - 1}")
        return Acknowledged({run.id for run in self._started}, set(self._signalled), steps, set(self._ended))

    # --- calls --------------------------------------------------------------------------------------------------------

    async def _start_all(self) -> list[Run[int]]:
        """Runs that wait for their signal."""
        runs = await asyncio.gather(*(self._start() for _ in range(RUNS)))
        for run in runs:
            await until(lambda run=run: self._is(run, RunStatus.SLEEPING))
        return runs

    async def _is(self, run: Run[int], status: RunStatus) -> bool:
        return await run.status() == status

    async def _start(self) -> Run[int]:
        run = await _insist(lambda: self._client.start(flows.signalled, None))
        self._started.append(run)
        return run

    async def _signal(self, run: Run[int]) -> None:
        try:
            await _insist(lambda: run.signal(flows.proceed, 1))
        except KagziError:
            if not (await run.status()).ended:  # an earlier try had arrived: so nobody was told of this one
                raise
        else:
            self._signalled.add(run.id)

    async def _result(self, run: Run[int]) -> None:
        assert await _insist(lambda: run.result(timeout="60s")) == 1
        self._ended.add(run.id)

    # --- faults -------------------------------------------------------------------------------------------------------

    async def _cancel_one(self) -> None:
        """As an operator would who sees a backend wait."""
        async with connected(self._pair.url) as stranger:
            await stranger.execute(WAITING.replace("count(*)", "pg_cancel_backend(pid)") + " LIMIT 1")

    async def _has(self, database: str) -> Acknowledged:
        async with connected(database) as stranger:
            tables = [await stranger.fetch(each) for each in (_RUNS, _SIGNALLED, _STEPS, _ENDED)]
        return Acknowledged(*({row[0] for row in rows} for rows in tables))


async def _insist(call: Callable[[], Awaitable[T]]) -> T:
    """Again, with a request of its own, until it is acknowledged."""
    while True:
        try:
            return await call()
        except (Unavailable, TimeoutError):
            continue
