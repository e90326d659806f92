"""ctx.set_state: what a workflow shows of itself while it runs, and after."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from kagzi.core.error_details import ErrorCode
from kagzi.core.errors import InvalidArgument
from kagzi.core.limits import STATE_BYTES
from kagzi.core.run.outcomes import Refused
from kagzi.core.run.state import STATE_STEP
from kagzi.core.states import RunStatus
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from tests.support.timeouts import LOADED_MACHINE_S

from .fake import fake_server, refused
from .fake_run import FakeRun


async def nothing() -> None: ...


@dataclass
class Cart:
    items: list[str]
    total: float = 0.0


def state_of(run: FakeRun) -> Any:
    step = run.state.steps.get(STATE_STEP)
    return None if step is None or step.output is None else msgspec.json.decode(step.output.data)


async def test_the_last_state_counts_and_few_are_written() -> None:
    @workflow
    async def w(ctx: Context) -> None:
        for n in range(100):
            ctx.set_state(Cart([f"item-{n}"], n / 2))
            await ctx.step("s").run(nothing)

    async with fake_server(w) as server:
        run = await server.run(w)
        assert run.status is RunStatus.COMPLETED, run.error
        assert state_of(run) == {"items": ["item-99"], "total": 49.5}
        assert sum(entry == "SetState" for entry in run.log) <= 3
        assert STATE_STEP not in run.step_ids


async def test_what_cannot_be_shown_is_refused_where_it_is_set() -> None:
    @workflow
    async def w(ctx: Context) -> list[str]:
        messages: list[str] = []
        for bad in ("x" * STATE_BYTES, object()):
            with pytest.raises(InvalidArgument) as caught:
                ctx.set_state(bad)
            messages.append(caught.value.message)
        ctx.set_state("x" * (STATE_BYTES - 2))
        return messages

    async with fake_server(w) as server:
        run = await server.run(w)
        too_large, no_json = run.result
        assert f"state has {STATE_BYTES + 2} bytes; the limit is {STATE_BYTES}" in too_large
        assert "state cannot be written as JSON" in no_json
        assert len(state_of(run)) == STATE_BYTES - 2


async def test_a_state_that_was_lost_with_its_worker_is_written_by_the_next() -> None:
    """The write waits for its turn, and steps that are recorded meanwhile are not done again."""
    began = asyncio.Event()

    async def long() -> None:
        if not began.is_set():
            began.set()
            await asyncio.Event().wait()

    @workflow
    async def w(ctx: Context) -> None:
        ctx.set_state("early")
        await ctx.step("a").run(nothing)
        ctx.set_state("late")
        await ctx.step("b").run(nothing)
        await ctx.step("long").run(long)
        await ctx.sleep("night", "8h")

    async with fake_server(w) as server:
        run = server.start(w)
        port = server.claim(run)
        await asyncio.wait_for(began.wait(), LOADED_MACHINE_S)
        assert port.execution is not None
        port.execution.abandon("cut")
        run.state.steps[STATE_STEP].output = None  # what was written, if anything, is not what counts here
        server.claim(run)
        await server.until_left(run)
        assert state_of(run) == "late"


async def test_a_replay_writes_only_what_the_run_has_come_to() -> None:
    @workflow
    async def w(ctx: Context) -> None:
        for n in range(3):
            ctx.set_state(n)
            await ctx.sleep("night", "8h")

    async with fake_server(w, kept_runs_max=0) as server:
        run = server.start(w)
        states: list[Any] = []
        for _ in range(3):
            server.claim(run)
            await server.until_left(run)
            states.append(state_of(run))
            server.wake(run, run.step_ids[-1])
        assert states == [0, 1, 2]
        assert run.log.count("SetState") == 3


async def test_a_server_that_does_not_take_it_is_logged_and_the_run_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    @workflow
    async def w(ctx: Context) -> str:
        ctx.set_state(1)
        await ctx.step("a").run(nothing)
        return "done"

    async with fake_server(w) as server:
        apply = server.apply

        def refusing(run: FakeRun, operation: Any) -> Any:
            if operation.WhichOneof("kind") == "set_state":
                return Refused(refused(ErrorCode.UNIMPLEMENTED, "an older server"))
            return apply(run, operation)

        monkeypatch.setattr(server, "apply", refusing)
        with caplog.at_level(logging.WARNING, "kagzi.worker"):
            run = await server.run(w)
        assert run.result == "done"
        assert "its state was not stored: an older server" in caplog.text
