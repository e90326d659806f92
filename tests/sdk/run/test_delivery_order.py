"""Results are delivered in the order of their seqs, live as on replay, also those that somebody else recorded for the
run.

Something comes for the run at one moment of its life, just before or just after one of its own operations is durable,
and the notice of it is late: the run hears of everything of its own first.
"""

import asyncio
from typing import Any

import pytest

from kagzi.core.states import RunStatus
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from kagzi.sdk.workflow.signals import Signal

from .fake import FakePort, FakeServer, fake_server
from .fake_run import FakeRun

NUMBER = Signal("number", int)
LATE = 60  # passes of the loop: longer than two steps take


async def body() -> None:
    await asyncio.sleep(0)


@workflow
async def child(ctx: Context) -> str:
    await ctx.sleep("for ever", "1000 days")
    return "done"


@workflow
async def observer(ctx: Context) -> list[str]:
    """The ids of its steps, in the order in which it sees their results."""
    seen: list[str] = []

    async def steps(name: str) -> None:
        for n in range(1, 4):
            await ctx.step(name).run(body)
            seen.append(name if n == 1 else f"{name}#{n}")

    async def signals() -> None:
        for step_id in ("number", "number#2"):
            await ctx.wait_for(NUMBER)
            seen.append(step_id)

    async def a_child() -> None:
        await ctx.child(child)
        seen.append("child")

    async with asyncio.TaskGroup() as group:
        for branch in (steps("a"), steps("b"), signals(), a_child()):
            group.create_task(branch)
    return seen


def send_signal(server: FakeServer, run: FakeRun) -> None:
    server.signal(run, NUMBER.name, 1)


def end_child(server: FakeServer, run: FakeRun) -> None:
    for each in server.children_of(run):
        server.end(each, RunStatus.COMPLETED, output=b'"done"')


EVENTS = {"signal": send_signal, "child": end_child}


async def play(event: str, at: int) -> tuple[FakeServer, FakeRun, int]:
    """The run after `event` has come at moment number `at` of its life. What it still waits for comes when it
    sleeps."""
    moments = 0

    def moment(port: FakePort, what: str) -> None:
        nonlocal moments
        moments += 1
        if moments == at and port.run is run and not run.status.ended:
            EVENTS[event](server, run)

    async with fake_server(observer, child) as server:
        server.notice_latency, server.results_page = lambda: LATE, 1_000
        server.moment = moment
        run = server.start(observer)
        while not run.status.ended:
            server.claim(run)
            await server.until_left(run)
            if run.status is RunStatus.SLEEPING:
                send_signal(server, run)
                end_child(server, run)
        assert run.status is RunStatus.COMPLETED, run.problem or run.error
        live, log = run.result, list(run.log)
        assert live == ids_by_seq(run)
        run.status = RunStatus.PENDING
        server.claim(run)
        await server.until_left(run)
        assert (run.status, run.result) == (RunStatus.COMPLETED, live), run.problem
    return server, run, log.count("FetchResults")


def ids_by_seq(run: FakeRun) -> list[Any]:
    """Without the scopes of the tasks."""
    steps = sorted(run.steps.values(), key=lambda step: step.seq)
    return [step.step_id.rpartition("/")[2] for step in steps]


@pytest.mark.parametrize("event", EVENTS)
async def test_whenever_something_comes_it_is_delivered_in_its_place(event: str) -> None:
    fetches = [(await play(event, at))[2] for at in range(1, 40)]
    assert any(fetches), "nothing came between the run's own operations"
    assert max(fetches) <= 2, "once to be sure of the order, once because of the notice"


async def test_a_run_for_which_nothing_comes_meanwhile_fetches_nothing() -> None:
    server, run, fetches = await play("signal", at=0)
    assert fetches == 0
    # Two steps a message, and what opens and closes the waits.
    assert server.messages <= len(run.log)
