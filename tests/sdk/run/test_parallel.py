"""Doing several things at once: scopes, fail-fast and collect, limits, races and what becomes of the losers."""

import asyncio
import gc
from typing import Any

import pytest

from kagzi.core.errors import InvalidArgument, StepError
from kagzi.core.states import RunStatus, StepKind, StepStatus
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from kagzi.sdk.workflow.retry import Retry
from kagzi.sdk.workflow.signals import Signal, Won
from tests.support.timeouts import LOADED_MACHINE_S

from .fake import fake_server

number = Signal("number", int)


async def same(value: Any) -> Any:
    return value


async def fails(text: str) -> None:
    raise ConnectionError(text)


async def forever() -> None:
    await asyncio.Event().wait()


async def test_branches_have_scopes_and_calls_keep_their_identity() -> None:
    async def audit(ctx: Context) -> list[int]:
        return [await ctx.step("open").run(same, 1), await ctx.step("close").run(same, 2)]

    @workflow
    async def w(ctx: Context) -> list[Any]:
        a = await ctx.parallel(ctx.step("user").run(same, "u"), audit(ctx))
        b = await ctx.parallel(audit(ctx) for _ in range(2))
        return [a, b]

    async with fake_server(w) as server:
        run = await server.run(w)
        assert run.result == [["u", [1, 2]], [[1, 2], [1, 2]]]
        assert set(run.steps) == {
            *("user", "parallel[1]/open", "parallel[1]/close"),
            *("parallel#2[0]/open", "parallel#2[0]/close", "parallel#2[1]/open", "parallel#2[1]/close"),
        }
        assert {run.begins[step_id].parallel_group_id for step_id in ("user", "parallel[1]/open")} == {"parallel"}
        assert run.begins["parallel#2[1]/open"].parallel_group_id == "parallel#2"


async def test_three_steps_run_at_once() -> None:
    all_begun = asyncio.Barrier(3)

    async def meet() -> None:
        async with asyncio.timeout(LOADED_MACHINE_S):
            await all_begun.wait()

    @workflow
    async def w(ctx: Context) -> None:
        await ctx.parallel(ctx.step(name).run(meet) for name in "abc")

    async with fake_server(w) as server:
        await server.run(w)


async def test_the_first_error_cancels_the_others_and_closes_what_they_wait_for() -> None:
    ended: list[str] = []

    async def sleeper(ctx: Context) -> None:
        try:
            await ctx.sleep("long", "1 day")
        finally:
            ended.append("sleeper")

    @workflow
    async def w(ctx: Context) -> str:
        try:
            await ctx.parallel(
                sleeper(ctx),
                ctx.step("fails", retry=Retry.none()).run(fails, "no"),
                ctx.step("forever").run(forever),
                ctx.wait_for(number),
            )
        except StepError as error:
            return f"{error.step}, {bool(ended)}, {await ctx.wait_for(number)}"
        return ""

    async with fake_server(w, kept_runs_max=0) as server:
        run = server.start(w)
        server.claim(run)
        await server.until_left(run)
        assert run.status is RunStatus.SLEEPING
        assert run.due_at is None  # the sleep of the lost branch does not wake it
        server.signal(run, "number", 3)
        await server.finish(run)
        assert run.result == "fails, True, 3"
        closed = {step_id for step_id, step in run.steps.items() if step.status is StepStatus.ABANDONED}
        assert closed == {"parallel[0]/long", "forever", "number"}


async def test_collect_puts_errors_beside_values() -> None:
    @workflow
    async def w(ctx: Context) -> list[str]:
        good, bad = await ctx.parallel(
            ctx.step("good").run(same, 1), ctx.step("bad", retry=Retry.none()).run(fails, "no"), on_error="collect"
        )
        assert isinstance(bad, StepError)
        return [str(good), bad.step]

    async with fake_server(w) as server:
        assert (await server.run(w)).result == ["1", "bad"]


async def test_map_is_a_step_per_item_with_a_limit_and_keys() -> None:
    running: list[int] = []
    most: list[int] = []

    async def work(n: int) -> int:
        running.append(n)
        most.append(len(running))
        await asyncio.sleep(0)
        running.remove(n)
        return n * n

    @workflow
    async def w(ctx: Context) -> list[Any]:
        keyed = await ctx.map("square", [3, 1, 2], work, key=lambda n: n, limit=2)
        plain = await ctx.map("plain", [3, 1, 2], work)
        again = await ctx.map("plain", [5], work)
        return [keyed, plain, again, await ctx.map("none", [], work)]

    async with fake_server(w) as server:
        run = await server.run(w)
        assert run.result == [[9, 1, 4], [9, 1, 4], [25], []]
        assert max(most[:3]) == 2
        assert set(run.steps) == {
            *("square[1]", "square[2]", "square[3]", "plain[0]", "plain[1]", "plain[2]", "plain#2[0]"),
        }
        assert run.begins["square[3]"].parallel_group_id == "square"


