"""What is left of a run that has ended: nothing that lives, and nothing that code which it left behind can do."""

import asyncio
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from tests.support.timeouts import LOADED_MACHINE_S

from .fake import fake_server


async def same(value: Any) -> Any:
    return value


@workflow
async def one_by_one(ctx: Context) -> list[int]:
    return [await ctx.step("count").run(same, number) for number in range(3)]


@workflow
async def at_once(ctx: Context) -> list[int]:
    return await ctx.parallel(ctx.step("count").run(same, number) for number in range(3))


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("flow", [one_by_one, at_once], ids=["one by one", "at once"])
async def test_it_is_freed_without_the_garbage_collector(flow: Any) -> None:
    """That goes through everything that lives; a worker with many runs at a time would pay for it with every step."""
    async with fake_server(flow) as server:
        run = server.start(flow)
        port = server.claim(run)
        assert port.execution is not None
        execution = weakref.ref(port.execution)
        async with asyncio.timeout(LOADED_MACHINE_S):
            await port.closed.wait()
            assert run.result == [0, 1, 2]
            port.execution = None  # as a session does then
            while execution() is not None:  # noqa: ASYNC110  nobody tells
                await asyncio.sleep(0)


async def test_what_its_code_left_behind_may_make_tasks_but_no_calls() -> None:
    seen: list[str] = []
    done = asyncio.Event()

    @workflow
    async def leaves_a_timer(ctx: Context) -> int:
        async def late() -> None:
            try:
                seen.append("a task")
                await ctx.step("late").run(same, 1)
            except BaseException as error:  # noqa: BLE001  Suspended is one
                seen.append(type(error).__name__)
            finally:
                done.set()

        loop = asyncio.get_running_loop()
        loop.call_later(1.0, lambda: asyncio.ensure_future(late()))
        return await ctx.step("first").run(same, 1)

    async with fake_server(leaves_a_timer) as server:
        run = await server.run(leaves_a_timer)
        async with asyncio.timeout(LOADED_MACHINE_S):
            await done.wait()
        assert seen == ["a task", "Suspended"]
        assert run.step_ids == ["first"]
