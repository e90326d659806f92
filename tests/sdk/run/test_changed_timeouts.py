"""A wait under way takes the timeout that the code has now, counted from when the wait began."""

from typing import Any

import pytest

from kagzi.core.states import RunStatus, StepStatus
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.signals import Signal
from kagzi.sdk.workflow.workflow import Workflow

from .fake import FakeServer, fake_server
from .fake_run import FakeRun

HOUR_S = 3_600
NOTHING = "nothing came"
proceed = Signal("go", str)
other = Signal("other", str)


class Code:
    """A workflow whose timeout a deploy changes."""

    def __init__(self, timeout: str | None) -> None:
        self.timeout = timeout
        self.workflow: Workflow[None, Any] = Workflow(self._wait, name="waits")

    async def _wait(self, ctx: Context) -> Any:
        if self.timeout is None:
            return await ctx.wait_for(proceed)
        return await ctx.wait_for(proceed, timeout=self.timeout, default=NOTHING)

    def deploy(self, server: FakeServer, timeout: str | None) -> None:
        self.timeout = timeout
        server.executor.close()
        server.executor = server.new_executor()


class Beside(Code):
    """The same beside another wait, which wakes the run."""

    async def _wait(self, ctx: Context) -> Any:
        return await ctx.parallel(super()._wait(ctx), ctx.wait_for(other))


async def asleep(server: FakeServer, code: Code) -> FakeRun:
    run = server.start(code.workflow)
    await replay(server, run)
    assert run.status is RunStatus.SLEEPING
    return run


async def replay(server: FakeServer, run: FakeRun) -> None:
    server.claim(run)
    await server.until_left(run)


def hours_until_due(server: FakeServer, run: FakeRun) -> float | None:
    return None if run.due_at is None else round((run.due_at - server.now) / 1_000_000 / HOUR_S, 2)


@pytest.mark.parametrize(
    ("before", "after", "due_in"),
    [(None, "5h", 3.0), ("3h", "5h", 3.0), ("5h", "3h", 1.0), ("3h", None, None)],
    ids=["added", "longer", "shorter", "removed"],
)
async def test_a_wait_takes_the_timeout_of_the_new_code_from_when_it_began(
    before: str | None, after: str | None, due_in: float | None
) -> None:
    code = Code(before)
    async with fake_server(code.workflow, kept_runs_max=0) as server:
        run = await asleep(server, code)
        server.advance(2 * HOUR_S)
        code.deploy(server, after)
        await replay(server, run)
        assert run.status is RunStatus.SLEEPING
        assert hours_until_due(server, run) == due_in
        if due_in is None:
            server.signal(run, "go", "at last")
            await server.finish(run)
            assert run.result == "at last"
        else:
            server.advance(due_in * HOUR_S + 1)
            await replay(server, run)
            assert run.result == NOTHING


async def test_a_timeout_that_is_over_already_ends_the_wait_at_once_and_so_on_replay() -> None:
    code = Code(None)
    async with fake_server(code.workflow, kept_runs_max=0) as server:
        run = await asleep(server, code)
        server.advance(2 * HOUR_S)
        code.deploy(server, "1h")
        await replay(server, run)
        assert run.result == NOTHING
        assert run.steps["go"].status is StepStatus.FAILED
        run.status = RunStatus.PENDING
        code.deploy(server, None)
        code.timeout = "9h"
        await replay(server, run)
        assert run.result == NOTHING


async def test_a_wait_with_a_result_keeps_it() -> None:
    code = Code(None)
    async with fake_server(code.workflow, kept_runs_max=0) as server:
        run = await asleep(server, code)
        server.signal(run, "go", "in time")
        server.advance(2 * HOUR_S)
        code.deploy(server, "1h")
        await replay(server, run)
        assert run.result == "in time"


async def test_a_signal_that_comes_before_the_server_knows_the_timeout_wins() -> None:
    code = Code(None)
    async with fake_server(code.workflow, kept_runs_max=0) as server:
        run = await asleep(server, code)
        server.advance(2 * HOUR_S)
        code.deploy(server, "1h")
        server.moment = lambda _, what: server.signal(run, "go", "just") if what == "before wait_signal" else None
        await replay(server, run)
        assert run.result == "just"
        assert run.steps["go"].status is StepStatus.COMPLETED


async def test_the_server_is_told_only_when_the_timeout_has_changed() -> None:
    code = Beside("5h")
    async with fake_server(code.workflow, kept_runs_max=0) as server:
        run = await asleep(server, code)
        server.signal(run, "other", "x")
        code.deploy(server, "5h")
        sent: list[str] = []
        server.moment = lambda _, what: sent.append(what)
        await replay(server, run)
        assert run.status is RunStatus.SLEEPING
        assert "before wait_signal" not in sent
        server.moment = lambda _, what: None
        server.signal(run, "go", "y")
        await server.finish(run)
        assert run.result == ["y", "x"]


async def test_with_several_tasks_the_result_of_a_changed_wait_is_delivered_in_order() -> None:
    code = Beside(None)
    async with fake_server(code.workflow, kept_runs_max=0) as server:
        run = await asleep(server, code)
        server.advance(2 * HOUR_S)
        code.deploy(server, "1h")
        server.signal(run, "other", "x")
        await replay(server, run)
        assert run.result == [NOTHING, "x"]
