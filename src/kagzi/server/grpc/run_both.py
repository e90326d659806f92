"""Runs both directions of a stream concurrently: when one ends, the other is cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def first_of(*coroutines: Coroutine[Any, Any, None]) -> int:
    """Runs the coroutines until one ends; cancels and awaits the others. Returns its index; raises what it raised."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for place, result in enumerate(results):
        if not isinstance(result, asyncio.CancelledError):
            if isinstance(result, BaseException):
                raise result
            return place
    raise asyncio.CancelledError
