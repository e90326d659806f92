"""Lines out of pieces that were cut anywhere."""

from collections.abc import Iterator


class LineBuffer:
    """Every byte is looked at once, when it comes: what a piece costs does not depend on how much of its line came
    before."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def __len__(self) -> int:
        """Bytes of the line that has no end yet."""
        return len(self._rest)

    def add(self, piece: bytes) -> Iterator[bytes]:
        """The lines that end in this piece, with their ends."""
        start = 0
        while (end := piece.find(b"\n", start)) >= 0:
            self._rest += piece[start : end + 1]
            start = end + 1
            line = bytes(self._rest)
            self._rest.clear()
            yield line
        self._rest += piece[start:]

    def last(self) -> bytes:
        """What came after the last line end."""
        return bytes(self._rest)
