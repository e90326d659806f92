"""Small workflows that wait for a signal behind everything that a task can wait for: those that may leave their worker,
and those that have to stay because something in this process will wake them."""

import asyncio
import socket
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.signals import Signal

PROCEED = Signal("go", str)
Program = Callable[[Context], Coroutine[Any, Any, str]]
PARKS: dict[str, Program] = {}
STAYS: dict[str, Program] = {}
_LONG_S = 3600.0


def parks(program: Program) -> Program:
    """It waits for `GO` and for nothing outside."""
    PARKS[program.__name__] = program
    return program


def stays(program: Program) -> Program:
    """Something besides `GO` will wake it, in this process."""
    STAYS[program.__name__] = program
    return program


async def values_of(queue: "asyncio.Queue[str]") -> AsyncGenerator[str]:
    while True:
        yield await queue.get()


async def feed(ctx: Context, queue: "asyncio.Queue[str]") -> None:
    await queue.put(await ctx.wait_for(PROCEED))


# --- generators -------------------------------------------------------------------------------------------------------


@parks
async def a_generator_over_a_queue(ctx: Context) -> str:
    queue: asyncio.Queue[str] = asyncio.Queue()
    task = asyncio.create_task(feed(ctx, queue))
    async for value in values_of(queue):
        await task
        return value
    raise AssertionError


@parks
async def generators_in_generators(ctx: Context) -> str:
    queue: asyncio.Queue[str] = asyncio.Queue()

    async def doubled(inner: AsyncIterator[str]) -> AsyncGenerator[str]:
        async for value in inner:
            yield value

    task = asyncio.create_task(feed(ctx, queue))
    async with aclosing(doubled(doubled(values_of(queue)))) as values:
        value = await anext(values)
    await task
    return value


@parks
async def anext_with_a_default(ctx: Context) -> str:
    queue: asyncio.Queue[str] = asyncio.Queue()
    task = asyncio.create_task(feed(ctx, queue))
    value = await anext(values_of(queue), "none")
    await task
    return value


@parks
async def asend(ctx: Context) -> str:
    queue: asyncio.Queue[str] = asyncio.Queue()

    async def echo() -> AsyncGenerator[str, str]:
        notified = yield ""
        yield notified + await queue.get()

    task = asyncio.create_task(feed(ctx, queue))
    async with aclosing(echo()) as values:
        await anext(values)
        value = await values.asend("")
    await task
    return value


@parks
async def athrow(ctx: Context) -> str:
    queue: asyncio.Queue[str] = asyncio.Queue()

    async def mends() -> AsyncGenerator[str]:
        try:
            yield ""
        except LookupError:
            yield await queue.get()

    task = asyncio.create_task(feed(ctx, queue))
    async with aclosing(mends()) as values:
        await anext(values)
        value = await values.athrow(LookupError())
    await task
    return value


@parks
async def aclose(ctx: Context) -> str:
    queue: asyncio.Queue[str] = asyncio.Queue()
    received: list[str] = []

    async def cleans_up() -> AsyncGenerator[str]:
        try:
            yield ""
        finally:
            received.append(await queue.get())

    task = asyncio.create_task(feed(ctx, queue))
    values = cleans_up()
    await anext(values)
    await values.aclose()
    await task
    return received[0]


@parks
async def a_context_manager(ctx: Context) -> str:
    queue: asyncio.Queue[str] = asyncio.Queue()

    @asynccontextmanager
    async def opened() -> AsyncIterator[str]:
        yield await queue.get()

    task = asyncio.create_task(feed(ctx, queue))
    async with opened() as value:
        await task
        return value


@parks
async def a_signal_in_a_generator(ctx: Context) -> str:
    async def signals() -> AsyncGenerator[str]:
        while True:
            yield await ctx.wait_for(PROCEED)

    async with aclosing(signals()) as values:
        return await anext(values)


# --- asyncio's primitives ---------------------------------------------------------------------------------------------


@parks
async def an_event(ctx: Context) -> str:
    event = asyncio.Event()
    received: list[str] = []

    async def setter() -> None:
        received.append(await ctx.wait_for(PROCEED))
        event.set()

    task = asyncio.create_task(setter())
    await event.wait()
    await task
    return received[0]


@parks
async def a_condition(ctx: Context) -> str:
    condition = asyncio.Condition()
    received: list[str] = []

    async def notifier() -> None:
        received.append(await ctx.wait_for(PROCEED))
        async with condition:
            condition.notify_all()

    task = asyncio.create_task(notifier())
    async with condition:
        await condition.wait_for(partial(len, received))
    await task
    return received[0]


@parks
async def a_semaphore(ctx: Context) -> str:
    semaphore = asyncio.Semaphore(1)

    async def holder() -> str:
        async with semaphore:
            return await ctx.wait_for(PROCEED)

    task = asyncio.create_task(holder())
    await asyncio.sleep(0)
    async with semaphore:
        return await task


