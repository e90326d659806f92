"""The findings of `crash_everywhere`, worded for the author of the workflow."""

import textwrap
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from .sources import Line

Kind = Literal[
    # Causes: the rules of `kagzi lint`, by name.
    "clock", "random", "blocking", "network", "thread", "unordered", "not-awaited", "global-state",
    # Consequences.
    "diverged", "ran-again", "argument", "result", "steps", "stuck",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
_CAUSES: tuple[Kind, ...] = KINDS[:8]
_SHOWN_CHARS = 400
_INDENT = "      "
_WIDTH = 118


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a workflow that is not replay-safe.

    `line` is the line of the workflow to look at. `seen` says which run showed it: the boundary at which the worker was
    killed, or how that run differed.
    """

    kind: Kind
    message: str
    remedy: str
    seen: str
    line: Line | None = None
    expected: str | None = None
    got: str | None = None

    @property
    def is_cause(self) -> bool:
        """Whether the line itself is wrong. Otherwise it is where the difference became visible."""
        return self.kind in _CAUSES

    def __str__(self) -> str:
        parts = [f"{self.line}: {self.message}" if self.line is not None else self.message]
        if self.line is not None and self.line.text:
            parts.append(f"{self.line.line:>6} |   {self.line.text}")
        if self.expected is not None or self.got is not None:
            first, second = ("before", "after") if self.kind == "global-state" else ("expected", "got")
            width = len(first) + 2
            parts.append(f"{_INDENT}{first + ':':<{width}}{_short(self.expected)}")
            parts.append(f"{_INDENT}{second + ':':<{width}}{_short(self.got)}")
        return "\n".join([*parts, f"{_INDENT}(seen {self.seen})"])

    @property
    def advice(self) -> str:
        """What to write instead, line by line."""
        return textwrap.fill(self.remedy, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT)


def _weight(finding: Finding) -> tuple[bool, int]:
    return not finding.is_cause, 0 if finding.is_cause else KINDS.index(finding.kind)


def _short(text: str | None) -> str:
    if text is None:
        return "nothing"
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}... ({len(text):,} characters)"


@dataclass(slots=True)
class CrashReport:
    """What `crash_everywhere` did and found.

    `result` is what the undisturbed run returned, `failed` how it failed. `boundaries` are the places where the worker
    was killed, one run each. `runs` counts all runs, `kills` the workers. `skipped` lists what could not be tried.
    """

    workflow: str
    result: Any = None
    failed: str = ""
    boundaries: list[str] = field(default_factory=list[str])
    runs: int = 0
    kills: int = 0
    findings: list[Finding] = field(default_factory=list[Finding])
    skipped: list[str] = field(default_factory=list[str])

    @property
    def ok(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    def add(self, finding: Finding) -> None:
        """Keep one finding for each line and kind; without a line, one for each kind."""
        known = {(each.kind, each.line and each.line[:2]) for each in self.findings}
        if (finding.kind, finding.line and finding.line[:2]) not in known:
            self.findings.append(finding)
            self.findings.sort(key=_weight)  # a stable sort: earlier findings stay first

    def raise_if_wrong(self) -> None:
        """Raises NotReplaySafe if there are findings."""
        if self.findings:
            raise NotReplaySafe(self)

    def __str__(self) -> str:
        runs = f"{self.runs} runs, the worker killed {self.kills} times"
        if self.ok:
            return f"workflow {self.workflow!r} is replay-safe: {len(self.boundaries)} boundaries, {runs}"
        causes = [each for each in self.findings if each.is_cause]
        effects = [each for each in self.findings if not each.is_cause]
        lines = [f"workflow {self.workflow!r} is not replay-safe (found in {runs})"]
        for each in causes or effects:
            lines += ["", str(each), each.advice]
        if causes and effects:
            lines += ["", "What it led to:"]
            for each in effects:
                lines += ["", str(each)]
        return "\n".join(lines)


class NotReplaySafe(AssertionError):
    """A run of the workflow does not survive the loss of its worker. `report` has the findings, the clearest first."""

    def __init__(self, report: CrashReport) -> None:
        super().__init__(str(report))
        self.report = report

    @property
    def line(self) -> Line | None:
        """The line to look at first."""
        return self.report.findings[0].line if self.report.findings else None
