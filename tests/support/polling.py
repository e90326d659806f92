"""Polling, for what gives no signal: rows of a store, files, other processes. What gives one is awaited."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

from tests.support.timeouts import LOADED_MACHINE_S

T = TypeVar("T")


@overload
async def until(
    condition: Callable[[], Awaitable[T | None]], *, timeout_s: float = ..., every_s: float = ..., what: str = ...
) -> T: ...


@overload
async def until(
    condition: Callable[[], T | None], *, timeout_s: float = ..., every_s: float = ..., what: str = ...
) -> T: ...


async def until(
    condition: Callable[[], object], *, timeout_s: float = LOADED_MACHINE_S, every_s: float = 0.02, what: str = ""
) -> object:
    """Returns the first true value of the condition, which may be a coroutine function.

    Raises AssertionError with `what` and the last value if there is none within the timeout. An error of the condition
    is the caller's.
    """
    value: object = None
    deadline = asyncio.timeout(timeout_s)
    try:
        async with deadline:
            while True:
                value = condition()
                if inspect.isawaitable(value):
                    value = await value
                if value:
                    return value
                await asyncio.sleep(every_s)
    except TimeoutError:
        if not deadline.expired():
            raise
        name = what or getattr(condition, "__qualname__", repr(condition))
        raise AssertionError(f"{name}: not within {timeout_s:g} s, the last value was {value!r}") from None