async def test_parallel_begins_the_next_when_one_has_ended() -> None:
    begun: list[int] = []
    running: list[int] = []
    most: list[int] = []

    async def work(n: int) -> int:
        running.append(n)
        most.append(len(running))
        for _ in range(5 - n):
            await asyncio.sleep(0)
        running.remove(n)
        return n

    async def branch(ctx: Context, n: int) -> int:
        begun.append(n)
        await ctx.sleep("nap", "1ms")
        return await ctx.step("work").run(work, n)

    @workflow
    async def w(ctx: Context) -> list[Any]:
        listed = await ctx.parallel((branch(ctx, n) for n in range(5)), limit=2)
        one, two, three = await ctx.parallel(branch(ctx, 1), branch(ctx, 2), branch(ctx, 3), limit=1)
        return [
            listed,
            [one, two, three],
            await ctx.parallel([branch(ctx, 0)], limit=9),
            await ctx.parallel([], limit=1),
        ]

    async with fake_server(w) as server:
        run = await server.run(w)
        assert run.result == [[0, 1, 2, 3, 4], [1, 2, 3], [0], []]
        assert begun == [0, 1, 2, 3, 4, 1, 2, 3, 0]
        assert max(most) == 2
        assert run.begins["parallel[3]/work"].parallel_group_id == "parallel"


async def test_what_was_not_begun_when_one_failed_never_is(recwarn: pytest.WarningsRecorder) -> None:
    begun: list[str] = []

    async def sleeper(ctx: Context, name: str) -> None:
        begun.append(name)
        await ctx.sleep(name, "1 day")

    @workflow
    async def w(ctx: Context) -> str:
        failing = ctx.step("fails", retry=Retry.none()).run(fails, "no")
        try:
            await ctx.parallel([sleeper(ctx, "a"), failing, sleeper(ctx, "b"), ctx.child(w)], limit=2)
        except StepError as error:
            return f"{error.step} {await ctx.wait_for(number)}"
        return ""

    async with fake_server(w, kept_runs_max=0) as server:
        run = server.start(w)
        server.claim(run)
        await server.until_left(run)
        server.signal(run, "number", 3)
        await server.finish(run)
        assert run.result == "fails 3"
        assert begun == ["a", "a"]  # and once again when it was replayed
        assert "parallel[2]/b" not in run.steps
        gc.collect()
        assert [str(each.message) for each in recwarn if "never awaited" in str(each.message)] == []


async def test_a_cancelled_run_begins_no_more_branches() -> None:
    begun: list[int] = []

    async def sleeper(ctx: Context, n: int) -> None:
        begun.append(n)
        await ctx.sleep("nap", "1 day")

    @workflow
    async def w(ctx: Context) -> None:
        await ctx.parallel((sleeper(ctx, n) for n in range(5)), limit=2, on_error="collect")

    async with fake_server(w) as server:
        run = server.start(w)
        server.claim(run)
        await server.until_left(run)
        server.cancel(run)
        await server.finish(run)
        assert (run.status, set(begun)) == (RunStatus.CANCELLED, {0, 1})


async def test_map_collects_errors_in_the_places_of_results() -> None:
    async def odd(n: int) -> int:
        if n % 2 == 0:
            raise ConnectionError(f"{n} is even")
        return n

    @workflow
    async def w(ctx: Context) -> list[object]:
        each = await ctx.map("odd", range(4), odd, limit=2, retry=Retry.fixed(2, "1ms"), on_error="collect")
        return [(one.step, one.attempts, one.error.message) if isinstance(one, StepError) else one for one in each]

    async with fake_server(w) as server:
        run = await server.run(w)
        expected = [["odd[0]", 2, "0 is even"], 1, ["odd[2]", 2, "2 is even"], 3]
        assert run.result == expected
        run.status = RunStatus.PENDING
        await server.finish(run)
        assert run.result == expected
        assert StepKind.RACE not in {step.kind for step in run.steps.values()}


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "2"])
async def test_a_limit_is_a_whole_number_from_one_on(limit: Any) -> None:
    @workflow
    async def w(ctx: Context) -> list[str | None]:
        fields: list[str | None] = []
        for call in (lambda: ctx.parallel([], limit=limit), lambda: ctx.map("m", [], same, limit=limit)):
            with pytest.raises(InvalidArgument, match="must be a whole number from 1 on") as refused:
                await call()
            fields.append(refused.value.field)
        return fields

    async with fake_server(w) as server:
        assert (await server.run(w)).result == ["limit", "limit"]


