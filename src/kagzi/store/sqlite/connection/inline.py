"""Which calls run in the event loop's thread, instead of being handed to the writer's or reader's thread and back.

The two hops cost a small call more than the loop gains by them, as long as the disk is fast. That cannot be known in
advance, so all small calls are timed: after a slow one they go to the thread, until several in a row were fast there.
So the loop waits for a slow disk for one commit, not for two in a row. See docs/adr/0036.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import cache
from time import perf_counter
from typing import Final

from ....core.conversion import fields_of
from ....core.records import Payload
from ....core.run.commands import Command, ContinueAsNew, DecideRace, ResultsCommand, StartChild, StartRun

OPERATIONS: Final = 4
"""The most operations in a small write, or runs in a small read. More of them share the hops, and the loop has other
work to do."""
PAYLOAD_BYTES: Final = 32_768
"""The most bytes in a small write, in total."""
QUICK_S: Final = 0.002
QUICK_IN_A_ROW: Final = 5


class InlineCalls:
    """Whether small calls of one thread run inline now. `timer` is a monotonic clock, in seconds."""

    def __init__(self, timer: Callable[[], float] = perf_counter) -> None:
        self.timer = timer
        self._quick = 0  # fast calls in a row so far
        self._in_this_turn = False

    @property
    def allowed(self) -> bool:
        """At most one call per iteration of the event loop, so that a caller that makes many leaves time for others."""
        return self._quick >= QUICK_IN_A_ROW and not self._in_this_turn

    def begin(self) -> None:
        """A call runs inline now."""
        self._in_this_turn = True
        asyncio.get_running_loop().call_soon(self._turn_over)

    def _turn_over(self) -> None:
        self._in_this_turn = False

    def took_since(self, begun_at: float) -> None:
        """A small call has ended, in either thread, successfully or not. `begun_at`: by the timer."""
        self._quick = self._quick + 1 if self.timer() - begun_at <= QUICK_S else 0


def is_small(batch: Sequence[Command]) -> bool:
    """Few plain operations and few bytes. The speed of the disk is not considered."""
    if len(batch) > OPERATIONS:
        return False
    size = 0
    for command in batch:
        size += _payload_bytes(command)
    return size <= PAYLOAD_BYTES


def _payload_bytes(command: Command) -> int:
    """More than the limit for a command that may concern any number of rows."""
    if isinstance(command, _MANY_ROWS) or (isinstance(command, StartRun) and command.signal is not None):
        return PAYLOAD_BYTES + 1
    size = 0
    for name in _payload_fields(type(command)):
        payload: Payload | None = getattr(command, name)
        if payload is not None:
            size += len(payload.data)
    return size


@cache
def _payload_fields(kind: type[Command]) -> tuple[str, ...]:
    return tuple(field.name for field in fields_of(kind) if field.type in _PAYLOAD)


_PAYLOAD = (Payload, Payload | None)
_MANY_ROWS = (ResultsCommand, DecideRace, StartChild, ContinueAsNew)
