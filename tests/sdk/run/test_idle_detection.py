"""Idle: found when, and only when, nothing of the watched tasks can go on by itself."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from kagzi.sdk.execution.idle.detection import IdleDetector
from tests.support.timeouts import LOADED_MACHINE_S

LOOPS = pytest.mark.parametrize(
    "loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


class Web:
    """Tasks that wait for each other in every way, with leaves that wait for `gates`. Everything that happens is
    counted."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.latches: list[asyncio.Future[None]] = []
        self.tasks: set[asyncio.Task[Any]] = set()
        self.happened = 0

    def make(self, branch: Awaitable[Any]) -> "asyncio.Task[Any]":
        async def watched() -> None:
            await branch
            self.happened += 1

        task = asyncio.create_task(watched())
        self.tasks.add(task)
        return task

    async def grow(self, depth: int) -> None:
        self.happened += 1
        kind = self.random.choice(["leaf", "gather", "deep", "group", "wait", "queue", "yield", "shield", "chain"])
        if depth == 0 or kind == "leaf":
            latch: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.latches.append(latch)
            await latch
        else:
            await getattr(self, f"_{kind}")(depth - 1)
        self.happened += 1

    def _children(self, depth: int) -> "list[asyncio.Task[Any]]":
        return [self.make(self.grow(depth)) for _ in range(self.random.randint(1, 3))]

    async def _gather(self, depth: int) -> None:
        await asyncio.gather(*self._children(depth))

    async def _deep(self, depth: int) -> None:
        together: Any = asyncio.gather(*self._children(depth))
        for _ in range(self.random.randint(1, 6)):
            together = asyncio.gather(together)
        await together

    async def _group(self, depth: int) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(2):
                self.tasks.add(group.create_task(self.grow(depth)))

    async def _wait(self, depth: int) -> None:
        open_: set[asyncio.Task[Any]] = set(self._children(depth))
        while open_:
            _, open_ = await asyncio.wait(open_, return_when=asyncio.FIRST_COMPLETED)
            self.happened += 1

    async def _queue(self, depth: int) -> None:
        queue: asyncio.Queue[int] = asyncio.Queue()

        async def feed() -> None:
            await self.grow(depth)
            await queue.put(1)

        task = self.make(feed())
        await queue.get()
        await task

    async def _yield(self, depth: int) -> None:
        for _ in range(self.random.randint(1, 5)):
            await asyncio.sleep(0)
        await self.grow(depth)

    async def _shield(self, depth: int) -> None:
        await asyncio.shield(self.make(self.grow(depth)))

    async def _chain(self, depth: int) -> None:
        for task in self._children(depth):
            await task


@LOOPS
@given(seed=st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_when_it_is_quiet_nothing_happens_any_more(
    loop_factory: Callable[[], asyncio.AbstractEventLoop], seed: int
) -> None:
    async def scenario() -> None:
        web = Web(seed)
        web.make(web.grow(3))
        idle = asyncio.Event()
        watch = IdleDetector(asyncio.get_running_loop(), web.tasks, idle.set)
        while True:
            idle.clear()
            watch.start()
            await asyncio.wait_for(idle.wait(), LOADED_MACHINE_S)
            happened = web.happened
            for _ in range(20):
                await asyncio.sleep(0)
            assert web.happened == happened
            if not web.latches:
                break
            web.latches.pop(web.random.randrange(len(web.latches))).set_result(None)
        assert all(task.done() for task in web.tasks)

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(scenario())


async def test_a_task_that_runs_on_is_waited_for() -> None:
    stop = asyncio.Event()

    async def busy() -> None:
        while not stop.is_set():  # noqa: ASYNC110  the subject
            await asyncio.sleep(0)

    task = asyncio.create_task(busy())
    detected = asyncio.Event()
    watch = IdleDetector(asyncio.get_running_loop(), {task}, detected.set)
    watch.start()
    for _ in range(50):
        await asyncio.sleep(0)
    assert not detected.is_set()
    stop.set()
    await asyncio.wait_for(detected.wait(), LOADED_MACHINE_S)


async def test_starting_again_counts_anew_and_calls_once() -> None:
    calls: list[int] = []
    watch = IdleDetector(asyncio.get_running_loop(), set(), lambda: calls.append(1))
    for _ in range(5):
        watch.start()
        await asyncio.sleep(0)
    assert calls == []
    for _ in range(10):
        await asyncio.sleep(0)
    assert calls == [1]
