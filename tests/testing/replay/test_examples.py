"""Every example, recorded by a real server and replayed offline: no divergence, the same values; and with the code
changed at any one of its calls: noticed at that line, before any body runs."""

import ast
import asyncio
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from examples import (
    e00_min,
    e01_hello,
    e02_order,
    e03_parallel,
    e04_race,
    e05_approval,
    e06_child,
    e07_agent,
    e08_schedule,
)
from kagzi import Kagzi, StepStatus, Worker, Workflow
from kagzi.testing import History, Replay, Replayer

from .recording import ended


class Case(NamedTuple):
    module: ModuleType
    workflow: Workflow[Any, Any]
    input: Any
    signal: tuple[Any, Any] | None = None


BLOCKS = ast.AsyncFunctionDef | ast.For | ast.If | ast.Try
ORDER = e02_order.OrderInput(user_id=1, items=["a"], total=9.5)
EXPENSE = e05_approval.Expense(id="e1", amount=5)
CASES = [
    Case(e00_min, e00_min.hello, "world"),
    Case(e01_hello, e01_hello.hello, "world"),
    Case(e02_order, e02_order.process_order, ORDER),
    Case(e03_parallel, e03_parallel.build_profile, "u1"),
    Case(e04_race, e04_race.best_quote, "berlin"),
    Case(e04_race, e04_race.who_won, "berlin"),
    Case(
        e05_approval,
        e05_approval.approve_expense,
        EXPENSE,
        (e05_approval.decision, e05_approval.Decision(approved=True, by="ada")),
    ),
    Case(e06_child, e06_child.publish_album, ["a", "b", "c"]),
    Case(e06_child, e06_child.make_thumbnail, "a"),
    Case(e07_agent, e07_agent.support_agent, e07_agent.Task(goal="refund me"), (e07_agent.approved, True)),
    Case(e08_schedule, e08_schedule.generate_report, e08_schedule.ReportConfig(team="x")),
]


@pytest.fixture(scope="module")
def recorded() -> list[tuple[Case, History]]:
    return asyncio.run(record_all())


async def record_all() -> list[tuple[Case, History]]:
    histories: list[tuple[Case, History]] = []
    async with Kagzi.connect(":memory:"):  # one server for all
        for number, case in enumerate(CASES):
            namespace = f"n{number}"
            async with Kagzi.connect(":memory:", namespace=namespace) as client:
                run = await client.start(case.workflow, case.input)
                if case.signal is not None:
                    await run.signal(*case.signal)
                async with Worker(":memory:", namespace=namespace, workflows=workflows_of(case.module)):
                    await ended(run)
                histories.append((case, await History.fetch(client, run)))
    return histories


def workflows_of(module: ModuleType) -> list[Workflow[Any, Any]]:
    return [each for each in vars(module).values() if isinstance(each, Workflow)]


async def test_every_example_replays(recorded: list[tuple[Case, History]]) -> None:
    for case, history in recorded:
        replay = await Replayer(workflows_of(case.module)).run(history)
        assert (replay.outcome, replay.as_recorded) == ("completed", True), (case, replay)
        assert [each.id for each in replay.steps if each.seq] != [], case
        assert {each.file for each in replay.steps} == {case.module.__file__}
        again = await Replayer(workflows_of(case.module)).run(history)
        assert again == replay


async def test_every_example_changed_at_any_call_is_noticed_at_its_line(recorded: list[tuple[Case, History]]) -> None:
    changes = 0
    for case, history in recorded:
        replay = await Replayer(workflows_of(case.module)).run(history)
        # What lost a race may change.
        calls = {each.line: each.name for each in replay.steps if each.status is StepStatus.COMPLETED}
        for first, last, tree in changed_trees(case.module, calls):
            noticed = await replay_changed(case, history, tree)
            divergence = noticed.divergence
            assert divergence is not None, (case.workflow, first, ast.unparse(tree))
            assert divergence.file == case.module.__file__
            assert first <= divergence.line <= last, (case.workflow, first, last, divergence)
            assert noticed.executed == ()
            changes += 1
    assert changes > 2 * len(CASES), changes


async def replay_changed(case: Case, history: History, tree: ast.Module) -> Replay:
    """Its bodies would fail: the code that they call is not there."""
    module = ModuleType(f"{case.module.__name__}_changed")
    module.__package__, module.__file__ = "examples", case.module.__file__
    sys.modules[module.__name__] = module  # where annotations are looked up
    try:
        exec(compile(tree, str(case.module.__file__), "exec"), vars(module))  # noqa: S102  an example of ours
        return await Replayer(workflows_of(module)).run(history)
    finally:
        del sys.modules[module.__name__]


def changed_trees(module: ModuleType, calls: dict[int, str]) -> Iterator[tuple[int, int, ast.Module]]:
    """The module with one change: another name for a call, or one more step before a statement with a call. With the
    lines of what was changed."""
    source = Path(str(module.__file__)).read_text()
    for change in (rename, insert):
        for number, node in enumerate(ast.walk(ast.parse(source))):
            if not isinstance(node, ast.Call | BLOCKS):
                continue
            tree = ast.parse(source)
            place = change(tree, number, calls)
            if place is not None:
                yield place.lineno, (place.end_lineno or 0) + 1, ast.fix_missing_locations(tree)


def rename(tree: ast.Module, number: int, calls: dict[int, str]) -> ast.expr | None:
    """ctx.step("x"), ctx.sleep("x", ...) and the like, if the history has come there."""
    match list(ast.walk(tree))[number]:
        case (
            ast.Call(func=ast.Attribute(value=ast.Name(id="ctx")), args=[ast.Constant(value=str() as name), *_]) as call
        ):
            if name not in {calls.get(line) for line in range(call.lineno, (call.end_lineno or 0) + 2)}:
                return None
            call.args[0] = ast.copy_location(ast.Constant(f"{name}-changed"), call.args[0])
            return call
        case _:
            return None


def insert(tree: ast.Module, number: int, calls: dict[int, str]) -> ast.stmt | None:
    node = list(ast.walk(tree))[number]
    if not isinstance(node, BLOCKS):
        return None
    for place, statement in enumerate(node.body):
        simple = isinstance(statement, ast.Expr | ast.Assign | ast.Return)
        if simple and not calls.keys().isdisjoint(range(statement.lineno, (statement.end_lineno or 0) + 1)):
            more = ast.parse('await ctx.step("one-more").run(int)').body[0]
            for each in ast.walk(more):
                ast.copy_location(each, statement)
            node.body.insert(place, more)
            return statement
    return None


def test_the_changes_cover_every_workflow() -> None:
    assert {case.workflow for case in CASES} == {
        each
        for module in {case.module for case in CASES}
        for each in workflows_of(module)
        if inspect.getmodule(each.fn) is module
    }
