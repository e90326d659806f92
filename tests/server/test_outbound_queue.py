"""The writer of a stream: no write is cancelled, and none costs a task."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from kagzi.server.grpc.outbound_queue import OutboundQueue
from tests.support.timeouts import LOADED_MACHINE_S


class SlowStream:
    """Each write takes a turn of the loop at least, as over a socket, and waits for `may_finish`."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.began = asyncio.Event()
        self.may_finish = asyncio.Event()
        self.may_finish.set()
        self.cancelled = 0

    async def write(self, message: bytes) -> None:
        self.began.set()
        try:
            await asyncio.sleep(0)
            await self.may_finish.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.written.append(message)


def queue_of(waiting: list[bytes]) -> OutboundQueue:
    def take() -> list[bytes]:
        taken, waiting[:] = list(waiting), []
        return taken

    return OutboundQueue(take)


async def test_a_write_costs_no_task() -> None:
    tasks = 0

    def counted(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any) -> Any:
        nonlocal tasks
        tasks += 1
        return asyncio.Task(coroutine, loop=loop, **options)

    waiting: list[bytes] = []
    queue, stream = queue_of(waiting), SlowStream()
    delivering = asyncio.ensure_future(queue.deliver(stream.write))
    await asyncio.sleep(0)
    asyncio.get_running_loop().set_task_factory(counted)
    for number in range(50):
        waiting.append(b"%d" % number)
        queue.notify()
        stream.began.clear()
        await stream.began.wait()
    queue.finish()
    await delivering
    asyncio.get_running_loop().set_task_factory(None)
    assert stream.written == [b"%d" % number for number in range(50)]
    assert tasks <= 1, "one for the stream"


async def test_a_stream_that_is_cancelled_finishes_the_write_under_way_and_begins_no_other() -> None:
    waiting = [b"first", b"second"]
    queue, stream = queue_of(waiting), SlowStream()
    stream.may_finish.clear()
    delivering = asyncio.ensure_future(queue.deliver(stream.write))
    queue.notify()
    await asyncio.wait_for(stream.began.wait(), LOADED_MACHINE_S)
    delivering.cancel()
    await asyncio.sleep(0)
    assert not delivering.done()
    stream.may_finish.set()
    with pytest.raises(asyncio.CancelledError):
        await delivering
    assert (stream.written, stream.cancelled) == ([b"first"], 0)


async def test_a_stream_that_is_cancelled_between_writes_ends_at_once() -> None:
    queue, stream = queue_of([]), SlowStream()
    delivering = asyncio.ensure_future(queue.deliver(stream.write))
    await asyncio.sleep(0)
    delivering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(delivering, LOADED_MACHINE_S)
    assert stream.written == []


async def test_what_a_write_raises_ends_the_stream() -> None:
    async def broken(_: bytes) -> None:
        await asyncio.sleep(0)
        raise ConnectionResetError("gone")

    queue = queue_of([b"message"])
    queue.notify()
    with pytest.raises(ConnectionResetError):
        await queue.deliver(broken)
