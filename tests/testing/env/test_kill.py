"""Workers of a test environment are killed at a boundary, and others take their runs over."""

import asyncio
import threading

import pytest

from kagzi import Context, Signal, workflow
from kagzi.testing import TestEnv
from kagzi.testing.env.boundaries import Boundary

done: list[str] = []
proceed = Signal("proceed", str)


async def act(what: str) -> str:
    done.append(what)
    return what


@workflow("child-of-many")
async def child(ctx: Context, what: str) -> str:
    return await ctx.step("act").run(act, what)


@workflow("many")
async def many(ctx: Context) -> list[str]:
    first = await ctx.step("first").run(act, "first")
    await ctx.sleep("pause", "1h")
    second = await ctx.child(child, "second")
    third = await ctx.wait_for(proceed)
    return [first, second, third]


async def _run(env: TestEnv) -> list[str]:
    run = await env.start(many, None)
    await run.signal(proceed, "third")
    return await run.result()


async def _boundaries() -> list[Boundary]:
    passed: list[Boundary] = []
    async with TestEnv.open() as env:
        env._workers.on_boundary = passed.append
        assert await _run(env) == ["first", "second", "third"]
    return passed


async def test_every_boundary_is_told_in_the_same_order_each_time() -> None:
    passed = await _boundaries()
    assert passed == await _boundaries()
    kinds = {(each.what, each.when) for each in passed}
    for what in ("body", "record_step", "sleep", "start_child", "wait_signal", "park", "complete_run"):
        assert {(what, "before"), (what, "after")} <= kinds
    assert passed[0] == Boundary("body", "before", passed[0].run_id, "first", 1)


async def test_a_worker_killed_at_any_boundary_is_replaced_and_nothing_recorded_runs_again() -> None:
    boundaries = await _boundaries()
    for number, boundary in enumerate(boundaries):
        done.clear()
        assert await _killed_at(number) == boundary
        before = [(each.what, each.when, each.run_id) for each in boundaries[: number + 1]]
        unrecorded = before.count(("body", "after", boundary.run_id)) - before.count(
            ("record_step", "after", boundary.run_id)
        )
        assert len(done) == 2 + unrecorded, boundary


async def _killed_at(number: int) -> Boundary:
    passed: list[Boundary] = []
    starting: list[asyncio.Task[None]] = []
    async with TestEnv.open() as env:

        def kill(boundary: Boundary) -> None:
            passed.append(boundary)
            if len(passed) == number + 1:
                env._workers.kill()
                starting.append(asyncio.create_task(env._workers.start()))

        env._workers.on_boundary = kill
        assert await _run(env) == ["first", "second", "third"], passed[number]
    assert starting[0].done()
    return passed[number]


async def test_without_a_worker_a_run_waits_until_another_one_is_there(kagzi_env: TestEnv) -> None:
    run = await kagzi_env.start(many, None)
    await kagzi_env.settle()
    kagzi_env._workers.kill()
    await run.signal(proceed, "third")
    await kagzi_env._workers.start()
    assert await run.result() == ["first", "second", "third"]


@pytest.mark.parametrize("is_sync", [False, True])
async def test_bodies_that_run_are_named(kagzi_env: TestEnv, is_sync: bool) -> None:
    entered, opened, waiting = asyncio.Event(), threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def in_thread() -> None:
        loop.call_soon_threadsafe(entered.set)
        opened.wait(60)

    async def on_loop() -> None:
        entered.set()
        await waiting.wait()

    @workflow("busy")
    async def busy(ctx: Context) -> None:
        await ctx.step("work").run(in_thread if is_sync else on_loop)

    run = await kagzi_env.start(busy, None)
    await entered.wait()
    assert kagzi_env._workers.running() == [f"work of run {run.id}"]
    opened.set()
    waiting.set()
    await run.result()


async def test_workers_killed_while_they_start_are_replaced() -> None:
    async with TestEnv.open() as env:
        env._workers.know("default", [child])
        starting = asyncio.create_task(env._workers.start())
        await asyncio.sleep(0)
        env._workers.kill()
        await starting
        assert await env.run(child, "again") == "again"
