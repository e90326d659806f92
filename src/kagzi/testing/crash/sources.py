"""Finds the line of the user's code that runs: sorts the frames of a stack into the user's, libraries' and Kagzi's."""

import inspect
import linecache
import os
import re
import sysconfig
from functools import lru_cache
from pathlib import Path, PurePath
from types import CodeType, FrameType
from typing import Literal, NamedTuple

Owner = Literal["user", "library", "kagzi"]

_KAGZI = f"{PurePath(__file__).parents[2]}{os.sep}"
_PATHS = sysconfig.get_paths()
_LIBRARIES = tuple(
    f"{_PATHS[name]}{os.sep}" for name in ("purelib", "platlib", "stdlib", "platstdlib") if name in _PATHS
)
_ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Line(NamedTuple):
    """A line of source code. `text` is the source line itself; empty if the source is not available."""

    file: str
    line: int
    text: str = ""

    def __str__(self) -> str:
        """Relative to the current directory, if the file is below it."""
        return f"{self.file.removeprefix(f'{Path.cwd()}{os.sep}')}:{self.line}"


def line_of(frame: FrameType) -> Line:
    return line_at(frame.f_code.co_filename, frame.f_lineno)


def line_at(file: str, line: int) -> Line:
    return Line(file, line, linecache.getline(file, line).strip())


@lru_cache(maxsize=4_096)
def owner_of(file: str) -> Owner:
    if file.startswith(_KAGZI):
        return "kagzi"
    return "library" if file.startswith("<") or file.startswith(_LIBRARIES) else "user"


def is_async(code: CodeType) -> bool:
    return bool(code.co_flags & _ASYNC)


class Culprit(NamedTuple):
    """`line`: of the workflow's code; `via`: the line of a plain function that it called, if that made the call;
    `through`: files of libraries in between; `entry`: the library function that the user's code called."""

    line: Line
    via: Line | None
    through: tuple[str, ...]
    entry: str


def culprit_of(frame: FrameType | None) -> Culprit | None:
    """The user's code on whose behalf this frame runs: the innermost `async def`, since that is workflow code;
    otherwise the outermost function that Kagzi called. None if Kagzi itself runs."""
    libraries: list[str] = []
    entry = ""
    innermost: FrameType | None = None
    outermost: FrameType | None = None
    while frame is not None:
        owner = owner_of(frame.f_code.co_filename)
        if owner == "kagzi":
            break
        if owner == "library":
            if innermost is None:
                libraries.append(frame.f_code.co_filename)
                entry = f"{frame.f_globals.get('__name__', '')}.{frame.f_code.co_qualname}"
        else:
            innermost = innermost or frame
            outermost = frame
            if is_async(frame.f_code):
                break
        frame = frame.f_back
    if innermost is None or outermost is None:
        return None
    via = None if innermost is outermost else line_of(innermost)
    return Culprit(line_of(outermost), via, tuple(libraries), entry)


_SUPPRESSION = re.compile(r"#\s*kagzi:\s*ignore\[(?P<rules>[^\]]*)\]\s*\S")


def is_suppressed(line: Line, rule: str) -> bool:
    """Whether a comment on the line, or alone on the line above, disables the rule with a reason:
    `# kagzi: ignore[clock] it is only logged`."""
    above = linecache.getline(line.file, line.line - 1).strip()
    texts = [linecache.getline(line.file, line.line), above if above.startswith("#") else ""]
    comments = [match for text in texts if (match := _SUPPRESSION.search(text)) is not None]
    return any(rule in (name.strip() for name in match["rules"].split(",")) for match in comments)
