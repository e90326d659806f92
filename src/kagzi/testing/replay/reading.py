"""Reads files of `kagzi export` run by run, each complete. Errors name the line."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ...core.errors import InvalidArgument
from ...core.transfers.images import (
    FORMAT,
    AttemptImage,
    End,
    ForgottenImage,
    LinkImage,
    Part,
    RunImage,
    SignalImage,
    StepImage,
    begins_run,
    read_line,
)

_EXPORT = "Write it with: kagzi export RUN > FILE"
_FORMAT_FIELD = ": kagzi"


def read_file(path: str | Path) -> Iterator[tuple[RunImage, list[Part]]]:
    """Raises InvalidArgument, which names file, line and field; FileNotFoundError and the like are passed on."""
    with Path(path).open("rb") as file:
        yield from read_lines(file, str(path))


def read_lines(lines: Iterable[bytes], source: str) -> Iterator[tuple[RunImage, list[Part]]]:
    """`source` names the lines in errors."""
    run: RunImage | None = None
    parts: list[Part] = []
    number = count = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        item = _item(line, number, source, first=count == 0 and run is None)
        match item:
            case RunImage():
                if run is not None:
                    raise _truncated(source, run, number, "another run begins")
                run, parts = item, []
            case End():
                if run is None:
                    raise _misplaced(source, number, "end")
                _check_counts(source, run, parts, item, number)
                yield run, parts
                run, count = None, count + 1
            case _:
                if run is None:
                    raise _misplaced(source, number, type(item).__name__.removesuffix("Image").lower())
                parts.append(item)
    if run is not None:
        raise _truncated(source, run, number + 1, "the file ends")
    if not count:
        raise InvalidArgument(f"{source} is empty: it has no run. {_EXPORT}", field="path")


def _item(line: bytes, number: int, source: str, *, first: bool) -> RunImage | Part | End:
    try:
        return read_line(line, number)
    except InvalidArgument as error:
        if error.field.endswith(_FORMAT_FIELD):
            raise InvalidArgument(
                f"{source}, line {number}: it was exported in a format that this version of kagzi does not know (it "
                f"knows {FORMAT}). Install the version of kagzi that exported it, or a newer one.",
                field=error.field,
            ) from None
        if first and not begins_run(line):
            raise InvalidArgument(
                f"{source} is not a file of `kagzi export`: {error.message} {_EXPORT}", field=error.field
            ) from None
        raise InvalidArgument(
            f"{source}, {error.message} The file was changed or cut off: export the run again.", field=error.field
        ) from None


def _check_counts(source: str, run: RunImage, parts: list[Part], end: End, number: int) -> None:
    for kind, count in ((StepImage, end.steps), (AttemptImage, end.attempts), (SignalImage, end.signals)):
        _check_count(source, run, parts, kind, count, number)
    _check_count(source, run, parts, LinkImage, end.links, number)
    _check_count(source, run, parts, ForgottenImage, end.forgotten, number)


def _check_count(  # noqa: PLR0917  the parts of one check
    source: str, run: RunImage, parts: list[Part], kind: type, count: int, number: int
) -> None:
    counted = sum(isinstance(part, kind) for part in parts)
    if counted != count:
        name = kind.__name__.removesuffix("Image").lower()
        raise InvalidArgument(
            f"{source}, line {number}: run {run.run_id} has {counted} {name} lines, but its end line counts {count}. "
            "Lines were lost: export the run again.",
            field=f"line {number}: end.{name}s",
        )


def _truncated(source: str, run: RunImage, number: int, what: str) -> InvalidArgument:
    return InvalidArgument(
        f"{source}, line {number}: {what} before the end line of run {run.run_id}. The file was cut off: export the "
        "run again.",
        field=f"line {number}",
    )


def _misplaced(source: str, number: int, name: str) -> InvalidArgument:
    return InvalidArgument(
        f"{source}, line {number}: {name} belongs to no run: a run line comes first. {_EXPORT}",
        field=f"line {number}: {name}",
    )
