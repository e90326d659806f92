"""Splits a stream of chunks into lines."""

import re
from collections.abc import Iterator

_WHITE = re.compile(rb"\s*")


class LineBuffer:
    """Each byte is examined once, on arrival: the cost of a chunk does not depend on the length of the incomplete
    line. `skips_white`: leaves out white space before a line, and so whole lines of it: a step in Python for each would
    take a thousand times as long."""

    def __init__(self, *, skips_white: bool = False) -> None:
        self._rest = bytearray()
        self._skips_white = skips_white

    def __len__(self) -> int:
        """The bytes of the incomplete line."""
        return len(self._rest)

    def add(self, piece: bytes) -> Iterator[bytes]:
        """The lines that this chunk completes, with their line ends."""
        start = self._line_start(piece, 0)
        while (end := piece.find(b"\n", start)) >= 0:
            self._rest += piece[start : end + 1]
            line = bytes(self._rest)
            self._rest.clear()
            yield line
            start = self._line_start(piece, end + 1)
        self._rest += piece[start:]

    def _line_start(self, piece: bytes, start: int) -> int:
        if self._rest or not self._skips_white:
            return start
        white = _WHITE.match(piece, start)
        return start if white is None else white.end()

    def last(self) -> bytes:
        """The text after the last line end."""
        return bytes(self._rest)
