"""The findings of a check, grouped: a thousand runs that diverge at the same line are one entry with a count."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from ...core.duration import format_duration
from ...core.error_details import ErrorDetail
from .code import short_path

if TYPE_CHECKING:
    from datetime import timedelta

    from ...testing.replay.result import Divergence, NewTimeout, Replay

Verdict: TypeAlias = Literal["diverges", "fails", "unchecked", "no_version", "no_workflow", "new_timeout"]

RUN_IDS = 5
"""How many run ids each entry keeps."""
FAULTS: tuple[Verdict, ...] = ("diverges", "fails", "unchecked")
"""Verdicts that make a check fail."""

_WORDS: Mapping[Verdict, tuple[str, str]] = {
    "diverges": ("diverges", "diverge"),
    "fails": ("would fail at once", "would fail at once"),
    "unchecked": ("could not be checked", "could not be checked"),
    "no_version": ("is of a version that it does not have", "are of versions that it does not have"),
    "no_workflow": ("is of a workflow that it does not have", "are of workflows that it does not have"),
    "new_timeout": ("fits and takes a new timeout", "fit and take a new timeout"),
}
_STEP_ERRORS = ("kagzi.StepError", "kagzi.ChildError")
_FRAME = re.compile(r'^ *File "([^"]+)", line (\d+)', re.MULTILINE)
_OWN = str(Path(__file__).parents[2])
_OCCURRENCE = re.compile(r"#\d+|\[[^\]]*\]")


class Finding(NamedTuple):
    """The result of one run, shared by others like it. `message`: the error of its worker. `file` and `line`: of the
    code; `recorded` and `actual`: descriptions of the history and the code there; `patch`: a suggested fix."""

    verdict: Verdict
    workflow: str
    version: str
    message: str
    file: str = ""
    line: int = 0
    step: str = ""
    recorded: str = ""
    actual: str = ""
    patch: str = ""

    @property
    def key(self) -> tuple[object, ...]:
        """What the runs of one entry have in common. Ignores the numbers and keys of steps in a loop."""
        same = _OCCURRENCE.sub("", self.step) if self.line else self.message
        return self.verdict, self.workflow, self.version, self.file, self.line, same

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    def view(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if value or name in ("workflow", "version")}


class Entry:
    """Runs with the same finding. `finding` is that of the first run."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        self.count = 0
        self.run_ids: list[str] = []

    def add(self, run_id: str) -> None:
        self.count += 1
        if len(self.run_ids) < RUN_IDS:
            self.run_ids.append(run_id)

    def view(self) -> dict[str, Any]:
        return {"count": self.count, **self.finding.view(), "run_ids": self.run_ids}


class Findings:
    """All findings of a check. `gone`: runs that ended, or changed too fast to be read, during the check."""

    def __init__(self) -> None:
        self.fit = 0
        self.gone = 0
        self._entries: dict[tuple[object, ...], Entry] = {}

    def add(self, run_id: str, finding: Finding | None) -> None:
        """`finding` None: the code is compatible."""
        if finding is None:
            self.fit += 1
            return
        self._entries.setdefault(finding.key, Entry(finding)).add(run_id)

    def entries(self) -> list[Entry]:
        """Failures first, then by number of runs."""
        order = list(_WORDS)
        return sorted(self._entries.values(), key=lambda entry: (order.index(entry.finding.verdict), -entry.count))

    def count(self, *verdicts: Verdict) -> int:
        return sum(entry.count for entry in self._entries.values() if entry.finding.verdict in verdicts)

    @property
    def seen(self) -> int:
        return self.fit + self.gone + sum(entry.count for entry in self._entries.values())

    def summary(self) -> str:
        """`640 fit, 360 diverge`."""
        counts = [(count, text) for verdict, text in _WORDS.items() if (count := self.count(verdict))]
        every = [(self.fit, ("fits", "fit")), *counts]
        if self.gone:
            meanwhile = "ended or continued during the check"
            every.append((self.gone, (meanwhile, meanwhile)))
        return ", ".join(f"{count} {one if count == 1 else many}" for count, (one, many) in every)

    def view(self) -> dict[str, Any]:
        return {
            "runs": self.seen,
            "fit": self.fit,
            "diverge": self.count("diverges"),
            "fail": self.count("fails"),
            "unchecked": self.count("unchecked"),
            "no_version": self.count("no_version"),
            "no_workflow": self.count("no_workflow"),
            "new_timeout": self.count("new_timeout"),
            "gone": self.gone,
            "findings": [entry.view() for entry in self.entries()],
        }


def finding_of(replay: Replay, workflow: str, version: str, *, ended: bool) -> Finding | None:
    """None: the code is compatible. `ended`: the run is recorded to its end, and may have failed there."""
    error = None if replay.error is None or _is_recorded(replay.error) else replay.error
    if replay.divergence is not None:
        finding = _divergence(replay.divergence, workflow, version)
        return finding if error is None else _raising(finding, error)
    if replay.outcome == "failed" and error is not None and not ended:
        file, line = _raised_at(error)
        return Finding("fails", workflow, version, error.text, file=file, line=line)
    return _new_timeout(replay.new_timeouts[0], workflow, version) if replay.new_timeouts else None


def _new_timeout(change: NewTimeout, workflow: str, version: str) -> Finding:
    before, after = (_timeout(each) for each in (change.before, change.after))
    text = (
        f"the wait for signal {change.step!r} began {before}; the code waits {after}. It counts from when the wait "
        "began, and takes effect when all workers have this code: a wait whose time is over by then ends at once"
    )
    return Finding(
        "new_timeout", workflow, version, text, file=short_path(change.file), line=change.line, step=change.step
    )


def _timeout(timeout: timedelta | None) -> str:
    return "without a timeout" if timeout is None else f"with a timeout of {format_duration(timeout)}"


def _is_recorded(error: ErrorDetail) -> bool:
    """Whether the error follows from a recorded result: any compatible code raises it."""
    return error.type in _STEP_ERRORS or any(base in _STEP_ERRORS for base in error.bases)


def _raising(finding: Finding, error: ErrorDetail) -> Finding:
    """The code raises before it reaches what is recorded: a patch does not help, the error must be fixed."""
    file, line = _raised_at(error)
    actual = f"the code raises {error.text}"
    return finding._replace(actual=actual, patch="", file=file or finding.file, line=line or finding.line)


def _raised_at(error: ErrorDetail) -> tuple[str, int]:
    """The last line of the traceback outside of Kagzi."""
    for file, line in reversed(_FRAME.findall(error.traceback)):
        if not file.startswith(_OWN):
            return short_path(file), int(line)
    return "", 0


def _divergence(divergence: Divergence, workflow: str, version: str) -> Finding:
    return Finding(
        "diverges",
        workflow,
        version,
        divergence.message,
        file=short_path(divergence.file),
        line=divergence.line,
        step=divergence.step,
        recorded=divergence.recorded,
        actual=divergence.actual,
        patch=divergence.patch,
    )
