"""Crash everywhere: runs a workflow once for each of its boundaries, and kills its worker there.

A replay-safe workflow ends each time as it does undisturbed, and repeats nothing that is recorded. There are as many
runs as boundaries, and a few more:

1. undisturbed, watching what the code calls and changes outside of steps (`suspects`, `global_state`);
2. with a fresh worker for every result, on which sets are iterated backwards, also watched;
3. for each boundary that the first run reached, with the worker killed there;
4. with results in another order, with one more task layer, and with signals that arrive before the run waits for them.
"""

import itertools
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from ...core.errors import InvalidArgument
from ...sdk.workflow.workflow import Workflow
from .comparison import Baseline, Same, baseline_of, findings_of, unawaited
from .global_state import watching_globals
from .performance import AnyWorkflow, Drive, Performance, Plan, Sent
from .report import CrashReport, Fails, Finding
from .sources import Culprit, Line, is_suppressed, line_at
from .suspects import Rule, watching

if TYPE_CHECKING:
    from ..env.environment import Environment

_numbers = itertools.count(1)
_FRESH = "with a fresh worker after every result"


async def crash_everywhere(
    env: "Environment",
    workflow: AnyWorkflow,
    input: Any = ...,
    *,
    signals: Sequence[Sent] = (),
    drive: Drive | None = None,
    same: Same | None = None,
    any_order: bool = True,
    fails: Fails = False,
    check: bool = True,
) -> CrashReport:
    """See TestEnv.crash_everywhere."""
    if not isinstance(workflow, Workflow):  # pyright: ignore[reportUnnecessaryIsInstance]  callers are users
        raise InvalidArgument(f"{workflow!r} is not a workflow. Give the decorated function.", field="workflow")
    campaign = _Campaign(env, workflow, input, signals=signals, drive=drive, same=same, any_order=any_order)
    campaign.report.fails = fails
    await campaign.run()
    if check:
        campaign.report.raise_if_wrong()
    return campaign.report


