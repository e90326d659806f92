"""A run that one build began and another goes on with, through a real server, on both stores."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kagzi import Context, Kagzi, RunStatus, Signal, Worker, Workflow
from kagzi.core.error_details import ErrorKind
from kagzi.server.app import Server
from tests.acceptance.cluster import until_status
from tests.support.timeouts import LOADED_MACHINE_S

PROCEED = Signal("go", str)
TIMEOUT_S = LOADED_MACHINE_S

bodies: list[str] = []


async def do(name: str) -> str:
    bodies.append(name)
    return name


async def first_code(ctx: Context) -> str:
    await ctx.step("charge").run(do, "charge")
    await ctx.wait_for(PROCEED)
    return await ctx.step("ship").run(do, "ship")


async def charge_in_gather(ctx: Context) -> str:
    async def one() -> str:
        return await ctx.step("charge").run(do, "charge")

    await asyncio.gather(one())
    await ctx.wait_for(PROCEED)
    return await ctx.step("ship").run(do, "ship")


async def wait_in_task_group(ctx: Context) -> str:
    """Not a step: a new wait would take the signal under another id."""

    async def one() -> str:
        return await ctx.wait_for(PROCEED)

    await ctx.step("charge").run(do, "charge")
    async with asyncio.TaskGroup() as group:
        group.create_task(one())
    return await ctx.step("ship").run(do, "ship")


@pytest.mark.parametrize(
    ("code", "step"), [(charge_in_gather, "task[1]/charge"), (wait_in_task_group, "task[1]/go")], ids=["step", "wait"]
)
async def test_a_call_that_moved_into_a_task_is_noticed_before_anything_happens(
    server: Server, code: Callable[[Context], Awaitable[str]], step: str
) -> None:
    bodies.clear()
    address = server.grpc_address

    def worker(code: Callable[[Context], Awaitable[str]], build_id: str) -> Worker:
        return Worker(address, workflows=[Workflow(code, name="order")], build_id=build_id)

    async with Kagzi.connect(address) as client:
        async with worker(first_code, "v1"):
            run = await client.start("order")
            await until_status(run, RunStatus.SLEEPING)
        recorded = await run.steps()

        await run.signal(PROCEED, "now")
        async with worker(code, "v2"):
            await until_status(run, RunStatus.PAUSED)
        problem = (await run.info()).problem
        assert problem is not None
        assert (problem.kind, problem.subject, problem.subject_id) == (ErrorKind.NONDETERMINISM, "step", step)
        assert f"{__file__}:" in problem.message
        assert "was moved" in problem.message
        assert "ctx.changed" in problem.message
        assert bodies == ["charge"]
        assert [each.id for each in await run.steps()] == [each.id for each in recorded]

        async with worker(first_code, "v3"):  # another build: the run is offered to it without being asked
            assert await run.result(timeout=f"{TIMEOUT_S:.0f}s") == "ship"
    assert bodies == ["charge", "ship"]