@parks
async def a_barrier(ctx: Context) -> str:
    barrier = asyncio.Barrier(2)

    async def late() -> str:
        value = await ctx.wait_for(PROCEED)
        await barrier.wait()
        return value

    task = asyncio.create_task(late())
    await barrier.wait()
    return await task


@parks
async def a_full_queue(ctx: Context) -> str:
    queue: asyncio.Queue[str] = asyncio.Queue(1)

    async def consumer() -> str:
        value = await ctx.wait_for(PROCEED)
        await queue.get()
        return value

    task = asyncio.create_task(consumer())
    for value in ("one", "two"):
        await queue.put(value)
    return await task


@parks
async def a_task_that_is_only_a_get(ctx: Context) -> str:
    queue: asyncio.Queue[str] = asyncio.Queue()
    task = asyncio.create_task(feed(ctx, queue))
    value = await asyncio.create_task(queue.get())
    await task
    return value


# --- futures, and tasks that are joined -------------------------------------------------------------------------------


@parks
async def a_future_that_another_task_sets(ctx: Context) -> str:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def setter() -> None:
        future.set_result(await ctx.wait_for(PROCEED))

    task = asyncio.create_task(setter())
    value = await future
    await task
    return value


class Questions:
    """Questions are asked in one task and answered in another."""

    def __init__(self) -> None:
        self.pending: dict[str, asyncio.Future[str]] = {}

    async def ask(self, name: str) -> str:
        self.pending[name] = asyncio.get_running_loop().create_future()
        return await self.pending[name]

    async def answer(self, ctx: Context) -> None:
        value = await ctx.wait_for(PROCEED)
        self.pending["question"].set_result(value)


@parks
async def a_future_in_an_object(ctx: Context) -> str:
    questions = Questions()
    task = asyncio.create_task(questions.answer(ctx))
    value = await questions.ask("question")
    await task
    return value


@parks
async def a_shielded_task(ctx: Context) -> str:
    return await asyncio.shield(asyncio.create_task(ctx.wait_for(PROCEED)))


@parks
async def a_task_group(ctx: Context) -> str:
    queue: asyncio.Queue[str] = asyncio.Queue()
    async with asyncio.TaskGroup() as group:
        group.create_task(feed(ctx, queue))
        task = group.create_task(queue.get())
    return task.result()


@parks
async def the_first_of_two(ctx: Context) -> str:
    queue: asyncio.Queue[str] = asyncio.Queue()
    tasks = [asyncio.create_task(ctx.wait_for(PROCEED)), asyncio.create_task(queue.get())]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    return done.pop().result()


@parks
async def as_completed(ctx: Context) -> str:
    queue: asyncio.Queue[str] = asyncio.Queue()

    async def feeder() -> str:
        await feed(ctx, queue)
        return ""

    return "".join([await each for each in asyncio.as_completed([feeder(), queue.get()])])


@parks
async def a_limit_that_is_not_reached(ctx: Context) -> str:
    async with asyncio.timeout(None):
        return await asyncio.wait_for(ctx.wait_for(PROCEED), None)


@parks
async def beside_a_task_that_sleeps_for_ever(ctx: Context) -> str:
    forever = asyncio.create_task(anyio.sleep_forever())
    value = await ctx.wait_for(PROCEED)
    forever.cancel()
    return value


@parks
async def after_a_timeout_that_is_over(ctx: Context) -> str:
    async with asyncio.timeout(_LONG_S):
        await asyncio.sleep(0)
    with anyio.move_on_after(_LONG_S):
        await anyio.lowlevel.checkpoint()
    return await ctx.wait_for(PROCEED)


# --- anyio ------------------------------------------------------------------------------------------------------------


@parks
async def a_memory_stream(ctx: Context) -> str:
    send, receive = anyio.create_memory_object_stream[str](0)

    async def feeder() -> None:
        async with send:
            await send.send(await ctx.wait_for(PROCEED))

    async with anyio.create_task_group() as group, receive:
        group.start_soon(feeder)
        return "".join([value async for value in receive])


@parks
async def a_full_memory_stream(ctx: Context) -> str:
    send, receive = anyio.create_memory_object_stream[str](1)
    received: list[str] = []

    async def consumer() -> None:
        received.append(await ctx.wait_for(PROCEED))
        await receive.receive()

    async with anyio.create_task_group() as group, send, receive:
        group.start_soon(consumer)
        await send.send("one")
        await send.send("two")
    return received[0]


@parks
async def an_anyio_event_in_a_scope(ctx: Context) -> str:
    event = anyio.Event()
    received: list[str] = []

    async def setter() -> None:
        received.append(await ctx.wait_for(PROCEED))
        event.set()

    with anyio.CancelScope():
        async with anyio.create_task_group() as group:
            group.start_soon(setter)
            await event.wait()
    return received[0]


@parks
async def a_task_that_has_not_started(ctx: Context) -> str:
    async def slow(*, task_status: anyio.abc.TaskStatus[str]) -> None:
        task_status.started(await ctx.wait_for(PROCEED))

    async with anyio.create_task_group() as group:
        return await group.start(slow)


