"""Tracebacks of user code: a line with their number replaces frames of Kagzi and asyncio."""

import asyncio
import concurrent.futures
import os
import traceback
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import PurePath
from types import TracebackType
from typing import Any

_FRAMES = 30  # of one traceback, the innermost ones; recorded ones have the same limit
_PACKAGE = str(PurePath(__file__).parents[2]) + os.sep
_SAMPLES = _PACKAGE + "cli" + os.sep  # the workflows that come with Kagzi count as user code
_MACHINERY = (
    (_PACKAGE, "kagzi"),
    (str(PurePath(asyncio.__file__).parent) + os.sep, "asyncio"),
    (str(PurePath(concurrent.futures.__file__).parent) + os.sep, "asyncio"),  # the threads of asyncio.to_thread
)


def shortened_exception(error: BaseException) -> str:
    """The exception with its causes, groups and notes, as Python prints it, but shortened."""
    whole = traceback.TracebackException.from_exception(error)
    _shorten_all(whole, set())
    return "".join(whole.format())


def shortened_traceback(trace: TracebackType | None) -> str:
    """The traceback alone, without the exception. Empty if it has no frame of user code."""
    frames = traceback.extract_tb(trace)
    if all(_machinery(frame) for frame in frames):
        return ""
    return "Traceback (most recent call last):\n" + "".join(_Stack(_shortened(frames)).format())


class _Hidden(traceback.FrameSummary):
    """Replaces frames that are not shown; its name says how many."""


class _Stack(traceback.StackSummary):
    def format_frame_summary(self, frame_summary: traceback.FrameSummary, **kwargs: Any) -> str:
        if isinstance(frame_summary, _Hidden):
            return f"  {frame_summary.name}\n"
        return super().format_frame_summary(frame_summary, **kwargs)


def _shorten_all(whole: traceback.TracebackException, seen: set[int]) -> None:
    if id(whole) in seen:
        return
    seen.add(id(whole))
    whole.stack = _Stack(_shortened(whole.stack))
    for other in (whole.__cause__, whole.__context__, *(whole.exceptions or ())):
        if other is not None:
            _shorten_all(other, seen)


def _shortened(frames: Sequence[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """Keeps all frames if none is of user code: then they matter."""
    shown = list(frames if all(map(_machinery, frames)) else _without_machinery(frames))
    if len(shown) <= _FRAMES:
        return shown
    return [_hidden(f"... {len(shown) - _FRAMES} earlier frames not shown"), *shown[-_FRAMES:]]


def _without_machinery(frames: Iterable[traceback.FrameSummary]) -> Iterator[traceback.FrameSummary]:
    for is_ours, group in groupby(frames, lambda frame: bool(_machinery(frame))):
        if not is_ours:
            yield from group
            continue
        owners = [_machinery(frame) for frame in group]
        names = " and ".join(sorted(set(owners), reverse=True))
        yield _hidden(f"... {len(owners)} {'frame' if len(owners) == 1 else 'frames'} of {names} hidden")


def _hidden(text: str) -> _Hidden:
    return _Hidden("", 0, text, lookup_line=False, line="")


def _machinery(frame: traceback.FrameSummary) -> str:
    """Whose code it is: Kagzi's or asyncio's; empty for any other."""
    filename = frame.filename
    if filename.startswith(_SAMPLES):
        return ""
    return next((name for directory, name in _MACHINERY if filename.startswith(directory)), "")
