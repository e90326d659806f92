"""Mistakes that newcomers make: each is told by its name, with what to write instead. Checkers see them, too
(tests/types)."""

import asyncio
import gc
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from kagzi.core.errors import InvalidArgument
from kagzi.core.states import RunStatus
from kagzi.sdk.client.client import Kagzi
from kagzi.sdk.worker.blocked_by import blocked_by
from kagzi.sdk.workflow.branching import BranchCalls
from kagzi.sdk.workflow.call_sites import _USAGE
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from kagzi.sdk.workflow.signals import Signal
from kagzi.sdk.workflow.step import StepCall, step

from .fake import fake_server


async def charge() -> int:
    return 1


@step
async def ship() -> int:
    return 1


@workflow
async def other(ctx: Context) -> int:
    return 1


approved = Signal("approved", bool)


def line_of(call: str) -> int:
    """Of the one line of this file that makes the call."""
    with Path(__file__).open() as file:
        (number,) = [number for number, line in enumerate(file, 1) if line.strip() == call]
    return number


async def error_of(flow: Any) -> str:
    async with fake_server(flow) as server:
        run = server.start(flow)
        await server.finish(run)
        assert run.status is RunStatus.FAILED
        assert run.error is not None
        return run.error.message


async def test_what_was_never_awaited_is_told_with_its_name_and_line() -> None:
    @workflow
    async def forgets(ctx: Context) -> int:
        any_ctx: Any = ctx
        any_ctx.step("charge").run(charge)
        ship()  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
        any_ctx.sleep("nap", "1s")
        any_ctx.wait_for(approved)
        any_ctx.child(other)
        return 1

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        async with fake_server(forgets) as server:
            run = server.start(forgets)
            await server.finish(run)
        gc.collect()
    notified = [str(each.message) for each in caught if each.category is RuntimeWarning]  # lint has warned before
    here = line_of('any_ctx.step("charge").run(charge)')
    assert notified == [
        f"coroutine '{call}, called at test_misuse.py:{here + place} (write await),' was never awaited"
        for place, call in enumerate(
            ("ctx.step('charge')", "step 'ship'", "ctx.sleep('nap')", "ctx.wait_for('approved')", "ctx.child('other')")
        )
    ]


async def test_a_step_that_is_awaited_without_its_function() -> None:
    @workflow
    async def flow(ctx: Context) -> int:
        call: Any = ctx.step("charge")
        return await call

    remedy = "Write: await ctx.step('charge').run(function, argument, ...)"
    text = f"ctx.step('charge') does nothing without a function. {remedy}"
    assert await error_of(flow) == text


async def test_a_step_that_is_called_like_a_function() -> None:
    @workflow
    async def flow(ctx: Context) -> int:
        call: Any = ctx.step("charge")
        return await call(charge)

    remedy = "Write: await ctx.step('charge').run(function, argument, ...)"
    assert await error_of(flow) == f"ctx.step('charge') is not called like a function. {remedy}"


WRONG_CALLS: list[tuple[str, Callable[[Any], Any], str]] = [
    ("missing 1 required positional argument: 'name'", lambda ctx: ctx.step(), 'ctx.step("charge").run(charge_card'),
    ("missing 1 required positional argument: 'duration'", lambda ctx: ctx.sleep(2), 'ctx.sleep("cool-down", "2s")'),
    ("missing 1 required positional argument: 'fn'", lambda ctx: ctx.step("a").run(), "It takes the function and its"),
    ("takes 2 positional arguments but 3 were given", lambda ctx: ctx.step("a", charge), ".run(charge_card, order)"),
    ("unexpected keyword argument 'retries'", lambda ctx: ctx.step("a", retries=3), ".run(charge_card, order)"),
    ("missing 1 required positional argument: 'signal'", lambda ctx: ctx.wait_for(), 'Signal("approved", bool)'),
    ("missing 2 required positional arguments", lambda ctx: ctx.map([1]), 'ctx.map("resize", images, resize_image)'),
]


