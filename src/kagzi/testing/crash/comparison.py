"""Compares a disturbed run with an undisturbed one, and each execution of a run's code with the next."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...core.errors import Diverged
from .observation import Call, Execution, Observer
from .performance import AnyWorkflow, Ended, Performance, Plan
from .report import Finding
from .sources import Line, line_at

Same: TypeAlias = Callable[[Any, Any], bool]

_PLACE = re.compile(r"(?P<file>\S+\.py):(?P<line>\d+)")
_ONLY_RECORDED = (
    "What workflow code does may depend on its input and on recorded results alone: ctx.now(), ctx.uuid() and "
    "ctx.random() are the same on every replay, and everything else belongs into a step."
)
_DECIDE = (
    "Let the run decide by what is recorded: ctx.race(...) records who came first, ctx.parallel(...) waits for all, "
    "and a task that the code cancels is awaited with `except asyncio.CancelledError`. If the order is meant to matter "
    "here, call crash_everywhere(..., any_order=False)."
)
_RESULT = (
    _ONLY_RECORDED
    + " If the result is meant to differ, say what counts as the same: crash_everywhere(..., same=lambda a, b: ...)."
)


@dataclass(slots=True)
class Baseline:
    """The undisturbed run."""

    ended: Ended
    result: str
    observer: Observer
    calls: dict[str, Call]


def baseline_of(performance: Performance, ended: Ended, workflow: AnyWorkflow) -> Baseline:
    observer = performance.observer
    text = _text_of(ended, workflow, observer)
    return Baseline(ended, text, observer, _calls(observer))


def findings_of(
    performance: Performance,
    ended: Ended,
    workflow: AnyWorkflow,
    baseline: Baseline | None,
    same: Same | None,
    *,
    any_order: bool = True,
) -> Iterator[Finding]:
    """The clearest findings first. Without a baseline: only those that a single run shows. `any_order`: the run must
    end the same way even if results arrive in another order."""
    observer, plan = performance.observer, performance.plan
    if performance.diverged.done():
        yield _divergence(*performance.diverged.result(), observer, plan)
        yield from _arguments(observer, plan)
        return
    yield from _arguments(observer, plan)
    for execution, step_id in observer.ran_again:
        yield Finding(
            "ran-again",
            f"step {step_id!r} was recorded, and its function ran again",
            "This is a fault of Kagzi, not of the workflow: please report it.",
            plan.seen,
            execution.line_of(step_id),
        )
    if ended.stuck:
        yield Finding("stuck", f"the run does not end: {ended.stuck}", _ONLY_RECORDED, plan.seen)
    elif baseline is not None and (any_order or _order(observer) == _order(baseline.observer)):
        yield from _differences(performance, ended, workflow, baseline, same)


# --- one run ----------------------------------------------------------------------------------------------------------


def unawaited(observer: Observer, plan: Plan) -> Iterator[Finding]:
    """Calls whose results were not awaited before the function returned."""
    for execution in observer.executions:
        if not execution.returned:
            continue
        for step_id, scope in execution.made.items():
            if not scope.race:
                yield _not_awaited(execution, step_id, "is called and not awaited: it never runs", plan)
        for step_id in execution.left_open:
            call = execution.calls.get(step_id)
            if call is not None and not call.in_race:
                what = (
                    "is begun, and the workflow returns without waiting for it: whether it is done is a matter of time"
                )
                yield _not_awaited(execution, step_id, what, plan)


def _not_awaited(execution: Execution, step_id: str, what: str, plan: Plan) -> Finding:
    call = execution.calls.get(step_id)
    return Finding(
        "not-awaited",
        f"{'step' if call is None else call.kind} {step_id!r} {what}",
        "Write await before the call, or await its task before the workflow returns.",
        plan.seen,
        execution.line_of(step_id),
    )


def _divergence(run: Any, error: Diverged, observer: Observer, plan: Plan) -> Finding:
    """The text of the engine's error names the line."""
    place = _PLACE.search(error.message)
    line = None if place is None else line_at(place["file"], int(place["line"]))
    step_id = str(error.metadata.get("step_id", ""))
    execution = observer.execution(run)
    line = line or execution.line_of(step_id)
    message = "the code does not do on replay what it did before"
    if execution.raised is not None:
        message, line = f"{message}: it raises {execution.raised.text}", execution.raised.line or line
    recorded = error.metadata.get("recorded")
    return Finding(
        "diverged",
        message,
        f"{_ONLY_RECORDED} In Kagzi's words: {error.message}",
        plan.seen,
        line,
        f"{recorded!r}, which is recorded" if recorded else None,
        f"{step_id!r}" if recorded else None,
    )


