"""What is refused of a workflow's calls is raised at the call: handlers and cleanup see it, and so does every replay,
whatever is killed when, and whatever would be accepted by then."""

import asyncio
import contextlib
import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kagzi import Context, workflow
from kagzi.core.limits import Settings
from kagzi.core.records import Payload, RunEnd, StepRecord
from kagzi.core.run import commands, refusals
from kagzi.core.run.commands import StartRequest
from kagzi.core.run.outcomes import Refused
from kagzi.core.states import RunStatus, StepKind, StepStatus
from kagzi.core.workflow_types import admission
from kagzi.engine import Engine
from kagzi.engine.services.paging import PageAsk
from kagzi.sdk.worker.registry import Registry
from kagzi.system import SystemIds, SystemRng
from kagzi.testing import History
from tests.engine.fakes import Exchange, MovableClock
from tests.support.replaying import check_replays
from tests.support.timeouts import LOADED_MACHINE_S

from .in_process import InProcessWorker
from .refused_calls import (
    BY_NAME,
    CELLS,
    FIELDS,
    KINDS,
    NOT_CALLS,
    NOT_OF_A_WORKER,
    NOT_RAISED,
    SERVER_PAYLOAD_BYTES,
    STEPS,
    Cell,
    may_end,
    may_end_events,
    nothing,
    small,
    typed,
)
from .test_every_boundary import open_store

pytestmark = pytest.mark.timeout(300)
AT_ONCE = 10
ACCEPTED = b'"accepted"'
SEEN: dict[str, list[object]] = {}
"""What the handlers of a run saw, each time they were executed."""


@workflow("saga", version=1)
async def saga(ctx: Context, name: str) -> Any:
    await ctx.step("book").run(nothing)
    try:
        try:
            await BY_NAME[name].attempt(ctx)
        finally:
            async with ctx.cleanup():
                await ctx.step("undo").run(nothing)
    except Exception as error:  # noqa: BLE001  whatever it is, it must be the same each time
        retry_after = getattr(error, "retry_after", None)
        seen = [type(error).__name__, str(error), getattr(error, "metadata", {}), retry_after and str(retry_after)]
        SEEN.setdefault(ctx.run_id, []).append(seen)
        return seen
    return "accepted"


@workflow("saga", version=2)
async def next_saga(ctx: Context, name: str) -> Any:
    return "accepted"


REGISTRY = Registry([saga, next_saga, small, typed])


