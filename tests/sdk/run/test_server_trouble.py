"""A server that cannot record what a run does: the run is handed back and done elsewhere, or later. It never fails by
it."""

from datetime import timedelta

import pytest

from kagzi.core.error_details import ErrorCode, ErrorDetail
from kagzi.core.errors import InternalError, KagziError
from kagzi.core.run.commands import Command, ReleaseRun, StartRun
from kagzi.core.states import RunStatus
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from kagzi.sdk.workflow.retry import Retry
from kagzi.sdk.workflow.signals import Signal

from .fake import FakePort, FakeServer, fake_server, refused

PROCEED = Signal("go", int)
QUICK = Retry(max_attempts=2, initial_interval=timedelta(milliseconds=1))
PROBLEM = "internal error, incident 4711. Look for this number in the server's log."


async def give(value: int) -> int:
    return value


async def late(ctx: Context) -> int:
    await ctx.sleep("late", "4h")
    return 0


async def stumble() -> int:
    raise OSError("not today")


@workflow
async def small(ctx: Context, value: int) -> int:
    return await ctx.step("s").run(give, value)


@workflow
async def everything(ctx: Context) -> int:
    """An operation of each kind that a worker knows."""
    ctx.set_status("begun")
    total = await ctx.step("first").run(give, 1)
    total += sum(await ctx.parallel(ctx.step("a").run(give, 10), ctx.step("b").run(give, 20)))
    try:
        await ctx.step("bad").retry(QUICK).run(stumble)
    except KagziError:
        total += 100
    await ctx.sleep("nap", "1h")
    total += await ctx.wait_for(PROCEED)
    total += await ctx.child(small, 5_000)
    total += await ctx.race(ctx.step("x").run(give, 1), late(ctx))
    if ctx.changed("patched"):
        total += 10_000
    return total


class Diagnostic:
    """From the nth operation on nothing of that lease can be recorded, but its release."""

    def __init__(self, nth: int) -> None:
        self._left = nth
        self._lease: tuple[str, int] | None = None
        self.hit = ""

    def __call__(self, command: Command) -> ErrorDetail | None:
        if isinstance(command, (ReleaseRun, StartRun)):
            return None
        lease = command.run.run_id, command.lease.counter
        self._left -= 1
        if self._left == 0:
            self._lease, self.hit = lease, type(command).__name__
        return refused(ErrorCode.INTERNAL, PROBLEM) if lease == self._lease else None


@pytest.mark.parametrize("whole", [True, False])
async def test_whatever_could_not_be_recorded_is_done_again(whole: bool) -> None:
    hit: set[str] = set()
    nth = 0
    while True:
        nth += 1
        async with fake_server(everything, small) as server:
            trouble = Diagnostic(nth)
            server.refuse = trouble
            server.records_whole_steps = whole
            run = server.start(everything)
            server.signal(run, "go", 1_000)
            await server.finish(run)
            assert (run.status, run.error) == (RunStatus.COMPLETED, None), f"after operation {nth}, a {trouble.hit}"
            assert run.result == 16_132
            if not trouble.hit:
                break
            assert any("ReleaseRun" in each.log for each in server.runs)
            hit.add(trouble.hit)
    assert hit >= {
        "BeginStep",
        "BeginSleep",
        "CompleteRun",
        "RecordStep" if whole else "CompleteStep",
        "DecideRace",
        "FailStep",
        "Park",
        "RecordPatch",
        "SetStatus",
        "StartChild",
        "WaitSignal",
    }


async def test_an_error_of_the_code_that_could_not_be_recorded_is_recorded_later() -> None:
    @workflow
    async def failing(ctx: Context) -> None:
        raise OSError("of the code")

    async with fake_server(failing) as server:
        server.refuse = Diagnostic(1)
        run = server.start(failing)
        server.claim(run)
        await server.until_left(run)
        assert run.status is RunStatus.PENDING
        await server.finish(run)
        assert run.error is not None
        assert run.error.message == "of the code"


async def test_a_release_that_cannot_be_recorded_leaves_the_run_to_its_lease() -> None:
    async with fake_server(small) as server:
        server.refuse = lambda _: refused(ErrorCode.INTERNAL, PROBLEM)
        run = server.start(small, 1)
        port = server.claim(run)
        await port.closed.wait()
        assert run.status is RunStatus.RUNNING
        assert server.executor.active == 0


async def test_a_history_that_cannot_be_read_hands_the_run_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async with fake_server(small) as server:
        run = server.start(small, 1)
        await leave_half(server)
        monkeypatch.setattr(FakePort, "fetch_history", cannot_fetch)
        server.claim(run, page=0)
        await server.until_left(run)
        assert run.status is RunStatus.PENDING
        monkeypatch.undo()
        await server.finish(run)
        assert run.result == 1


async def leave_half(server: FakeServer) -> None:
    """A worker began the step, and was lost."""
    (run,) = server.runs
    port = server.claim(run, crash_after=1)
    await port.crashed.wait()
    assert port.execution is not None
    port.execution.abandon("lost")
    await port.closed.wait()


async def cannot_fetch(port: FakePort, after: int, known_seq: int = 0) -> list[object]:
    raise InternalError(PROBLEM)
