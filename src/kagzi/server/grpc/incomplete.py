"""Messages that arrive in parts. What has arrived is kept until the last part, within a limit for all together: beyond
it, the message that has waited longest for its rest is dropped, and what sends it is refused."""

from collections.abc import Callable

from ...core import limits
from ...core.errors import InvalidArgument, ResourceExhausted, limit_reached

WHY_DROPPED = "the rest of a message did not come while others needed the room"


class IncompleteMessages:
    """Counts them by owner: a connection, or a session. Each has one at a time."""

    def __init__(self) -> None:
        self._kept: dict[Callable[[], object], int] = {}  # oldest first
        self._bytes = 0

    def count(self, size: int, drop: Callable[[], object]) -> None:
        """The message of the owner with this `drop` has changed by `size` bytes. `drop` is called if it has to go, and
        counts it down."""
        self._bytes += size
        kept = self._kept.get(drop, 0) + size
        if kept:
            self._kept[drop] = kept
        else:
            self._kept.pop(drop, None)
        if size > 0 and self._bytes > limits.INCOMPLETE_BYTES:
            next(iter(self._kept))()


class Parts:
    """The parts of one message after another, of one sender."""

    def __init__(self, incomplete: IncompleteMessages) -> None:
        self._incomplete = incomplete
        self._kept = bytearray()
        self._is_dropped = False

    def add(self, part: bytes, *, is_last: bool) -> bytes | None:
        """Returns the message when it is complete. Raises InvalidArgument, ResourceExhausted."""
        if self._is_dropped:
            raise ResourceExhausted(
                f"{WHY_DROPPED}. Send it again.", metadata=limit_reached("incomplete_bytes", limits.INCOMPLETE_BYTES)
            )
        if len(self._kept) + len(part) > limits.MESSAGE_HARD_BYTES:
            raise InvalidArgument(
                f"part: a message in parts has more than {limits.MESSAGE_HARD_BYTES} bytes (MESSAGE_HARD_BYTES). "
                "Send less at once.",
                field="part",
            )
        self._kept += part
        if not is_last:
            self._incomplete.count(len(part), self._drop_for_others)
            return None
        whole = bytes(self._kept)
        self._incomplete.count(len(part) - len(whole), self._drop_for_others)
        self._kept = bytearray()
        return whole

    def _drop_for_others(self) -> None:
        self._is_dropped = True
        self.drop()

    def drop(self) -> None:
        kept, self._kept = self._kept, bytearray()
        if kept:
            self._incomplete.count(-len(kept), self._drop_for_others)