class Performance:
    """One run of the saga on two servers that share a store; the worker may die at one moment, and from then on what
    was refused is accepted."""

    def __init__(self, engines: Sequence[Engine], clock: MovableClock, namespace: str, cell: Cell) -> None:
        self._engines = engines
        self._clock = clock
        self.namespace = namespace
        self._cell = cell
        self._crash_at: int | None = None
        self.moments: list[str] = []
        self.run_id = ""
        self.was_recorded = False
        self.crashed = False
        self._is_over = False
        self._workers = 0
        self._worker: InProcessWorker | None = None
        self._dying: InProcessWorker | None = None

    async def play(self, crash_at: int | None = None) -> RunEnd:
        self._crash_at = crash_at
        engine = self._engines[0]
        await self._new_worker()
        if self._cell.arrangement is not None:
            await self._cell.arrangement.refuse(engine, self.namespace)
        name = self._cell.name
        request = StartRequest(
            namespace=self.namespace, workflow_type="saga", version="1", input=Payload(f'"{name}"'.encode())
        )
        self.run_id = (await engine.runs.start(request)).run_id
        try:
            async with asyncio.timeout(LOADED_MACHINE_S):
                return await self._until_ended()
        except TimeoutError as error:
            error.add_note(f"{name}, crash at {crash_at}: {self.moments[-12:]}, {await self.steps()}")
            raise
        finally:
            self._is_over = True
            may_end(self.namespace).set()
            assert self._worker is not None
            if self._dying is self._worker:  # after the last record, so the run has ended meanwhile
                await self._worker.is_dead.wait()
            await (self._worker.die() if self._worker.is_dead.is_set() else self._worker.leave())

    async def _until_ended(self) -> RunEnd:
        waiting = self._engines[0].runs.wait(
            self.namespace, run_id=self.run_id, timeout_ms=int(LOADED_MACHINE_S * 1_000)
        )
        ended = asyncio.create_task(waiting)
        try:
            while not ended.done():
                assert self._worker is not None
                await asyncio.wait((ended, self._worker.working), return_when=asyncio.FIRST_COMPLETED)
                if self._worker.working.done():
                    self._worker.working.result()
                    await self._worker.die()
                    await self._new_worker()
        finally:
            ended.cancel()
        end = await ended
        assert isinstance(end, RunEnd), f"the run hangs, it is {end}"
        return end

    async def _new_worker(self) -> None:
        engine = self._engines[self._workers % len(self._engines)]
        self._workers += 1
        self._worker = InProcessWorker(engine, self._clock, self.namespace, REGISTRY, self._moment)
        await self._worker.open()

    def _moment(self, what: str) -> Callable[[], Awaitable[None]] | None:
        number = len(self.moments)
        self.moments.append(what)
        return self._crash if number == self._crash_at else None

    async def _crash(self) -> None:
        if self._is_over:
            return
        self.crashed, self._dying = True, self._worker
        self.was_recorded = bool(self.run_id) and await self.recorded() is not None
        if self._cell.arrangement is not None:
            await self._cell.arrangement.relax(self._engines[0], self.namespace)
            for engine in self._engines:
                engine.versions.forget_all()
        assert self._worker is not None
        self._worker.is_dead.set()

    async def steps(self) -> dict[str, StepRecord]:
        page = await self._engines[0].steps.list(
            self.namespace, self.run_id, name=None, page=PageAsk(size=100), payloads=True
        )
        return {step.step_id: step for step in page.rows}

    async def recorded(self) -> StepRecord | None:
        """The step that holds the refusal, in whatever branch."""
        matching = [
            step for name, step in (await self.steps()).items() if name.rpartition("/")[2] == self._cell.recorded
        ]
        return matching[0] if matching and matching[0].status is StepStatus.FAILED else None

    async def check(self, end: RunEnd) -> None:
        """The handler saw the refusal, the same each time, and the cleanup was executed."""
        cell = self._cell
        assert end.status is RunStatus.COMPLETED, f"{end.error}"
        accepted = end.continued_as is not None or (end.output is not None and end.output.data == ACCEPTED)
        if self.crashed and cell.arrangement is not None and not self.was_recorded and accepted:
            return  # nobody had seen the refusal, and then there was room
        assert self.run_id in SEEN, f"accepted: crashed {self.crashed}, recorded {self.was_recorded}, {self.moments}"
        seen = SEEN[self.run_id]
        assert seen.count(seen[0]) == len(seen), seen
        assert seen[0][0] == cell.error.__name__, seen  # type: ignore[index]
        undo = (await self.steps())["undo"]
        assert (undo.status, undo.kind) == (StepStatus.COMPLETED, StepKind.FUNCTION)
        if cell.recorded:
            step = await self.recorded()
            assert step is not None, f"{cell.recorded} is not recorded: {await self.steps()}"
            child = cell.recorded in (small.name, typed.name)
            assert step.kind is (StepKind.CHILD if child else StepKind.FUNCTION)
            assert step.error is not None
        lines = [line async for line in self._engines[0].transfers.export(self.namespace, self.run_id)]
        history = History.read(lines, self.run_id, namespace=self.namespace)
        await check_replays(history, saga, times=2)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "kagzi.db") if request.param == "sqlite" else request.getfixturevalue("migrated_postgres_url")


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Wherever the limit is used: fifty thousand steps would take a while."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("kagzi.core", "kagzi.store")) and hasattr(module, "STEPS_PER_RUN"):
            monkeypatch.setattr(module, "STEPS_PER_RUN", STEPS)
    yield
    SEEN.clear()
    may_end_events.clear()