@pytest.mark.parametrize(
    ("problem", "call", "example"), WRONG_CALLS, ids=lambda each: each if type(each) is str else ""
)
async def test_a_call_with_the_wrong_arguments_says_what_it_takes(
    problem: str, call: Callable[[Any], Any], example: str
) -> None:
    @workflow
    async def flow(ctx: Context) -> Any:
        return await call(ctx)

    text = await error_of(flow)
    assert text.startswith("ctx.")
    assert problem in text
    assert example in text


async def test_a_type_error_of_the_programs_own_is_left_as_it_is() -> None:
    @workflow
    async def flow(ctx: Context) -> Any:
        return cast("Any", line_of)()

    assert await error_of(flow) == "line_of() missing 1 required positional argument: 'call'"


def test_the_calls_that_are_explained_exist() -> None:
    for name in _USAGE:
        owner, _, method = name.partition(".")
        known = {"Context": Context, "BranchCalls": BranchCalls, "StepCall": StepCall}[owner]
        assert getattr(known, method).__qualname__ == name


async def test_a_result_that_was_not_awaited_says_so() -> None:
    @workflow
    async def flow(ctx: Context) -> Any:
        forgotten = [ctx.step("charge").run(charge)]
        return forgotten[0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = await error_of(flow)
        gc.collect()
    here = line_of('forgotten = [ctx.step("charge").run(charge)]')
    assert f"ctx.step('charge'), called at test_misuse.py:{here} is a coroutine that was not awaited." in text
    assert "Write await before the call" in text


def test_a_workflow_without_a_context() -> None:
    @dataclass
    class Order:
        item: str

    async def plain(name: str) -> None: ...
    async def model(order: Order, note: str = "") -> None: ...
    async def postponed(name: "str") -> None: ...

    for fn, written in ((plain, "name: str"), (model, "order: "), (postponed, "name: 'str'")):
        with pytest.raises(InvalidArgument, match=rf"is the Context, but .*def {fn.__name__}\(ctx: Context, {written}"):
            workflow(cast("Any", fn))


async def test_a_workflow_that_is_called_like_a_function() -> None:
    called: Any = other
    with pytest.raises(
        TypeError, match=r"Start it with client\.start\(other, \.\.\.\), run it as a child with ctx\.child\(other"
    ):
        called(1)

    @workflow
    async def flow(ctx: Context) -> int:
        run: Any = ctx.step("other").run
        return await run(other)

    assert (await error_of(flow)).endswith("is a workflow. Run it as a child: await ctx.child(other, ...).")


def test_a_client_that_was_not_awaited() -> None:
    client: Any = Kagzi.connect(":memory:")
    with pytest.raises(AttributeError, match=r"no 'start' before it is awaited. Write: client = await Kagzi.connect\("):
        client.start(other)
    assert not hasattr(client, "_nothing")


@pytest.mark.parametrize("in_step", [True, False])
async def test_who_blocks_the_loop_is_named(in_step: bool) -> None:
    loop_thread = threading.get_ident()
    seen: list[str] = []

    def watch_loop() -> None:
        while not blocking.is_set():
            time.sleep(0.001)
        seen.append(blocked_by(sys._current_frames()[loop_thread]))
        done.set()

    blocking, done = threading.Event(), threading.Event()

    def block() -> int:
        blocking.set()
        assert done.wait(30)
        return 1

    async def slow() -> int:
        return block()

    @workflow
    async def flow(ctx: Context) -> int:
        return await ctx.step("slow").run(slow) if in_step else block()

    thread = threading.Thread(target=watch_loop)
    thread.start()
    async with fake_server(flow) as server:
        run = server.start(flow)
        await server.finish(run)
    await asyncio.to_thread(thread.join)
    who = (
        f"Step 'slow' of workflow 'flow' (run {run.run_id})"
        if in_step
        else f"The code of workflow 'flow' (run {run.run_id})"
    )
    assert seen[0].startswith(f"{who} blocks it")