def _arguments(observer: Observer, plan: Plan) -> Iterator[Finding]:
    first: dict[tuple[str, str], Call] = {}
    for execution in observer.executions:
        for step_id, call in execution.calls.items():
            before = first.setdefault((execution.run_id, step_id), call)
            if before.arguments != call.arguments:
                yield Finding(
                    "argument",
                    f"{call.kind} {step_id!r} is called with other arguments when the workflow is replayed",
                    _ONLY_RECORDED,
                    plan.seen,
                    call.line,
                    before.arguments,
                    call.arguments,
                )


# --- two runs ---------------------------------------------------------------------------------------------------------


def _differences(
    performance: Performance, ended: Ended, workflow: AnyWorkflow, baseline: Baseline, same: Same | None
) -> Iterator[Finding]:
    observer, plan = performance.observer, performance.plan
    if plan.kill_at is not None and _is_raced(plan.kill_at.step_id, baseline.calls):
        return  # a branch that is executed again may finish after another one
    yield from _other_steps(performance, baseline)
    got = _text_of(ended, workflow, observer)
    if got == baseline.result:
        return
    if same is not None and not ended.failed and not baseline.ended.failed and same(baseline.ended.value, ended.value):
        return
    is_reordered = _order(observer) != _order(baseline.observer)
    line = _raised_at(observer) or _raised_at(baseline.observer) or baseline.observer.returned_at
    yield Finding(
        "result",
        "the run ends otherwise",
        _DECIDE if is_reordered else _RESULT,
        plan.seen,
        line,
        baseline.result,
        got,
    )


def _other_steps(performance: Performance, baseline: Baseline) -> Iterator[Finding]:
    """Calls that only one of the two runs made: the last execution of this one, or that of the undisturbed run."""
    expected, got = _last_calls(baseline.observer), _last_calls(performance.observer)
    if expected == got:
        return
    step_id = next(each for each in {**expected, **got} if expected.get(each) != got.get(each))
    line = _line_of(step_id, performance.observer) or _line_of(step_id, baseline.observer)
    yield Finding(
        "steps",
        f"{expected.get(step_id) or got[step_id]} {step_id!r} is not called in every run",
        _ONLY_RECORDED if _order(performance.observer) == _order(baseline.observer) else _DECIDE,
        performance.plan.seen,
        line,
        f"{expected[step_id]} {step_id!r}" if step_id in expected else "no such call",
        f"{got[step_id]} {step_id!r}" if step_id in got else "no such call",
    )


def _last_calls(observer: Observer) -> dict[str, str]:
    """The kind of each call by its id, without the branches of races: any of them may win."""
    executions = [each for each in observer.executions if not each.run]
    calls = executions[-1].calls if executions else {}
    return {step_id: call.kind for step_id, call in calls.items() if not call.in_race and "race[" not in step_id}


def _is_raced(step_id: str, calls: dict[str, Call]) -> bool:
    return step_id in calls and calls[step_id].in_race


def _order(observer: Observer) -> list[str]:
    """The order of the run's own results, without those of its children."""
    return [each.step_id for each in observer.boundaries if each.moment == "after" and not each.run]


def _calls(observer: Observer) -> dict[str, Call]:
    """The run's own calls, without those of its children."""
    return {step_id: call for each in observer.executions if not each.run for step_id, call in each.calls.items()}


def _line_of(step_id: str, observer: Observer) -> Line | None:
    lines = (each.line_of(step_id) for each in observer.executions)
    return next((line for line in lines if line is not None), None)


def _raised_at(observer: Observer) -> Line | None:
    """The line at which an error left the workflow."""
    raised = [each.raised for each in observer.executions if not each.run and each.raised is not None]
    return raised[-1].line if raised else None


def _text_of(ended: Ended, workflow: AnyWorkflow, observer: Observer) -> str:
    """The result as text, without run ids: these differ in every run."""
    if ended.failed:
        text = f"failed: {ended.failed}"
    else:
        data: bytes = workflow.output_codec.encode(ended.value, what="result")
        text = data.decode(errors="replace")
    for run_id, name in observer.names.items():
        text = text.replace(run_id, f"<id of {name or 'the run'}>")
    return text
