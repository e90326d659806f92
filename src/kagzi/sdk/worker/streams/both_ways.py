"""Reads and writes a stream at the same time."""

import asyncio
from collections.abc import Coroutine
from typing import Any

PARTING_S = 2.0  # how long a stopping server may take to answer


async def both_ways(read: Coroutine[Any, Any, None], write: Coroutine[Any, Any, None]) -> None:
    """Returns when both have ended, or the first has and the second had its time. Raises what they raise."""
    reader = asyncio.create_task(read, name="kagzi-session-read")
    writer = asyncio.create_task(write, name="kagzi-session-write")
    try:
        await asyncio.wait((reader, writer), return_when=asyncio.FIRST_COMPLETED)
        if not reader.done():  # the writer ended: it is finished, or the stream broke
            await asyncio.wait((reader,), timeout=PARTING_S)
        for task in (reader, writer):
            if task.done():
                task.result()
    finally:
        for task in (reader, writer):
            task.cancel()
        await asyncio.wait((reader, writer))
        for task in (reader, writer):
            if not task.cancelled():
                task.exception()  # retrieved above, unless this task was cancelled