@asynccontextmanager
async def two_servers(database: str) -> AsyncIterator[tuple[list[Engine], MovableClock]]:
    store, clock, exchange = await open_store(database), MovableClock(), Exchange()
    settings = Settings(
        lease_ms=240_000,
        heartbeat_ms=120_000,
        reconnect_grace_ms=1,
        poll_interval_ms=600_000,
        payload_bytes=SERVER_PAYLOAD_BYTES,
    )
    engines = [
        Engine(
            store,
            exchange.bus(),
            clock=clock,
            ids=SystemIds(),
            rng=SystemRng(),
            settings=settings,
            server_id=f"server-{number}",
        )
        for number in range(2)
    ]
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(store.close)
        for engine in engines:
            await engine.start()
            stack.push_async_callback(engine.stop)
        clock.ahead_us += settings.lease_ms * 1_000  # a server that has just begun ends no lease for one term
        yield engines, clock


def _moments_to_crash(cell: Cell, moments: Sequence[str]) -> Sequence[int]:
    """Each moment where others decide and change their mind; else one after the call."""
    if cell.arrangement is not None and cell.call in ("child", "continue_as_new"):
        return range(len(moments))
    return [len(moments) - 3]


async def test_every_refusal_of_every_call_is_raised_at_the_call_and_recorded(database: str) -> None:
    failures: list[str] = []
    at_once = asyncio.Semaphore(AT_ONCE)

    async with two_servers(database) as (engines, clock):

        async def perform(number: int, cell: Cell, crash_at: int | None = None) -> Performance:
            crash = "" if crash_at is None else f"-{crash_at}"
            performance = Performance(engines, clock, f"n{number}{crash}", cell)
            async with at_once:
                end = await performance.play(crash_at)
                await performance.check(end)
            return performance

        async def try_all(number: int, cell: Cell) -> None:
            try:
                first = await perform(number, cell)
                crashed = [await perform(number, cell, moment) for moment in _moments_to_crash(cell, first.moments)]
                if cell.recorded:
                    assert any(each.was_recorded for each in crashed), "no crash came after the refusal"
            except Exception as error:  # noqa: BLE001  all cells of the table are reported
                notes = getattr(error, "__notes__", [])
                failures.append(f"{cell.name}: {type(error).__name__}: {error} {notes}")

        await asyncio.gather(*(try_all(number, cell) for number, cell in enumerate(CELLS)))
    assert not failures, "\n\n".join(failures)


def test_the_table_has_every_call_of_a_context() -> None:
    public = {name for name in dir(Context) if not name.startswith("_")}
    calls = {cell.call for cell in CELLS}
    assert public - NOT_CALLS.keys() == calls
    assert not NOT_CALLS.keys() & calls


def test_the_table_has_every_kind_of_refusal() -> None:
    declared = {
        name
        for module in (refusals, admission)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__
        and not name.startswith("_")
        and function.__annotations__["return"] is Refused
    } | {"child_conflict"}
    declared.remove("refused")
    assert declared == KINDS.keys() | NOT_RAISED.keys() | NOT_OF_A_WORKER
    in_table = {cell.refusal for cell in CELLS}
    for kinds in KINDS.values():
        assert in_table.issuperset(kinds)


def test_the_table_has_every_field_of_the_commands_that_calls_send() -> None:
    in_table = {cell.refusal for cell in CELLS}
    for name, fields in FIELDS.items():
        command = getattr(commands, name)
        assert set(command.__struct_fields__) - {"run", "lease"} == fields.keys() - {"run"}, name
        assert in_table.issuperset(filter(None, fields.values())), name
    sent = {"RecordStep", "FailStep", "FinishSleep", "BeatStep", "FetchResults"}  # of calls that are begun, or bodies
    sent |= {"Park", "CompleteRun", "FailRun", "CancelRun", "ReleaseRun", "PauseDiverged"}  # no call sends these
    worker_commands = {
        name
        for name, each in inspect.getmembers(commands, inspect.isclass)
        if issubclass(each, commands.WorkerCommand) and not each.__subclasses__() and name != "ResultsCommand"
    }
    assert worker_commands == FIELDS.keys() - {"StartRun"} | sent
