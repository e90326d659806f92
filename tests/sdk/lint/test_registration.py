"""A worker warns of what lint finds in its workflows: at the line, once, and without being slow or noisy about it."""

import ast
import asyncio
import gc
import linecache
import socket
import warnings
from typing import Any

import pytest

from kagzi import Context, KagziWarning, Worker, Workflow, step, workflow
from kagzi.cli.demo.shop import WORKFLOWS
from kagzi.sdk.lint import sources
from kagzi.sdk.lint.registration import findings
from kagzi.sdk.worker.registry import Registry


def helper() -> float:
    import time

    return time.time()


@step
async def connection() -> socket.socket:
    return socket.socket()


def test_it_names_what_replay_would_not_survive() -> None:
    import datetime as dt
    import random
    import time
    from uuid import uuid4

    @workflow
    async def careless(ctx: Context) -> object:
        def body() -> float:
            return time.time()  # in a step: fine

        return [
            dt.datetime.now(),
            random.random(),
            uuid4(),
            time.sleep(0),  # noqa: ASYNC251  the subject
            open("x"),  # noqa: ASYNC230, PTH123  the subject
            await ctx.step("x").run(body),
            ctx.now(),
        ]

    matches = findings([careless])
    names = ["dt.datetime.now", "random.random", "uuid4", "time.sleep", "open"]
    assert [finding.message.split("(")[0] for finding in matches] == names
    assert all(finding.file == __file__ and finding.workflow == "careless" for finding in matches)
    assert all(
        "Use ctx." in finding.instead or "await ctx.sleep" in finding.instead or "step" in finding.instead
        for finding in matches
    )
    with pytest.warns(KagziWarning) as warned:
        Registry([careless])
    assert len(warned) == len(names)
    assert [each.lineno for each in warned] == [finding.line for finding in matches]
    assert str(warned[0].message) == (
        "dt.datetime.now() in a workflow returns another time on every replay. Use ctx.now(). [clock]"
    )


def test_it_follows_helpers_and_step_results() -> None:
    @workflow
    async def calls(ctx: Context) -> None:
        helper()
        await connection()

    clock, annotation = sorted(findings([calls]), key=lambda each: each.rule)
    assert (clock.rule, clock.line) == ("clock", helper.__code__.co_firstlineno + 3)
    assert [(call.function, call.file) for call in clock.called_from] == [("helper", __file__)]
    assert clock.advice.endswith(f"(Workflow 'calls' calls helper() at {__file__}:{clock.called_from[0].line}.)")
    assert (annotation.rule, annotation.message) == (
        "unserialisable",
        "the result of step function connection() cannot be recorded: socket has no JSON form.",
    )


def test_suppressions_hold_at_registration() -> None:
    @workflow
    async def excused(ctx: Context) -> float:
        helper()  # kagzi: ignore[clock] only logged
        await asyncio.sleep(1)  # kagzi: ignore[timer] a pause of no importance
        return 1.0

    assert findings([excused]) == []


def test_a_workflow_without_findings_and_one_without_source_are_silent() -> None:
    namespace: dict[str, Any] = {"Context": Context, "__name__": "nowhere"}
    exec("import time\nasync def hidden(ctx: Context) -> float: return time.time()", namespace)  # noqa: S102  the subject
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Registry([*WORKFLOWS, Workflow(namespace["hidden"])])


def test_code_that_was_typed_in_is_read_as_a_notebook_shows_it() -> None:
    text = "import time\nfrom kagzi import Context\nasync def typed(ctx: Context) -> float:\n    return time.time()\n"
    lines: list[str] = [*text.splitlines(keepends=True)]
    linecache.cache["<cell 1>"] = (len(text), None, lines, "<cell 1>")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, "<cell 1>", "exec"), namespace)  # noqa: S102  the subject
    (finding,) = findings([Workflow(namespace["typed"])])
    assert (finding.file, finding.line, finding.rule) == ("<cell 1>", 4, "clock")


def test_a_module_is_parsed_once_for_all_its_workflows_and_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    from kagzi.sdk.lint import registration

    parsed: list[str] = []
    parse = sources.Source

    def count(file: str, *rest: str) -> sources.Source:
        parsed.append(file)
        return parse(file, *rest)

    monkeypatch.setattr(sources, "Source", count)
    monkeypatch.setattr(registration, "_known", {})
    worker = Worker(workflows=WORKFLOWS)
    worker.namespace("a").max_concurrent(3)
    assert len(parsed) == 1


def test_nothing_of_the_parsed_modules_stays() -> None:
    """Trees of large files would stay until somebody looks for garbage, and make that slow."""
    source = f"""
from kagzi import Context, workflow

def helper() -> None: ...

@workflow
async def flow(ctx: Context) -> None:
    helper()

{"".join(f"def f{number}() -> int: return {number}" + chr(10) for number in range(500))}
"""
    file = "<a file of many functions>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"__name__": "many_functions"}
    exec(compile(source, file, "exec"), scope)  # noqa: S102  our own
    gc.collect()
    gc.disable()
    try:
        before = _nodes()
        assert findings([scope["flow"]]) == []
        assert _nodes() < before + 500
    finally:
        gc.enable()


def _nodes() -> int:
    return sum(isinstance(each, ast.FunctionDef) for each in gc.get_objects())
