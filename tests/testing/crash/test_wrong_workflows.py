"""Crash everywhere finds what is not replay-safe, and names the line."""

import inspect

import pytest

from kagzi import Workflow
from kagzi.testing import NotReplaySafe, TestEnv
from kagzi.testing.crash.report import Kind

from . import wrong_workflows as wrong

MARK = "# not replay-safe"
WRONG: list[tuple[Workflow[str, object], Kind]] = [
    (wrong.reads_the_clock, "clock"),
    (wrong.draws_lots, "random"),
    (wrong.counts_in_a_global, "global-state"),
    (wrong.counts_after_a_slow_step, "global-state"),
    (wrong.follows_a_set, "unordered"),
    (wrong.writes_a_file, "blocking"),
    (wrong.sends_a_mail, "global-state"),
    (wrong.moves_a_task_layer, "diverged"),
    (wrong.branches_on_time, "clock"),
    (wrong.lets_a_cancellation_out, "result"),
    (wrong.does_not_await, "not-awaited"),
    (wrong.does_not_wait_for_its_task, "not-awaited"),
    (wrong.starts_a_thread, "thread"),
    (wrong.calls_to_thread, "thread"),
    (wrong.reads_a_changed_global, "argument"),
    (wrong.follows_a_set_of_steps, "unordered"),
]


def marked_line(workflow: Workflow[str, object]) -> int:
    """In the workflow, or in the function above it that it calls."""
    for function in (workflow.fn, wrong.pack_and_ship):
        lines, first = inspect.getsourcelines(function)
        marked = [first + number for number, line in enumerate(lines) if MARK in line]
        if marked:
            return marked[0]
    raise AssertionError(f"no line of {workflow} is marked")


@pytest.mark.filterwarnings("ignore:coroutine 'ctx.step:RuntimeWarning", "ignore::kagzi.KagziWarning")
@pytest.mark.parametrize(("workflow", "kind"), WRONG, ids=[workflow.name for workflow, _ in WRONG])
async def test_the_line_is_named(kagzi_env: TestEnv, workflow: Workflow[str, object], kind: Kind) -> None:
    with pytest.raises(NotReplaySafe) as caught:
        await kagzi_env.crash_everywhere(workflow, "kiwi")
    first, line = caught.value.report.findings[0], marked_line(workflow)
    assert first.line is not None
    assert (first.kind, first.line.file, first.line.line) == (kind, wrong.__file__, line), caught.value
    assert f"wrong_workflows.py:{line}: " in str(caught.value)
    assert MARK in first.line.text
