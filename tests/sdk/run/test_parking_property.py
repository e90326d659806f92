"""Random programs of producers and consumers: whatever lies between a signal and who waits for it, the run sleeps, goes
on with the same result whether its coroutine was kept or unwound, and runs no recorded step again."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from random import Random
from typing import Any

import anyio
import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from kagzi.core.states import RunStatus
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from kagzi.sdk.workflow.signals import Signal

from .fake import FakeServer, fake_server

PROCEED = Signal("go", int)
LOOPS = pytest.mark.parametrize(
    "loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)
EXAMPLES = int(os.environ.get("KAGZI_TEST_PROGRAMS", "25"))
KINDS = ("signal", "step", "queue", "generator", "event", "future", "stream", "shield", "group", "gather", "lock")


class Plumbing:
    """Passes on numbers that come from signals, through links that the seed chooses: the same ones on every replay."""

    def __init__(self, ctx: Context, seed: int, bodies: Counter[str]) -> None:
        self._ctx = ctx
        self._random = Random(seed)
        self._bodies = bodies

    async def value(self, depth: int) -> int:
        kind = self._random.choice(KINDS[2:] if depth else KINDS[:1])
        return await getattr(self, f"_{kind}")(depth - 1)

    async def _signal(self, depth: int) -> int:
        return await self._step(await self._ctx.wait_for(PROCEED))

    async def _step(self, number: int) -> int:
        name = f"record-{self._random.randrange(3)}"

        async def body() -> int:
            self._bodies[name] += 1
            return number + 1

        return await self._ctx.step(name).run(body)

    async def _queue(self, depth: int) -> int:
        queue: asyncio.Queue[int] = asyncio.Queue(1)

        async def feed() -> None:
            await queue.put(await self.value(depth))

        task = asyncio.create_task(feed())
        number = await queue.get()
        await task
        return number

    async def _generator(self, depth: int) -> int:
        queue: asyncio.Queue[int] = asyncio.Queue()

        async def feed() -> None:
            queue.put_nowait(await self.value(depth))

        async def numbers() -> AsyncGenerator[int]:
            while True:
                yield await queue.get()

        task = asyncio.create_task(feed())
        async with aclosing(numbers()) as each:
            number = await anext(each)
        await task
        return number

    async def _event(self, depth: int) -> int:
        event, received = asyncio.Event(), list[int]()

        async def setter() -> None:
            received.append(await self.value(depth))
            event.set()

        task = asyncio.create_task(setter())
        await event.wait()
        await task
        return received[0]

    async def _future(self, depth: int) -> int:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def setter() -> None:
            number = await self.value(depth)
            future.set_result(number)

        task = asyncio.create_task(setter())
        number = await future
        await task
        return number

    async def _stream(self, depth: int) -> int:
        send, receive = anyio.create_memory_object_stream[int](0)

        async def feed() -> None:
            async with send:
                await send.send(await self.value(depth))

        async with anyio.create_task_group() as group, receive:
            group.start_soon(feed)
            return sum([number async for number in receive])

    async def _shield(self, depth: int) -> int:
        return await asyncio.shield(asyncio.create_task(self.value(depth)))

    async def _group(self, depth: int) -> int:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.value(depth)) for _ in range(2)]
        return sum(task.result() for task in tasks)

    async def _gather(self, depth: int) -> int:
        return sum(await asyncio.gather(self.value(depth), self.value(depth)))

    async def _lock(self, depth: int) -> int:
        lock = asyncio.Lock()

        async def holder() -> int:
            async with lock:
                return await self.value(depth)

        task = asyncio.create_task(holder())
        await asyncio.sleep(0)
        async with lock:
            return await task


async def played(seed: int, depth: int, *, kept: int) -> tuple[Any, Counter[str], int]:
    """Result, bodies and claims of the program, which gets a signal whenever it sleeps."""
    bodies: Counter[str] = Counter()

    @workflow
    async def plumbing(ctx: Context) -> int:
        return await Plumbing(ctx, seed, bodies).value(depth)

    async with fake_server(plumbing, kept_runs_max=kept, kept_s=100_000) as server:
        run = server.start(plumbing)
        await signalled_to_its_end(server, run)
        steps = sum(step.step_id.rpartition("/")[2].startswith("record") for step in run.steps.values())
        assert bodies.total() == steps, "a recorded step ran again"
        return run.result, bodies, run.lease


async def signalled_to_its_end(server: FakeServer, run: Any) -> None:
    for number in range(100):
        server.claim(run)
        await server.until_left(run)
        if run.status is not RunStatus.SLEEPING:
            break
        server.signal(run, PROCEED.name, number)
    assert run.status is RunStatus.COMPLETED, run


@LOOPS
def test_it_parks_and_comes_to_the_same_end(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    parked = 0

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(seed=st.integers(0, 2**32), depth=st.integers(1, 4))
    def check(seed: int, depth: int) -> None:
        nonlocal parked
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            kept = runner.run(played(seed, depth, kept=10))
            unwound = runner.run(played(seed, depth, kept=0))
        assert kept == unwound
        assert kept[2] > 1
        parked += kept[2] + unwound[2] - 2

    check()
    assert parked >= 2 * EXAMPLES