class _Campaign:
    def __init__(
        self,
        env: "Environment",
        workflow: AnyWorkflow,
        input: Any,
        *,
        signals: Sequence[Sent],
        drive: Drive | None,
        same: Same | None,
        any_order: bool,
    ) -> None:
        self._env = env
        self._workflow = workflow
        self._input = input
        self._signals = signals
        self._drive = drive
        self._same = same
        self._any_order = any_order
        self._workflow_id = f"crash-everywhere/{workflow.name}/{next(_numbers)}"
        self._baseline: Baseline | None = None
        self.report = CrashReport(workflow.name)
        self._mocks = env._mocks  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  within the test kit
        self._mocks_before = self._mocks_after = self._mocks.state()

    async def run(self) -> None:
        """Stops after the first run with a finding."""
        try:
            await self._undisturbed()
            await self._fresh_workers()
            await self._boundaries_and_variants()
        finally:
            self._mocks.restore(self._mocks_after)

    async def _boundaries_and_variants(self) -> None:
        for plan in self._plans():
            if self.report.findings:
                return
            if plan.kill_at is not None:
                self.report.boundaries.append(str(plan.kill_at))
            self._add(await self._perform(plan))

    def _plans(self) -> Iterator[Plan]:
        assert self._baseline is not None
        for boundary in self._baseline.observer.boundaries:
            yield Plan(f"when the worker was killed {boundary}", kill_at=boundary)
        if self._any_order:
            yield Plan("when results came in another order", last_first=True)
        yield Plan("with one task layer more", layered=True)
        if self._signals:
            yield Plan("when the signals came before they were waited for", early_signals=True)

    # --- the runs -----------------------------------------------------------------------------------------------------

    async def _undisturbed(self) -> None:
        plan = Plan(watched=True)
        performance = self._performance(plan)
        with self._watching(performance):
            ended = await performance.play()
        self._count(performance)
        self._add(findings_of(performance, ended, self._workflow, None, None))
        self._add(unawaited(performance.observer, plan))
        self._baseline = baseline_of(performance, ended, self._workflow)
        self.report.result, self.report.failed = ended.value, ended.failed
        self._mocks_after = self._mocks.state()

    async def _fresh_workers(self) -> None:
        """Every execution but the first iterates sets backwards. If only that makes a difference, the workflow depends
        on their order."""
        lines: list[Line] = []
        findings = await self._perform(Plan(_FRESH, kill_after_each=True, watched=True, backwards=_noting(lines)))
        if findings and lines:
            plain = await self._perform(Plan(_FRESH, kill_after_each=True))
            if not plain:
                await self._name_set(list(dict.fromkeys(lines)), findings)
                return
        self._add(findings)

    async def _name_set(self, lines: Sequence[Line], findings: Sequence[Finding]) -> None:
        for line in lines:
            if is_suppressed(line, "unordered"):
                continue
            alone = Plan(_FRESH, kill_after_each=True, backwards=partial(_is_at, line))
            differences = findings if len(lines) == 1 else await self._perform(alone)
            if differences:
                self.report.add(
                    Finding(
                        "unordered",
                        "the workflow follows the order of a set, which is another one in every process",
                        "Write sorted(...) around it, or use a list.",
                        differences[0].seen,
                        line,
                        differences[0].expected,
                        differences[0].got,
                    )
                )
                return

    async def _perform(self, plan: Plan) -> list[Finding]:
        performance = self._performance(plan)
        with ExitStack() as entered:
            if plan.watched:
                entered.enter_context(self._watching(performance))
            ended = await performance.play()
        self._count(performance)
        if plan.kill_at is not None and not performance.kills:
            self.report.skipped.append(f"{plan.kill_at}: that run did not come to it")
        parts = performance, ended, self._workflow, self._baseline, self._same
        return list(findings_of(*parts, any_order=self._any_order))

    def _performance(self, plan: Plan) -> Performance:
        self._mocks.restore(self._mocks_before)
        return Performance(
            self._env,
            self._workflow,
            self._input,
            plan,
            workflow_id=self._workflow_id,
            signals=self._signals,
            drive=self._drive,
        )

    def _count(self, performance: Performance) -> None:
        self.report.runs += 1
        self.report.kills += performance.kills

    def _add(self, findings: "Sequence[Finding] | Iterator[Finding]") -> None:
        for finding in findings:
            if not any(is_suppressed(line, finding.kind) for line in self._lines_of(finding)):
                self.report.add(finding)

    def _lines_of(self, finding: Finding) -> Iterable[Line]:
        """The lines with which a comment may suppress it: its own; without one, those of the workflow's definition."""
        if finding.line is not None:
            return (finding.line,)
        code = self._workflow.fn.__code__
        last = min((line for *_, line in code.co_lines() if line and line > code.co_firstlineno), default=0)
        return [line_at(code.co_filename, line) for line in range(code.co_firstlineno, last)]

    # --- watching a run -----------------------------------------------------------------------------------------------

    @contextmanager
    def _watching(self, performance: Performance) -> Generator[None]:
        seen = performance.plan.seen

        def on_suspect(name: str, rule: Rule, culprit: Culprit) -> None:
            self._add([Finding(rule.kind, f"{name}{_via(culprit)} {rule.message}", rule.remedy, seen, culprit.line)])

        def on_change(name: str, before: str, after: str, culprit: Culprit) -> None:
            message = (
                f"workflow code changes {name!r}{_via(culprit)}, which outlives the run: it does so on every replay"
            )
            remedy = "Keep it in a local variable, or put the change into a step."
            self._add([Finding("global-state", message, remedy, seen, culprit.line, before, after)])

        observer = performance.observer
        changes = watching_globals(self._workflow.fn, on_change, lambda: observer.threads_running > 0)
        with changes as left_at, watching(on_suspect):
            observer.left_at = left_at
            yield


def _is_at(line: Line, other: Line) -> bool:
    return line[:2] == other[:2]


def _noting(lines: list[Line]) -> Any:
    def turns(line: Line) -> bool:
        lines.append(line)
        return True

    return turns


def _via(culprit: Culprit) -> str:
    return "" if culprit.via is None else f" (called by {culprit.via})"