async def test_a_retried_item_does_not_repeat_the_others() -> None:
    bodies: list[int] = []

    async def flaky(n: int) -> int:
        bodies.append(n)
        if n == 2 and bodies.count(2) == 1:
            raise ConnectionError("once")
        return n

    @workflow
    async def w(ctx: Context) -> list[int]:
        return await ctx.map("flaky", [1, 2, 3], flaky, retry=Retry.fixed(3, "1ms"))

    async with fake_server(w) as server:
        assert (await server.run(w)).result == [1, 2, 3]
        assert sorted(bodies) == [1, 2, 2, 3]


async def test_a_race_returns_at_once_and_abandons_the_running_loser() -> None:
    @workflow
    async def w(ctx: Context) -> list[Any]:
        value = await ctx.race(ctx.step("forever").run(forever), ctx.sleep("short", "1ms"), ctx.wait_for(number))
        won = await ctx.race(late=ctx.sleep("day", "1 day"), quick=ctx.step("quick").run(same, 5))
        assert won == Won("quick", 5)
        return [value, won.name, await ctx.wait_for(number)]

    async with fake_server(w, kept_runs_max=0) as server:
        run = server.start(w)
        server.claim(run)
        await server.until_left(run)
        assert run.due_at is None
        server.signal(run, "number", 8)
        await server.finish(run)
        assert run.result == [None, "quick", 8]
        assert [run.steps[step_id].status for step_id in ("forever", "number", "day")] == [StepStatus.ABANDONED] * 3
        assert run.steps["race"].kind is StepKind.RACE
        assert run.steps["race#2"].output is not None
        assert run.steps["race#2"].output.data == b'"quick"'
        assert run.begins["quick"].parent_step_id == "race#2"


async def test_the_error_of_the_first_is_the_error_of_the_race() -> None:
    @workflow
    async def w(ctx: Context) -> str:
        try:
            await ctx.race(ctx.step("fails", retry=Retry.none()).run(fails, "no"), ctx.sleep("day", "1 day"))
        except StepError as error:
            return error.step
        return ""

    async with fake_server(w) as server:
        run = await server.run(w)
        assert run.result == "fails"
        run.status = RunStatus.PENDING
        await server.finish(run)
        assert run.result == "fails"


async def test_the_winner_is_the_same_on_replay_whoever_is_quicker_then() -> None:
    order: list[str] = []

    async def ask(who: str) -> str:
        order.append(who)
        if who == "slow":
            await asyncio.Event().wait()
        return who

    @workflow
    async def w(ctx: Context) -> list[str]:
        first = await ctx.race(ctx.step("a").run(ask, "slow"), ctx.step("b").run(ask, "quick"))
        await ctx.sleep("night", "8h")
        return [first, await ctx.step("after").run(ask, "after")]

    async with fake_server(w, kept_runs_max=0) as server:
        run = await server.run(w)
        assert run.result == ["quick", "after"]
        assert order == ["slow", "quick", "after"]


async def test_races_and_groups_inside_each_other() -> None:
    async def inner(ctx: Context, n: int) -> Any:
        return await ctx.race(ctx.step("x").run(same, n), ctx.sleep("s", "1h"))

    @workflow
    async def w(ctx: Context) -> list[Any]:
        return await ctx.parallel(ctx.race(inner(ctx, n), ctx.sleep("outer", "2h")) for n in range(2))

    async with fake_server(w) as server:
        run = await server.run(w)
        assert run.result == [0, 1]
        assert {"race[0]/x", "race#2[0]/x", "race[0]/race", "race", "race#2"} <= set(run.steps)


async def test_a_sleeping_branch_does_not_hold_up_a_running_one_nor_the_other_way_round() -> None:
    @workflow
    async def w(ctx: Context) -> list[Any]:
        async def steps() -> int:
            return sum([await ctx.step("s").run(same, n) for n in range(5)])

        _, total = await ctx.parallel(ctx.sleep("hour", "1h"), steps())
        return [total]

    async with fake_server(w) as server:
        run = server.start(w)
        server.claim(run)
        await server.until_left(run)
        assert run.status is RunStatus.SLEEPING
        assert sum(step.status is StepStatus.COMPLETED for step in run.steps.values()) == 5
        await server.finish(run)
        assert run.result == [10]


async def test_wrong_arguments_are_named() -> None:
    @workflow
    async def w(ctx: Context) -> list[str]:
        calls: list[Any] = [
            lambda: ctx.parallel([1]),  # type: ignore[list-item]
            lambda: ctx.parallel([], on_error="x"),  # type: ignore[call-overload]
            ctx.race,
            lambda: ctx.map("m", [1], same, limit=0),
            lambda: ctx.map("m", [1, 1], same, key=lambda n: n),
        ]
        fields: list[str] = []
        for call in calls:
            with pytest.raises(InvalidArgument) as caught:
                await call()
            fields.append(caught.value.field)
        return fields

    async with fake_server(w) as server:
        assert (await server.run(w)).result == ["aws", "on_error", "aws", "limit", "key"]
