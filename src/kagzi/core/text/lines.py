"""Splits a stream of chunks into lines."""

from collections.abc import Iterator


class LineBuffer:
    """Each byte is examined once, on arrival: the cost of a chunk does not depend on the length of the incomplete
    line."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def __len__(self) -> int:
        """The bytes of the incomplete line."""
        return len(self._rest)

    def add(self, piece: bytes) -> Iterator[bytes]:
        """The lines that this chunk completes, with their line ends."""
        start = 0
        while (end := piece.find(b"\n", start)) >= 0:
            self._rest += piece[start : end + 1]
            start = end + 1
            line = bytes(self._rest)
            self._rest.clear()
            yield line
        self._rest += piece[start:]

    def last(self) -> bytes:
        """The text after the last line end."""
        return bytes(self._rest)