@parks
async def anyio_locks(ctx: Context) -> str:
    lock, semaphore, limiter = anyio.Lock(), anyio.Semaphore(1), anyio.CapacityLimiter(1)
    received: list[str] = []

    async def holder() -> None:
        async with lock, semaphore, limiter:
            received.append(await ctx.wait_for(PROCEED))

    async def waiter(what: Any) -> None:
        async with what:
            pass

    async with anyio.create_task_group() as group:
        group.start_soon(holder)
        await anyio.lowlevel.checkpoint()
        for each in (lock, semaphore, limiter):
            group.start_soon(waiter, each)
    return received[0]


# --- what stays -------------------------------------------------------------------------------------------------------


@stays
async def a_timer(ctx: Context) -> str:
    sleep = asyncio.create_task(asyncio.sleep(_LONG_S))
    value = await ctx.wait_for(PROCEED)
    sleep.cancel()
    return value


@stays
async def a_timeout(ctx: Context) -> str:
    async with asyncio.timeout(_LONG_S):
        return await ctx.wait_for(PROCEED)


@stays
async def a_timeout_in_a_task(ctx: Context) -> str:
    async def limited() -> str:
        return await asyncio.wait_for(ctx.wait_for(PROCEED), _LONG_S)

    return await asyncio.create_task(limited())


@stays
async def a_wait_with_a_timeout(ctx: Context) -> str:
    done, _ = await asyncio.wait([asyncio.create_task(ctx.wait_for(PROCEED))], timeout=_LONG_S)
    return done.pop().result()


@stays
async def as_completed_with_a_timeout(ctx: Context) -> str:
    (value,) = [await each for each in asyncio.as_completed([ctx.wait_for(PROCEED)], timeout=_LONG_S)]
    return value


@stays
async def a_callback_of_the_loop(ctx: Context) -> str:
    queue: asyncio.Queue[str] = asyncio.Queue()
    timer = asyncio.get_running_loop().call_later(_LONG_S, queue.put_nowait, "late")
    task = asyncio.create_task(feed(ctx, queue))
    value = await queue.get()
    timer.cancel()
    await task
    return value


@stays
async def an_anyio_deadline(ctx: Context) -> str:
    with anyio.fail_after(_LONG_S):
        return await ctx.wait_for(PROCEED)


def _hold(latch: threading.Event) -> None:
    latch.wait(_LONG_S)


async def _beside_a_thread(ctx: Context, in_thread: Callable[[Callable[[], None]], Any]) -> str:
    latch = threading.Event()
    thread = asyncio.ensure_future(in_thread(partial(_hold, latch)))
    try:
        return await ctx.wait_for(PROCEED)
    finally:
        latch.set()
        await asyncio.wait([thread])


@stays
async def a_thread(ctx: Context) -> str:
    return await _beside_a_thread(ctx, asyncio.to_thread)


@stays
async def an_executor(ctx: Context) -> str:
    return await _beside_a_thread(ctx, partial(asyncio.get_running_loop().run_in_executor, None))


@stays
async def an_anyio_thread(ctx: Context) -> str:
    return await _beside_a_thread(ctx, anyio.to_thread.run_sync)


async def _beside(ctx: Context, outside: Coroutine[Any, Any, Any]) -> str:
    task = asyncio.create_task(outside)
    try:
        return await ctx.wait_for(PROCEED)
    finally:
        task.cancel()


@stays
async def a_socket(ctx: Context) -> str:
    ours, theirs = socket.socketpair()
    with theirs:
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            return await _beside(ctx, reader.read(1))
        finally:
            writer.close()


@stays
async def a_raw_socket(ctx: Context) -> str:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        return await _beside(ctx, asyncio.get_running_loop().sock_recv(ours, 1))


@stays
async def an_anyio_socket(ctx: Context) -> str:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        async with await anyio.connect_tcp("127.0.0.1", listening.getsockname()[1]) as stream:
            return await _beside(ctx, stream.receive())


@stays
async def a_process(ctx: Context) -> str:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", f"import time; time.sleep({_LONG_S})")
    try:
        return await _beside(ctx, process.wait())
    finally:
        process.kill()
        await process.wait()


SHARED = asyncio.Semaphore(0)


@stays
async def a_semaphore_of_the_module(ctx: Context) -> str:
    globals()["SHARED"] = asyncio.Semaphore(0)  # each belongs to one event loop

    async def enters() -> None:
        async with SHARED:
            pass

    return await _beside(ctx, enters())


@stays
async def a_future_that_a_thread_sets(ctx: Context) -> str:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    latch = threading.Event()

    def work(future: "asyncio.Future[None]" = future) -> None:
        latch.wait(_LONG_S)
        loop.call_soon_threadsafe(future.cancel)

    async def waits(future: "asyncio.Future[None]") -> None:
        await future

    threading.Thread(target=work, daemon=True).start()
    task = asyncio.create_task(waits(future))
    del future, work
    try:
        return await ctx.wait_for(PROCEED)
    finally:
        latch.set()
        await asyncio.wait([task])
