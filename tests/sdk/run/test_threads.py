"""Sync bodies: in threads, so many at once, with the variables of their caller."""

import asyncio
import threading
from contextvars import ContextVar, copy_context
from typing import Any

import pytest

from kagzi.sdk.execution.calls.threads import StepThreads
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from kagzi.sdk.workflow.retry import Retry
from tests.support.timeouts import LOADED_MACHINE_S

from .fake import fake_server


async def test_no_more_bodies_at_once_than_threads() -> None:
    running, most = 0, 0
    lock = threading.Lock()
    latch = threading.Barrier(2)

    def body() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        latch.wait(10)
        with lock:
            running -= 1

    @workflow
    async def w(ctx: Context) -> None:
        await asyncio.gather(*(ctx.step("body").run(body) for _ in range(6)))

    async with fake_server(w, threads=2) as server:
        await server.run(w)
    assert most == 2


async def test_the_timeout_of_a_sync_body_begins_when_it_has_a_thread() -> None:
    latch = threading.Event()

    def waits() -> None:
        latch.wait(60)

    def quick() -> str:
        return "in time"

    @workflow(retry=Retry.none())
    async def w(ctx: Context) -> str:
        first = asyncio.create_task(ctx.step("waits").run(waits))
        second = asyncio.create_task(ctx.step("quick", timeout="1s").run(quick))
        await ctx.sleep("longer", "1.1s")
        latch.set()
        await first
        return await second

    async with fake_server(w, threads=1) as server:
        assert (await server.run(w)).result == "in time"


async def test_a_body_sees_the_variables_of_its_workflow_and_may_return_a_coroutine() -> None:
    variable: ContextVar[str] = ContextVar("variable")

    def body() -> Any:
        async def rest() -> str:
            return variable.get()

        return rest()

    @workflow
    async def w(ctx: Context) -> str:
        variable.set("seen")
        return await ctx.step("body").run(body)

    async with fake_server(w) as server:
        assert (await server.run(w)).result == "seen"


async def test_stop_iteration_is_an_error_like_any_other() -> None:
    def body() -> None:
        next(iter(()))

    job = StepThreads(1).begin(body, copy_context(), report_start=False)
    with pytest.raises(RuntimeError, match=r"the step raised StopIteration\(None\)"):
        await asyncio.wait_for(job.done, LOADED_MACHINE_S)
