"""A step: executed once, recorded, and on replay taken from the record."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from kagzi.core.errors import NonRetryable, PreconditionFailed, StepError
from kagzi.core.retry.retry_after import RetryAfter
from kagzi.core.states import RunStatus
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.current import current_step
from kagzi.sdk.workflow.decorator import workflow
from kagzi.sdk.workflow.retry import Retry
from kagzi.sdk.workflow.step import step
from tests.support.timeouts import LOADED_MACHINE_S

from .fake import fake_server


async def test_results_are_recorded_and_returned() -> None:
    async def double(n: int) -> int:
        return 2 * n

    def half(n: int) -> float:
        assert threading.current_thread() is not threading.main_thread()
        return n / 2

    @workflow
    async def sums(ctx: Context, n: int) -> float:
        a = await ctx.step("double").run(double, n)
        b = await ctx.step("half").run(half, n)
        return a + b + await ctx.step("lambda").run(lambda: 1)

    async with fake_server(sums) as server:
        run = await server.run(sums, 4)
        assert run.result == 11
        assert run.step_ids == ["double", "half", "lambda"]


async def test_a_step_is_one_message_and_the_end_travels_with_the_last() -> None:
    async def nothing() -> None: ...

    @workflow
    async def three(ctx: Context) -> str:
        for _ in range(3):
            await ctx.step("nothing").run(nothing)
        return "done"

    async with fake_server(three) as server:
        run = await server.run(three)
        assert run.result == "done"
        assert run.step_ids == ["nothing", "nothing#2", "nothing#3"]
        assert server.messages == 3


async def test_replay_sends_nothing_but_the_end() -> None:
    bodies: list[int] = []

    async def body(n: int) -> int:
        bodies.append(n)
        return n

    @workflow
    async def ten(ctx: Context) -> int:
        return sum([await ctx.step("body").run(body, n) for n in range(10)])

    async with fake_server(ten) as server:
        run = server.start(ten)
        port = server.claim(run, crash_after=10)
        await asyncio.wait_for(port.crashed.wait(), LOADED_MACHINE_S)
        assert port.execution is not None
        port.execution.abandon("test")
        again = server.claim(run)
        await server.until_left(run)
        assert (run.result, again.sends, bodies) == (45, 1, list(range(10)))


async def test_live_gives_what_replay_gives() -> None:
    @workflow
    async def shape(ctx: Context) -> str:
        return type(await ctx.step("tuple").run(lambda: (1, 2))).__name__

    async with fake_server(shape) as server:
        assert (await server.run(shape)).result == "list"


async def test_a_failing_step_is_tried_again_and_then_raises_step_error() -> None:
    tries: list[int] = []

    async def fails() -> None:
        tries.append(current_step().attempt)
        raise ConnectionError("no route")

    @workflow(retry=Retry.fixed(3, "1ms"))
    async def failing(ctx: Context) -> list[Any]:
        try:
            await ctx.step("fails").run(fails)
        except StepError as error:
            return [error.step, error.attempts, error.matches(OSError), str(error.kind), error.exhausted, str(error)]
        return []

    async with fake_server(failing) as server:
        run = await server.run(failing)
        text = "step 'fails' failed after 3 attempts: ConnectionError: no route"
        assert run.result == ["fails", 3, True, "transient", True, text]
        assert tries == [1, 2, 3]
        detail = run.steps["fails"].error
        assert detail is not None
        assert "raise ConnectionError" in detail.traceback
        assert "kagzi/sdk" not in detail.traceback


async def test_an_error_that_leaves_the_function_fails_the_run_and_names_the_step() -> None:
    class Declined(Exception): ...

    class StolenCard(Declined): ...

    async def charge() -> None:
        raise StolenCard("no funds")

    @workflow(retry=Retry.exponential(5, non_retryable=[Declined]))
    async def pay(ctx: Context) -> None:
        await ctx.step("charge").run(charge)

    async with fake_server(pay) as server:
        run = await server.run(pay)
        assert run.status is RunStatus.FAILED
        assert run.error is not None
        assert (run.error.subject, run.error.subject_id, run.error.non_retryable) == ("step", "charge", True)
        assert run.error.text.endswith("StolenCard: no funds")
        assert run.steps["charge"].attempt == 1


@pytest.mark.parametrize(("retry", "attempts"), [(None, 3), (Retry.none(), 1), (Retry.attempts(2), 2)])
async def test_the_nearest_retry_decides(retry: Retry | None, attempts: int) -> None:
    async def fails() -> None:
        raise RetryAfter("later", "1ms")

    @workflow
    async def failing(ctx: Context) -> int:
        try:
            await ctx.step("fails", retry=retry).run(fails)
        except StepError as error:
            return error.attempts
        return 0

    async with fake_server(failing, retry=Retry.fixed(3, "1ms")) as server:
        assert (await server.run(failing)).result == attempts


async def test_non_retryable_is_final() -> None:
    async def fails() -> None:
        raise NonRetryable("never", code="E7")

    @workflow
    async def failing(ctx: Context) -> dict[str, Any]:
        try:
            await ctx.step("fails").run(fails)
        except StepError as error:
            return {"attempts": error.attempts, **error.metadata}
        return {}

    async with fake_server(failing) as server:
        assert (await server.run(failing)).result == {"attempts": 1, "code": "E7"}


async def test_a_long_backoff_frees_the_worker() -> None:
    tries: list[int] = []

    async def flaky() -> str:
        tries.append(current_step().attempt)
        if len(tries) < 3:
            raise OSError("down")
        return "up"

    @workflow
    async def patient(ctx: Context) -> str:
        return await ctx.step("flaky", retry=Retry.fixed(5, "10m")).run(flaky)

    for kept in (0, 10):
        tries.clear()
        async with fake_server(patient, kept_runs_max=kept, kept_s=3600) as server:
            run = await server.run(patient)
            assert (run.result, tries, run.lease) == ("up", [1, 2, 3], 3)


async def test_a_timeout_cancels_an_async_body_and_leaves_a_thread_behind() -> None:
    cancelled = asyncio.Event()
    latch = threading.Event()

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "too late"
        return ""

    def blocking() -> str:
        latch.wait(10)
        return "too late"

    @workflow(retry=Retry.none())
    async def limited(ctx: Context) -> list[str]:
        errors: list[str] = []
        bodies: list[Callable[[], Any]] = [slow, stubborn, blocking]
        for body in bodies:
            try:
                await ctx.step("body", timeout="20ms").run(body)
            except StepError as error:
                errors.append(f"{error.kind} {error.matches(TimeoutError)}")
        return errors

    async with fake_server(limited) as server:
        run = await server.run(limited)
        latch.set()
        assert run.result == ["timeout True"] * 3
        assert cancelled.is_set()


async def test_a_body_that_raises_cancelled_error_itself_has_failed() -> None:
    async def odd() -> None:
        raise asyncio.CancelledError

    @workflow(retry=Retry.none())
    async def w(ctx: Context) -> str:
        try:
            await ctx.step("odd").run(odd)
        except StepError as error:
            return error.kind
        return ""

    async with fake_server(w) as server:
        assert (await server.run(w)).result == "cancelled"


async def test_an_output_that_has_no_json_form_fails_the_step_at_once() -> None:
    @workflow
    async def w(ctx: Context) -> list[str]:
        texts: list[str] = []
        for value in (object(), float("nan"), "x" * 3_000_000):
            try:
                await ctx.step("bad").run(partial(_same, value))
            except StepError as error:
                texts.append(f"{error.attempts} {error.error.message}")
        try:
            await ctx.step("lies").run(_lies)
        except StepError as error:
            texts.append(f"{error.attempts} {error.error.message}")
        return texts

    async with fake_server(w) as server:
        first, second, third, fourth = (await server.run(w)).result
        assert first.startswith("1 output of step 'bad' cannot be written as JSON: object has no JSON form")
        assert second.startswith("1 output of step 'bad#2' contains NaN or infinity (at $)")
        assert third.startswith("1 output of step 'bad#3' is 3,000,002 bytes as JSON; the limit is 2,097,152")
        assert fourth == (
            "1 output of step 'lies' does not fit its declared type int: Expected int, got str (at $). "
            "Correct the value or the annotation."
        )


def _same(value: Any) -> Any:
    return value


async def _lies() -> int:
    return "no number"  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


async def test_inside_a_body_there_is_no_workflow() -> None:
    @step
    async def inner(n: int) -> int:
        return n + 1

    @step("plain", timeout="1m")
    def sync_inner(n: int) -> int:
        return n * 2

    @workflow
    async def w(ctx: Context) -> list[Any]:
        async def body() -> list[Any]:
            task = asyncio.create_task(inner(1))  # neither a step nor a scope of the workflow
            with pytest.raises(PreconditionFailed, match="inside the body of step 'body'"):
                ctx.step("nested").run(sync_inner, 1)
            return [await task, await sync_inner(4), current_step().idempotency_key]

        results = await ctx.step("body").run(body)
        return [*results, await inner(5), await sync_inner(5), await ctx.step("named").run(inner, 7)]

    async with fake_server(w) as server:
        run = await server.run(w)
        assert run.result == [2, 8, f"{run.run_id}/body", 6, 10, 8]
        assert run.step_ids == ["body", "inner", "plain", "named"]
    assert await inner(1) == 2


async def test_a_key_replaces_the_occurrence() -> None:
    @workflow
    async def w(ctx: Context) -> str:
        for item in ("b", "a"):
            await ctx.step("charge", key=item).run(lambda: None)
        try:
            await ctx.step("charge", key="a").run(lambda: None)
        except ValueError as error:
            return str(error)
        return ""

    async with fake_server(w) as server:
        run = await server.run(w)
        assert run.step_ids == ["charge[b]", "charge[a]"]
        assert run.result == "charge[a]: the key is used already in this scope. Keys must be different."
