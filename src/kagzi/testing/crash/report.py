"""The findings of `crash_everywhere`, worded for the author of the workflow."""

import re
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
Fails = bool | str | None
"""Whether the workflow is meant to fail; a text: with an error that contains it; None: it may."""
KINDS: tuple[Kind, ...] = get_args(Kind)
_CAUSES: tuple[Kind, ...] = KINDS[:8]
_SHOWN_CHARS = 400
_INDENT = "      "
_WIDTH = 118
_OF_RUN = re.compile(r"^run \S+ ")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a workflow that is not replay-safe: its `kind`, a `message`, and the `remedy`. If a run differed,
    `expected` and `got` are what was recorded and what came instead.

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
    """What `crash_everywhere` did with a `workflow`, and its `findings`.

    `result` is what the undisturbed run returned, `failed` how it failed, `fails` how it was meant to. `boundaries` are
    the places where the worker was killed, one run each. `runs` counts all runs, `kills` the workers. `skipped` lists
    what could not be tried.
    """

    workflow: str
    result: Any = None
    failed: str = ""
    fails: Fails = False
    boundaries: list[str] = field(default_factory=list[str])
    runs: int = 0
    kills: int = 0
    findings: list[Finding] = field(default_factory=list[Finding])
    skipped: list[str] = field(default_factory=list[str])

    @property
    def ok(self) -> bool:
        """Whether there are no findings, and the workflow ends as it is meant to: it fails only if `fails` says so."""
        return not (self.findings or self.wrong_end)

    @property
    def wrong_end(self) -> str:
        """What is wrong with the end of the undisturbed run; empty if it ended as it is meant to."""
        if self.fails is None or (self.failed and (self.fails is True or (self.fails and self.fails in self.failed))):
            return ""
        if self.failed:
            how = _OF_RUN.sub("", self.failed)
            if self.fails:
                return f"workflow {self.workflow!r} {how}\n{_INDENT}It was meant to fail otherwise: {self.fails!r}"
            remedy = "If this is what you test: crash_everywhere(..., fails=True)"
            return f"workflow {self.workflow!r} {how}\n{_INDENT}{remedy}"
        if self.fails and not self.findings:
            return f"workflow {self.workflow!r} was meant to fail ({self.fails!r}), and did not"
        return ""

    def add(self, finding: Finding) -> None:
        """Keep one `finding` for each line and kind; without a line, one for each kind."""
        known = {(each.kind, each.line and each.line[:2]) for each in self.findings}
        if (finding.kind, finding.line and finding.line[:2]) not in known:
            self.findings.append(finding)
            self.findings.sort(key=_weight)  # a stable sort: earlier findings stay first

    def raise_if_wrong(self) -> None:
        """Raises NotReplaySafe unless it is `ok`."""
        if not self.ok:
            raise NotReplaySafe(self)

    def __str__(self) -> str:
        runs = f"{self.runs} runs, the worker killed {self.kills} times"
        if not self.findings:
            safe = f"workflow {self.workflow!r} is replay-safe: {len(self.boundaries)} boundaries, {runs}"
            return f"{self.wrong_end}\n\nApart from that, {safe}" if self.wrong_end else safe
        causes = [each for each in self.findings if each.is_cause]
        effects = [each for each in self.findings if not each.is_cause]
        lines = [self.wrong_end, ""] if self.failed and self.wrong_end else []
        lines.append(f"workflow {self.workflow!r} is not replay-safe (found in {runs})")
        for each in causes or effects:
            lines += ["", str(each), each.advice]
        if causes and effects:
            lines += ["", "What it led to:"]
            for each in effects:
                lines += ["", str(each)]
        return "\n".join(lines)


class NotReplaySafe(AssertionError):
    """A run of the workflow does not survive the loss of its worker, or fails although it is not meant to. `report` has
    the findings, the clearest first."""

    def __init__(self, report: CrashReport) -> None:
        super().__init__(str(report))
        self.report = report

    @property
    def line(self) -> Line | None:
        """The line to look at first."""
        return self.report.findings[0].line if self.report.findings else None
