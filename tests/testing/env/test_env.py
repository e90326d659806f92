"""TestEnv: a test's own Kagzi. Time passes when nothing else can happen, and only then."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kagzi import (
    Context,
    Diverged,
    InvalidArgument,
    KagziError,
    PreconditionFailed,
    Retry,
    RunError,
    RunStatus,
    Signal,
    current_step,
    step,
    workflow,
)
from kagzi.testing import TestEnv, WaitsForever
from kagzi.testing.env.environment import START

approved = Signal("approved", bool)


async def double(n: int) -> int:
    return 2 * n


def double_in_thread(n: int) -> int:
    assert threading.current_thread() is not threading.main_thread()
    return 2 * n


@step("fetch")
async def fetch(url: str, *, size: int = 1) -> str:
    return url * size


@workflow("nap")
async def nap(ctx: Context, seconds: int) -> datetime:
    await ctx.sleep("rest", timedelta(seconds=seconds))
    return ctx.now()


@workflow("counts-days")
async def counts_days(ctx: Context, days: int) -> None:
    for day in range(days):
        ctx.set_state(day)
        await ctx.sleep("day", timedelta(days=1))
    ctx.set_state(days)


@workflow("ask")
async def ask(ctx: Context) -> bool:
    return await ctx.wait_for(approved)


@workflow("ask-for-an-hour")
async def ask_for_an_hour(ctx: Context) -> str:
    try:
        return f"approved: {await ctx.wait_for(approved, timeout='1h')}"
    except TimeoutError:
        return "too late"


@workflow("doubled")
async def doubled(ctx: Context, n: int) -> int:
    return await ctx.step("double", retry=Retry.fixed(5, "1m")).run(double, n)


@workflow("threaded")
async def threaded(ctx: Context, n: int) -> int:
    return await ctx.step("double", timeout="1m").run(double_in_thread, n)


@workflow("fetching")
async def fetching(ctx: Context, url: str) -> list[str]:
    return [await fetch(url), await fetch(url, size=2)]


@workflow("mother")
async def mother(ctx: Context, n: int) -> int:
    return await ctx.child(doubled, n) + await ctx.child(doubled, n + 1)


# --- time -------------------------------------------------------------------------------------------------------------


async def test_awaiting_a_result_lets_time_pass_exactly_to_what_is_due(kagzi_env: TestEnv) -> None:
    assert kagzi_env.now == START
    assert await kagzi_env.run(nap, 100 * 86_400) == START + timedelta(days=100) == kagzi_env.now


async def test_the_clock_stands_still_while_nobody_waits(kagzi_env: TestEnv) -> None:
    run = await kagzi_env.start(nap, 60)
    await kagzi_env.settle()
    assert (await run.status(), kagzi_env.now) == (RunStatus.SLEEPING, START)


async def test_advance_moves_the_clock_by_exactly_so_much(kagzi_env: TestEnv) -> None:
    run = await kagzi_env.start(nap, 60)
    await kagzi_env.advance("59.999s")
    assert (await run.status(), kagzi_env.now) == (RunStatus.SLEEPING, START + timedelta(seconds=59.999))
    await kagzi_env.advance("1ms")
    assert (await run.status(), kagzi_env.now) == (RunStatus.COMPLETED, START + timedelta(seconds=60))


async def test_what_becomes_due_on_the_way_happens_in_order_and_at_its_time(kagzi_env: TestEnv) -> None:
    runs = [await kagzi_env.start(nap, seconds) for seconds in (30, 10, 20)]
    await kagzi_env.advance("1h")
    assert [await run.result() for run in runs] == [START + timedelta(seconds=n) for n in (30, 10, 20)]
    assert kagzi_env.now == START + timedelta(hours=1)


async def test_a_backoff_passes_at_once_and_as_long_as_it_is(kagzi_env: TestEnv) -> None:
    kagzi_env.mock("double", raises=[OSError(), OSError()], returns=1)
    assert await kagzi_env.run(doubled, 1) == 1
    assert kagzi_env.now - START == timedelta(minutes=2)


async def test_the_limit_of_a_wait_is_by_the_clock_of_the_environment(kagzi_env: TestEnv) -> None:
    run = await kagzi_env.start(nap, 7_200)
    with pytest.raises(TimeoutError, match="has not ended within 1h"):
        await run.result(timeout="1h")
    assert kagzi_env.now == START + timedelta(hours=1)
    assert await run.result(timeout="61m") == START + timedelta(hours=2)


async def test_timers_of_the_test_itself_are_real(kagzi_env: TestEnv) -> None:
    async with asyncio.timeout(60):  # a hundred days pass in it
        await kagzi_env.run(nap, 100 * 86_400)


async def test_it_begins_when_it_is_told_to() -> None:
    at = datetime(2031, 5, 17, 12, tzinfo=UTC)
    async with TestEnv.open(start_at=at) as env:
        assert await env.run(nap, 1) == at + timedelta(seconds=1)


async def test_several_waits_at_once_share_the_clock(kagzi_env: TestEnv) -> None:
    results = await asyncio.gather(*(kagzi_env.run(nap, seconds) for seconds in (5, 1, 3)))
    assert results == [START + timedelta(seconds=n) for n in (5, 1, 3)]


# --- what will never come ---------------------------------------------------------------------------------------------


async def test_waiting_for_a_signal_that_nobody_sends_says_so(kagzi_env: TestEnv) -> None:
    run = await kagzi_env.start(ask, None)
    with pytest.raises(WaitsForever, match="approved") as raised:
        await run.result()
    assert str(await run.explain()).rstrip(".") in str(raised.value)
    await run.signal(approved, True)
    assert await run.result() is True


async def test_waiting_for_a_run_that_no_worker_executes_says_so(kagzi_env: TestEnv) -> None:
    run = await kagzi_env.start("nobody-has-it", 1)
    with pytest.raises(WaitsForever, match="worker"):
        await run.result()


async def test_schedules_that_go_on_for_ever_do_not_keep_a_wait_from_ending(
    kagzi_env: TestEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kagzi.testing.env.settling.SCHEDULES_MAX", 3)
    await kagzi_env.schedule("often").workflow(doubled).every("1m").input(1)
    run = await kagzi_env.start(ask, None)
    with pytest.raises(WaitsForever, match="The clock was moved"):
        await run.result()


async def test_a_body_that_never_ends_is_named(kagzi_env: TestEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kagzi.testing.env.settling.RUNNING_MAX_S", 0.05)
    kagzi_env.mock("double", calls=lambda n: asyncio.Event().wait())
    with pytest.raises(AssertionError, match="double of run"):
        await kagzi_env.run(doubled, 1)


# --- what really runs -------------------------------------------------------------------------------------------------


async def test_bodies_really_wait_on_the_loop_of_the_test(kagzi_env: TestEnv) -> None:
    opened, entered = asyncio.Event(), asyncio.Event()

    async def body(n: int) -> int:
        entered.set()
        await opened.wait()
        await asyncio.sleep(0.01)
        return n + 1

    kagzi_env.mock("double", calls=body)
    run = await kagzi_env.start(doubled, 1)
    await entered.wait()
    asyncio.get_running_loop().call_later(0.02, opened.set)
    assert await run.result() == 2


async def test_sync_bodies_run_in_threads(kagzi_env: TestEnv) -> None:
    assert await kagzi_env.run(threaded, 4) == 8


async def test_the_time_limit_of_a_step_is_by_the_clock_of_the_environment(kagzi_env: TestEnv) -> None:
    @workflow("limited")
    async def limited(ctx: Context) -> int:
        return await ctx.step("double", timeout="2h", retry=Retry.none()).run(double, 1)

    kagzi_env.mock("double", calls=lambda n: asyncio.Event().wait())
    run = await kagzi_env.start(limited, None)
    await kagzi_env.advance("3h")
    with pytest.raises(RunError, match="took longer than 7200s"):
        await run.result()


# --- steps that do something else -------------------------------------------------------------------------------------


async def test_a_mock_raises_first_and_then_returns_and_lists_its_calls(kagzi_env: TestEnv) -> None:
    calls = kagzi_env.mock("double", raises=[OSError("away")], returns=7)
    assert await kagzi_env.run(doubled, 21) == 7
    assert calls == [(21,), (21,)]


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_mock_calls_what_it_is_given(kagzi_env: TestEnv, is_async: bool) -> None:
    async def async_body(n: int) -> int:
        return n * 100 + current_step().attempt

    kagzi_env.mock("double", calls=async_body if is_async else lambda n: n * 100 + current_step().attempt)
    assert await kagzi_env.run(doubled, 3) == 301


async def test_a_step_function_is_mocked_by_itself_and_one_of_its_executions_by_id(kagzi_env: TestEnv) -> None:
    calls = kagzi_env.mock(fetch, returns="all")
    second = kagzi_env.mock("fetch#2", returns="second")
    assert await kagzi_env.run(fetching, "u") == ["all", "second"]
    assert (calls, second) == ([("u",)], [("u", 2)])


@pytest.mark.parametrize(
    "wrong", [{"step": ""}, {"step": 3}, {"step": "a", "raises": [3]}, {"step": "a", "returns": 1, "calls": print}]
)
def test_mocks_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        TestEnv().mock(wrong.pop("step"), **wrong)


# --- everything else a client does ------------------------------------------------------------------------------------


async def test_signals_come_first_or_later_or_too_late(kagzi_env: TestEnv) -> None:
    first, later, late = [await kagzi_env.start(ask_for_an_hour, None) for _ in range(3)]
    await first.signal(approved, True)
    await kagzi_env.advance("59m")
    await kagzi_env.signal(later.id, approved, False)
    results = [await run.result() for run in (first, later, late)]
    assert results == ["approved: True", "approved: False", "too late"]


async def test_children_are_executed_without_being_named(kagzi_env: TestEnv) -> None:
    assert await kagzi_env.run(mother, 1) == 6


async def test_children_that_wait_are_executed_side_by_side(kagzi_env: TestEnv) -> None:
    @workflow("naps")
    async def naps(ctx: Context) -> list[datetime]:
        return list(await ctx.parallel(ctx.child(nap, seconds) for seconds in (3_600, 60)))

    assert await kagzi_env.run(naps) == [START + timedelta(hours=1), START + timedelta(minutes=1)]
    assert kagzi_env.now == START + timedelta(hours=1)


async def test_workflows_are_started_by_name_if_they_are_registered(kagzi_env: TestEnv) -> None:
    kagzi_env.register(doubled)
    assert await kagzi_env.run("doubled", 4) == 8
    with pytest.raises(InvalidArgument, match="not a workflow"):
        kagzi_env.register(double)  # type: ignore[arg-type]


async def test_runs_of_another_namespace(kagzi_env: TestEnv) -> None:
    run = await kagzi_env.start(mother).namespace("production").input(1)
    assert (str(run.namespace), await run.result()) == ("production", 6)


async def test_schedules_fire_by_the_clock_of_the_environment(kagzi_env: TestEnv) -> None:
    await kagzi_env.schedule("daily").workflow(doubled).cron("0 6 * * *").input(5)
    await kagzi_env.advance("3 days")
    runs = [run async for run in kagzi_env.list(workflow="doubled")]
    created = [(await run.info()).created_at for run in runs]
    assert created[::-1] == [START + timedelta(days=n, hours=6) for n in range(3)]
    assert {await run.result() for run in runs} == {10}


async def test_whoever_waits_for_events_or_states_lets_time_pass(kagzi_env: TestEnv) -> None:
    run = await kagzi_env.start(counts_days, 2)
    assert [state async for state in run.states(int)] == [0, 1, 2]
    assert kagzi_env.now == START + timedelta(days=2)
    run = await kagzi_env.start(nap, 60)
    kinds = [event["kind"] async for event in run.events() if event["kind"] != "run_status"]
    assert kinds == ["run_started", "sleep_started", "sleep_completed", "run_completed"]
    assert kagzi_env.now == START + timedelta(days=2, seconds=60)
    with pytest.raises(WaitsForever, match="approved"):
        [event async for event in (await kagzi_env.start(ask)).events()]


async def test_a_run_is_cancelled(kagzi_env: TestEnv) -> None:
    run = await kagzi_env.start(nap, 60)
    await kagzi_env.settle()
    await run.cancel("enough")
    with pytest.raises(RunError, match="enough"):
        await run.result()


async def test_the_same_test_gives_the_same_ids_times_and_order() -> None:
    async def once() -> list[object]:
        async with TestEnv.open() as env:
            env.mock("double", raises=[OSError()], returns=1)
            runs = [await env.start(mother, 1), await env.start(nap, 5)]
            for run in runs:
                await run.result()
            events = [[event async for event in run.events()] for run in runs]
            return [*(run.id for run in runs), env.now, *events]

    first = await once()
    assert [repr(each) for each in await once()] == [repr(each) for each in first]


# --- replay -----------------------------------------------------------------------------------------------------------


async def test_a_replay_executes_nothing_and_returns_or_raises_the_same(kagzi_env: TestEnv) -> None:
    calls = kagzi_env.mock("double", raises=[OSError()], returns=3)
    run = await kagzi_env.start(doubled, 1)
    assert await run.result() == await kagzi_env.replay(run) == 3
    assert len(calls) == 2
    kagzi_env.mock("double", raises=[ValueError("no")] * 9)
    failed = await kagzi_env.start(doubled, 1)
    for wait in (failed.result(), kagzi_env.replay(failed)):
        with pytest.raises(RunError, match="ValueError: no"):
            await wait


async def test_a_replay_of_code_that_does_not_fit_raises(kagzi_env: TestEnv) -> None:
    renamed = "double"

    @workflow("changing")
    async def changing(ctx: Context, n: int) -> int:
        return await ctx.step(renamed).run(double, n)

    run = await kagzi_env.start(changing, 1)
    assert await run.result() == 2
    renamed = "twice"
    with pytest.raises(Diverged, match=r"test_env\.py.*twice"):
        await kagzi_env.replay(run)


async def test_a_replay_that_comes_to_another_end_raises(kagzi_env: TestEnv) -> None:
    added = 0

    @workflow("adding")
    async def adding(ctx: Context, n: int) -> int:
        return await ctx.step("double").run(double, n) + added

    run = await kagzi_env.start(adding, 1)
    assert await run.result() == 2
    added = 1
    with pytest.raises(AssertionError, match="ended differently"):
        await kagzi_env.replay(run)


async def test_a_run_that_has_not_ended_cannot_be_replayed(kagzi_env: TestEnv) -> None:
    run = await kagzi_env.start(ask, None)
    await kagzi_env.settle()
    with pytest.raises(PreconditionFailed, match="has not ended"):
        await kagzi_env.replay(run)


# --- life -------------------------------------------------------------------------------------------------------------


async def test_a_closed_environment_says_so() -> None:
    async with TestEnv.open() as env:
        await env.run(doubled, 1)
    with pytest.raises(KagziError, match="closed"):
        await env.run(doubled, 1)


async def test_nothing_is_left_of_an_environment() -> None:
    before, threads = asyncio.all_tasks(), threading.active_count()
    async with TestEnv.open() as env:
        await env.run(mother, 1)
        await env.start(nap, 5)
    assert asyncio.all_tasks() == before
    assert threading.active_count() <= threads


def test_an_environment_belongs_to_one_loop() -> None:
    env = TestEnv()
    asyncio.run(_use(env))
    with pytest.raises(PreconditionFailed, match="another event loop"):
        asyncio.run(_use(env))
    env.drop()


async def _use(env: TestEnv) -> None:
    assert await env.run(doubled, 2) == 4
