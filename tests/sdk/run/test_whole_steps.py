"""A step whose body is quick is one operation, one command and one acknowledgement; and nobody can tell, but by
counting."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from kagzi.core.error_details import ErrorCode
from kagzi.core.run.commands import CompleteStep, RecordStep
from kagzi.core.states import RunStatus, StepStatus
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from kagzi.sdk.workflow.retry import Retry
from tests.support.timeouts import LOADED_MACHINE_S

from .fake import FakeServer, fake_server, refused
from .fake_run import FakeRun

STEPS = 10


async def echo(number: int) -> int:
    return number


@workflow
async def in_turn(ctx: Context) -> int:
    return sum([await ctx.step("one").run(echo, number) for number in range(STEPS)])


@workflow
async def side_by_side(ctx: Context) -> int:
    return sum(await asyncio.gather(*(ctx.step("one").run(echo, number) for number in range(STEPS))))


def counting(server: FakeServer) -> Counter[str]:
    """Commands by name."""
    counts: Counter[str] = Counter()

    def count(command: Any) -> None:
        counts[type(command).__name__] += 1

    server.refuse = count
    return counts


@pytest.mark.parametrize("flow", [in_turn, side_by_side])
async def test_a_quick_step_is_one_command_and_one_acknowledgement(flow: Any) -> None:
    async with fake_server(flow) as server:
        counts = counting(server)
        run = server.start(flow)
        port = server.claim(run)
        await server.until_left(run)
        assert run.result == sum(range(STEPS))
        assert counts == {"RecordStep": STEPS, "CompleteRun": 1}
        assert port.sends == STEPS + 1
        assert port.foreign_seq == 0
        assert [(step.begun_seq, step.seq) for step in run.steps.values()] == [
            (number, number + 1) for number in range(1, 2 * STEPS, 2)
        ]


async def test_the_same_is_recorded_in_one_operation_and_in_two() -> None:
    seen: list[object] = []
    for whole in (True, False):
        async with fake_server(in_turn) as server:
            server.records_whole_steps = whole
            run = await server.run(in_turn)
            seen.append([(step.step_id, step.begun_seq, step.seq, step.output) for step in run.steps.values()])
    assert seen[0] == seen[1]


async def test_a_body_that_takes_its_time_is_seen_as_begun() -> None:
    release = asyncio.Event()

    async def long() -> str:
        await release.wait()
        return "done"

    @workflow
    async def flow(ctx: Context) -> str:
        return (await asyncio.gather(ctx.step("long").run(long), ctx.step("quick").run(echo, 1)))[0]

    async with fake_server(flow) as server:
        counts = counting(server)
        recorded = asyncio.Event()
        server.moment = lambda port, what: recorded.set() if what == "after record_step" else None
        run = server.start(flow)
        server.claim(run)
        await asyncio.wait_for(recorded.wait(), LOADED_MACHINE_S)
        assert run.steps["long"].status is StepStatus.RUNNING
        release.set()
        await server.until_left(run)
        assert run.result == "done"
        assert counts == {"BeginStep": 1, "RecordStep": 1, "CompleteStep": 1, "CompleteRun": 1}


async def test_an_output_that_the_server_does_not_take_fails_its_step() -> None:
    """Nothing of a step is recorded then: it begins once more, in order to fail."""

    @workflow
    async def flow(ctx: Context) -> str:
        results = await asyncio.gather(
            ctx.step("much", retry=Retry.none()).run(echo, 1), ctx.step("little").run(echo, 2), return_exceptions=True
        )
        return " ".join(str(each) for each in results)

    def refuse(command: Any) -> Any:
        too_much = isinstance(command, RecordStep | CompleteStep) and command.step_id == "much"
        return refused(ErrorCode.INVALID_ARGUMENT, "output has too many bytes") if too_much else None

    seen: list[object] = []
    for whole in (True, False):
        async with fake_server(flow) as server:
            server.records_whole_steps = whole
            server.refuse = refuse
            run = await server.run(flow)
            assert run.status is RunStatus.COMPLETED
            assert "output has too many bytes" in run.result
            assert run.steps["much"].status is StepStatus.FAILED
            seen.append((run.result, {name: step.error for name, step in run.steps.items()}))
    assert seen[0] == seen[1]


async def test_a_step_that_may_run_once_is_begun_before_its_body_runs() -> None:
    @workflow
    async def flow(ctx: Context) -> int:
        return await ctx.step("once", once=True).run(echo, 1)

    async with fake_server(flow) as server:
        counts = counting(server)
        await server.run(flow)
        assert counts == {"BeginStep": 1, "CompleteStep": 1, "CompleteRun": 1}


async def test_a_failure_is_said_in_two() -> None:
    tries: list[int] = []

    async def fails() -> int:
        tries.append(1)
        if len(tries) < 3:
            raise OSError("not yet")
        return len(tries)

    @workflow
    async def flow(ctx: Context) -> int:
        return await ctx.step("flaky", retry=Retry.fixed(3, "0s")).run(fails)

    async with fake_server(flow) as server:
        counts = counting(server)
        run = await server.run(flow)
        assert run.result == 3
        assert counts == {"BeginStep": 2, "FailStep": 2, "RecordStep": 1, "CompleteRun": 1}
        assert run.steps["flaky"].attempt == 3


async def test_a_crash_shows_nothing_of_a_body_whose_begin_had_not_left() -> None:
    """As before: the begin travels with what follows, and if that is lost nothing says that the body ran."""

    @workflow
    async def flow(ctx: Context) -> int:
        await ctx.step("first").run(echo, 1)
        return await ctx.step("second").run(echo, 2)

    for whole in (True, False):
        async with fake_server(flow) as server:
            server.records_whole_steps = whole

            def crash(port: Any, what: str) -> None:
                first = port.run.steps.get("first")
                if first is not None and first.seq and what.startswith("before"):
                    port.crashed.set()

            server.moment = crash
            run: FakeRun = server.start(flow)
            port = server.claim(run)
            await asyncio.wait_for(port.crashed.wait(), LOADED_MACHINE_S)
            server.moment = lambda port, what: None
            assert {name: step.status for name, step in run.steps.items()} == {"first": StepStatus.COMPLETED}
            assert port.execution is not None
            port.execution.abandon("it crashed")
            await server.finish(run)
            assert run.result == 2
            assert all(step.attempt == 1 for step in run.steps.values())
