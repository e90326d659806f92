"""Replay is exact: whatever is cut off when, and whatever order things finish in, a run goes on as if nothing had
happened."""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest
import uvloop
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from kagzi.core.states import RunStatus, StepKind
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from kagzi.sdk.workflow.workflow import Workflow
from tests.support.timeouts import LOADED_MACHINE_S

from .fake import TIMEOUT_S, FakeRun, FakeServer, fake_server
from .programs import PROGRAMS, Program, ProgramRunner, World, small_child

LOOPS = pytest.mark.parametrize(
    "loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)
SEEDS = st.integers(0, 2**32)
# Not shrunk: what fails here depends on timing, and shrinking it takes minutes.
SOME = settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


def on_loop(loop_factory: Callable[[], asyncio.AbstractEventLoop], main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main)


def workflow_of(runner: ProgramRunner, program: Program) -> Workflow[None, Any]:
    async def random_program(ctx: Context) -> Any:
        return await runner.run(ctx, program)

    return Workflow(random_program)


async def see_through(server: FakeServer, run: FakeRun, world: World, crashes: list[tuple[int, bool]]) -> None:
    """Execute the run; its first workers die after so many commits each. Every worker has its own timing."""

    def not_recorded(step_id: str) -> None:
        step = run.steps.get(step_id)
        assert step is None or not step.seq, f"{step_id} runs although its result was recorded"

    children: set[asyncio.Task[None]] = set()
    driven: set[str] = set()

    def meanwhile() -> None:
        if world.random.random() < 0.1:
            server.signal(run, "number", world.random.randrange(100))
        for child in server.children_of(run):
            if child.run_id not in driven and world.random.random() < 0.1:
                driven.add(child.run_id)
                children.add(asyncio.create_task(server.finish(child)))

    world.before_body = not_recorded
    world.meanwhile = meanwhile
    async with asyncio.timeout(TIMEOUT_S):
        while not run.status.ended and not server.broken:
            crash_after, drop_answer = crashes.pop() if crashes else (None, False)
            executor = server.executor
            port = server.claim(run, crash_after=crash_after, drop_last_answer=drop_answer)
            left = asyncio.create_task(server.until_left(run))
            crashed = asyncio.create_task(port.crashed.wait())
            await asyncio.wait([left, crashed], return_when=asyncio.FIRST_COMPLETED)
            left.cancel()
            crashed.cancel()
            if port.crashed.is_set():
                assert port.execution is not None
                server.executor = server.new_executor()
                port.execution.abandon("cut")
                executor.release_all("cut")
                await executor.drained()
                executor.close()
            elif run.status is RunStatus.SLEEPING and children:
                await asyncio.wait(children)
                children.clear()
            elif run.status is RunStatus.SLEEPING:
                await wake(server, run, world)
        await asyncio.gather(*children)


async def wake(server: FakeServer, run: FakeRun, world: World) -> None:
    """Something happens, so that a sleeping run goes on: a child ends, a signal comes, or time goes by."""
    children = server.children_of(run)
    waits = [step for step in run.steps.values() if step.kind is StepKind.SIGNAL and not step.seq]
    choices = ["child"] * bool(children) + ["signal"] * bool(waits) + ["time"] * (run.due_at is not None)
    match world.random.choice(choices):
        case "child":
            await server.finish(world.random.choice(children))
        case "signal":
            server.signal(run, "number", world.random.randrange(100))
        case _:
            assert run.due_at is not None
            server.advance(max(run.due_at - server.now, 0) / 1_000_000)


_STEPS: Program = [
    ("gather", [[("wait", "1ms"), ("map", 4, 1)]]),
    ("fail", "b"),
    ("gather", [[("wait", "1ms"), ("map", 4, 3)]]),
]
# A child ends before a step is recorded, and its end reaches the worker after the step's acknowledgement.
OVERTAKEN: Program = [("wait_long",), *[("first", [[("child", True)] * 2, _STEPS])] * 2]
# A body ends while its branch, inside of another one, is being given up.
ABANDONED_BRANCH: Program = [
    ("first", [[("wait_long",)], [("map", 0, 3), ("sleep", "0s"), ("step", "b")]]),
    ("once", "a"),
    ("tasks", [
        [("thrice", "a")],
        [
            ("race", [
                [("thrice", "a"), ("handle",), ("handle",)],
                [("facts",)],
                [("race_step", [[("sleep", "1ms"), ("wait_long",), ("facts",)]]), ("facts",), ("child", False)],
            ]),
            ("child", True),
            ("child", True),
        ],
        [("wait_long",), ("step", "b"), ("map", 0, 2)],
    ]),
]  # fmt: skip
# A call that replay holds back is cancelled, and the run has nothing left to do but wait.
BLOCKED_CALL: Program = [
    ("race_step", [[("wait_long",), ("facts",), ("thrice", "b")]]),
    ("handle",),
    ("wait", "1ms"),
]


@LOOPS
@example(program=OVERTAKEN, seed=238, crashes=[])
@example(program=ABANDONED_BRANCH, seed=23577, crashes=[(5, True), (17, False), (6, False)])
@example(program=BLOCKED_CALL, seed=789152537, crashes=[(5, True), (4, False)])
@given(program=PROGRAMS, seed=SEEDS, crashes=st.lists(st.tuples(st.integers(1, 25), st.booleans()), max_size=4))
@SOME
def test_a_random_program_survives_cuts_and_replays_to_the_same_end(
    loop_factory: Callable[[], asyncio.AbstractEventLoop], program: Program, seed: int, crashes: list[tuple[int, bool]]
) -> None:
    async def scenario() -> None:
        random = Random(seed)
        world = World(seed)
        flow = workflow_of(ProgramRunner(world), program)
        options = {"kept_runs_max": random.choice([0, 10]), "kept_s": 100_000}
        async with fake_server(flow, small_child, latency=lambda: random.randrange(4), **options) as server:
            run = server.start(flow)
            await see_through(server, run, world, list(crashes))
            assert not server.broken, (server.broken, run.log)
            assert run.status is RunStatus.COMPLETED, run.error
            first, seqs = run.result, {step.step_id: step.seq for step in run.steps.values() if step.seq}
            step_ids = set(run.steps)

            world.bodies.clear()
            world.random.seed(seed + 1)
            run.status = RunStatus.PENDING
            await see_through(server, run, world, [])
            assert run.result == first
            # What was begun and given up (a branch taken down by a sibling) may not even begin again.
            assert world.bodies == []
            assert set(run.steps) == step_ids
            assert {step_id: run.steps[step_id].seq for step_id in seqs} == seqs

    on_loop(loop_factory, scenario())


@LOOPS
@given(program=PROGRAMS, seed=SEEDS)
@SOME
def test_a_result_does_not_depend_on_timing_unless_the_program_looks_at_it(
    loop_factory: Callable[[], asyncio.AbstractEventLoop], program: Program, seed: int
) -> None:
    async def outcome(server_seed: int) -> tuple[Any, set[str]]:
        random = Random(server_seed)
        world = World(server_seed)
        flow = workflow_of(ProgramRunner(world), blind(program))
        async with fake_server(flow, small_child, latency=lambda: random.randrange(4)) as server:
            run = server.start(flow)
            await see_through(server, run, world, [])
            return run.result, set(run.steps)

    async def scenario() -> None:
        assert await outcome(seed) == await outcome(seed + 1)

    on_loop(loop_factory, scenario())


def blind(program: Program) -> Program:
    """The program without what sees the order of things."""
    blinded: Program = []
    for action in program:
        if action[0] in ("first", "queue", "as_completed", "abort", "fail_fast", "race", "race_sleep", "race_step"):
            blinded.append(("gather", [blind(branch) for branch in action[1]]))
        elif action[0] in ("gather", "nested", "group", "tasks", "parallel", "limited", "collect"):
            blinded.append((action[0], [blind(branch) for branch in action[1]]))
        elif action[0] not in ("facts", "wait", "wait_long"):
            blinded.append(action)
    return blinded


async def test_cut_after_every_operation() -> None:
    program: Program = [
        ("step", "a"),
        ("gather", [[("step", "a"), ("sleep", "2h"), ("step", "b")], [("step", "a"), ("thrice", "b")]]),
        ("fail", "c"),
        ("queue", [[("step", "x"), ("step", "y")], [("step", "x"), ("sleep", "1ms")]]),
    ]
    outcomes: list[Any] = []
    for drop_answer in (False, True):
        for crash_after in range(1, 31):
            world = World(crash_after)
            flow = workflow_of(ProgramRunner(world), program)
            async with fake_server(flow) as server:
                run = server.start(flow)
                await see_through(server, run, world, [(crash_after, drop_answer)])
                outcomes.append(run.result[:3])
    assert all(outcome == outcomes[0] for outcome in outcomes)


async def test_branches_with_equal_step_names_keep_their_own_results() -> None:
    latches = {name: asyncio.Event() for name in ("left", "right")}
    bodies: list[str] = []

    async def work(name: str, n: int) -> str:
        bodies.append(f"{name}{n}")
        if n == 1:
            await latches[name].wait()
        return f"{name}{n}"

    async def branch(ctx: Context, name: str) -> list[str]:
        return [await ctx.step("work").run(work, name, n) for n in range(3)]

    @workflow
    async def both(ctx: Context) -> list[list[str]]:
        return list(await asyncio.gather(branch(ctx, "left"), branch(ctx, "right")))

    async with fake_server(both) as server:
        run = server.start(both)
        # The right branch finishes its second step; then the worker is gone.
        port = server.claim(run, crash_after=4)
        latches["right"].set()
        await asyncio.wait_for(port.crashed.wait(), LOADED_MACHINE_S)
        assert port.execution is not None
        port.execution.abandon("cut")
        latches["left"].set()
        server.claim(run)
        await server.until_left(run)
        assert run.result == [["left0", "left1", "left2"], ["right0", "right1", "right2"]]
        assert bodies.count("right1") == 1
        assert set(run.steps) == {
            *("task[1]/work", "task[1]/work#2", "task[1]/work#3"),
            *("task[2]/work", "task[2]/work#2", "task[2]/work#3"),
        }


async def test_a_coroutine_keeps_the_identity_of_its_call() -> None:
    async def same(value: str) -> str:
        return value

    @workflow
    async def w(ctx: Context) -> list[str]:
        first, second = ctx.step("x").run(same, "1"), ctx.step("x").run(same, "2")
        late = await asyncio.create_task(second)
        return [await first, late]

    async with fake_server(w) as server:
        run = await server.run(w)
        assert run.result == ["1", "2"]
        assert {step_id: step.output.data for step_id, step in run.steps.items() if step.output} == {
            "x": b'"1"',
            "x#2": b'"2"',
        }


async def test_as_completed_makes_tasks_in_the_order_of_a_set_yet_branches_keep_their_scopes() -> None:
    async def same(value: int) -> int:
        return value

    async def branch(ctx: Context, n: int) -> int:
        return await ctx.step("x").run(same, n)

    @workflow
    async def w(ctx: Context) -> int:
        branches = [branch(ctx, n) for n in range(1, 20)]
        return sum([await each for each in asyncio.as_completed(branches)])

    async with fake_server(w) as server:
        run = await server.run(w)
        assert {step_id: int(step.output.data) for step_id, step in run.steps.items() if step.output} == {
            f"task[{n}]/x": n for n in range(1, 20)
        }
