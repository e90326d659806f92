"""Lines out of pieces: the same however they are cut, and every byte looked at once."""

import itertools
from collections.abc import AsyncIterator, Callable
from typing import SupportsIndex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagzi.core.text.lines import LineBuffer
from kagzi.engine.services.transfers import _lines_of
from kagzi.sdk.client.operations.transfers import lines_of


@given(st.binary(max_size=200).map(lambda data: data.replace(b"a", b"\n")), st.lists(st.integers(0, 200)))
def test_the_same_lines_however_they_are_split(data: bytes, positions: list[int]) -> None:
    places = sorted({0, len(data), *(position for position in positions if position < len(data))})
    buffer = LineBuffer()
    lines = [line for start, end in itertools.pairwise(places) for line in buffer.add(data[start:end])]
    assert b"".join(lines) + buffer.last() == data
    assert all(line.count(b"\n") == 1 and line.endswith(b"\n") for line in lines)
    assert b"\n" not in buffer.last()
    assert len(buffer) == len(buffer.last())


@given(st.text("a \t\n\r", max_size=60).map(str.encode), st.lists(st.integers(0, 60)))
def test_white_space_before_lines_is_left_out_however_they_are_split(data: bytes, positions: list[int]) -> None:
    places = sorted({0, len(data), *(position for position in positions if position < len(data))})
    buffer = LineBuffer(skips_white=True)
    lines = [line for start, end in itertools.pairwise(places) for line in buffer.add(data[start:end])]
    wanted = [line.strip() for line in data.split(b"\n") if line.strip()]
    assert [line.strip() for line in (*lines, buffer.last()) if line] == wanted
    assert not any(line[:1].isspace() for line in (*lines, buffer.last()))


@pytest.mark.parametrize("white", [b"\n", b" \n", b"\r\n", b" "])
def test_white_space_takes_one_step_however_long_it_is(white: bytes) -> None:
    Watched.searches = 0
    assert list(LineBuffer(skips_white=True).add(Watched(white * 100_000 + b"x\n" + white * 100_000))) == [b"x\n"]
    assert Watched.searches == 2


class Watched(bytes):
    """Counts the bytes that are searched, and notices what is searched other than piece by piece."""

    searched = 0
    searches = 0

    def find(self, sub: bytes, start: SupportsIndex = 0, end: SupportsIndex | None = None) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]  mypy and typeshed disagree on the ellipsis
        index = super().find(sub, start)
        Watched.searches += 1
        Watched.searched += (len(self) if index < 0 else index + 1) - int(start)
        return index


@pytest.mark.parametrize("split", [_lines_of, lines_of], ids=["server", "client"])
async def test_a_long_line_in_small_pieces_is_searched_once(
    split: Callable[[AsyncIterator[bytes]], AsyncIterator[bytes]],
) -> None:
    pieces = [b"x" * 1_000] * 2_000 + [b"x\ny\n"]

    async def chunks() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield Watched(piece)

    Watched.searched = 0
    lines = [line.strip() async for line in split(chunks())]
    assert [len(line) for line in lines] == [2_000_001, 1]
    assert Watched.searched == sum(map(len, pieces))
