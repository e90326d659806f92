"""client.start_many: many starts, answered one by one."""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any

from ...core.errors import InvalidArgument
from .run import Run


async def start_many(starts: Iterable[Awaitable[Run[Any]]], *, on_error: str) -> list[Any]:
    """The starts leave together: those of one loop pass are one message. See Kagzi.start_many."""
    if on_error not in ("raise", "collect"):
        raise InvalidArgument(f"on_error={on_error!r} must be 'raise' or 'collect'.", field="on_error")
    answers = await asyncio.gather(*starts, return_exceptions=True)
    for number, answer in enumerate(answers):
        if isinstance(answer, BaseException) and (on_error == "raise" or not isinstance(answer, Exception)):
            started = sum(isinstance(each, Run) for each in answers)
            answer.add_note(f"This is start number {number} of {len(answers)}; {started} of them took place.")
            raise answer
    return answers
