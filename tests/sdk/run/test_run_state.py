"""The state of a run's execution: one table of transitions, one writer, parts that see little of it."""

import ast
import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

import kagzi
from kagzi.sdk.execution import ports
from kagzi.sdk.execution.calls.threads import StepThreads
from kagzi.sdk.execution.claim import Claim
from kagzi.sdk.execution.run_execution import RunExecution, Services
from kagzi.sdk.execution.state import LIVE, TRANSITIONS, RunState
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from kagzi.v1 import worker_pb2 as pb

from .fake import fake_server

SDK = Path(kagzi.__file__).parent / "sdk"
OWNER = "run_execution.py"


@workflow
async def nothing(ctx: Context) -> None: ...


def execution() -> RunExecution:
    port: Any = None
    services = Services(StepThreads(1), retry=None, resident_wait_s=1.0, build_id="")
    claim = Claim(pb.Task(run_id="r"), port, loop := asyncio.get_running_loop(), loop, 0.0)
    return RunExecution(claim, nothing, services, on_closed=lambda run: None, on_parked=lambda run, s: None)


def test_every_state_is_reached_and_leads_to_the_end() -> None:
    assert set(TRANSITIONS) == set(RunState)
    reached, unseen = set[RunState](), [RunState.RUNNING]
    while unseen:
        state = unseen.pop()
        reached.add(state)
        unseen.extend(TRANSITIONS[state] - reached)
    assert reached == set(RunState)
    assert not TRANSITIONS[RunState.ENDED]
    assert not any(TRANSITIONS[state] & LIVE for state in (RunState.TEARDOWN, RunState.ENDING, RunState.ENDED))


@pytest.mark.parametrize("state", RunState)
async def test_only_what_the_table_allows_happens(state: RunState) -> None:
    for target in RunState:
        run = execution()
        run.state = state
        if target in TRANSITIONS[state]:
            run.advance(target)
            assert (run.state, run.live, run.can_proceed) == (target, target in LIVE, target is RunState.RUNNING)
        else:
            with pytest.raises(AssertionError, match="does not lead to"):
                run.advance(target)
            assert run.state is state


async def test_a_run_that_ended_cannot_be_abandoned() -> None:
    async with fake_server(nothing) as server:
        run = server.start(nothing)
        port = server.claim(run)
        await server.until_left(run)
        assert port.execution is not None
        port.execution.abandon("its lease was lost")  # the notice crossed the answer
        assert server.executor.active == 0


def assigned(tree: ast.Module) -> Iterator[ast.Attribute]:
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            elements = target.elts if isinstance(target, ast.Tuple) else [target]
            yield from (each for each in elements if isinstance(each, ast.Attribute))


def test_nobody_else_writes_its_attributes() -> None:
    written: list[str] = []
    for path in SDK.rglob("*.py"):
        if path.name == OWNER or path.parent.name == "client":
            continue
        for target in assigned(ast.parse(path.read_text())):
            holder = ast.unparse(target.value)
            if holder.rpartition(".")[2] in ("run", "_run", "kept", "_kept", "execution"):
                written.append(f"{path.relative_to(SDK)}:{target.lineno} {ast.unparse(target)}")
    assert not written, written


def test_its_state_is_written_in_one_place() -> None:
    tree = ast.parse((SDK / "execution" / OWNER).read_text())
    places = [target for target in assigned(tree) if ast.unparse(target) == "self.state"]
    methods = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    owners = {node.name for target in places for node in methods if target in list(ast.walk(node))}
    assert owners == {"__init__", "advance"}


def test_its_parts_see_at_most_ten_methods() -> None:
    protocols = [each for each in vars(ports).values() if isinstance(each, type) and Protocol in each.__bases__]
    assert {"RunControl", "CallControl", "RunLifecycle"} <= {each.__name__ for each in protocols}
    for each in protocols:
        assert len([name for name in vars(each) if not name.startswith("_")]) <= 10, each
