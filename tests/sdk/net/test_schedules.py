"""client.schedule(...), client.schedules and schedules that a worker declares, on a server in memory."""

import gc
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

import kagzi
from kagzi import Context, InvalidArgument, Kagzi, NotFound, PreconditionFailed, Worker, workflow
from tests.support.timeouts import LOADED_MACHINE


@workflow(timeout="90s")
async def report(ctx: Context, team: str) -> str:
    return team


@workflow
async def tick(ctx: Context) -> None: ...


@pytest.fixture
async def client() -> AsyncIterator[Kagzi]:
    async with Kagzi.connect(":memory:") as connected:
        yield connected


async def test_everything_that_can_be_said(client: Kagzi) -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    made = await (
        client.schedule("s")
        .workflow(report)
        .cron("0 6 * * MON-FRI", timezone="Europe/Berlin")
        .input("growth")
        .catchup(7)
        .catchup_window("12h")
        .overlap("buffer_one")
        .jitter("30s")
        .labels({"a": "b"})
        .label("c", "d")
        .priority(3)
        .version(2)
        .start_at(begin)
        .end_at(begin + timedelta(days=36500))
        .paused()
    )
    assert made == await client.schedules.get("s")
    assert (made.id, made.workflow, made.cron_expr, made.tz) == ("s", "report", "0 6 * * MON-FRI", "Europe/Berlin")
    assert (made.input_data, made.max_catchup, made.catchup_window) == ("growth", 7, timedelta(hours=12))
    assert (made.overlap, made.jitter, made.labels) == ("buffer_one", timedelta(seconds=30), {"a": "b", "c": "d"})
    assert (made.priority, made.version, made.paused, made.next_at) == (3, "2", True, None)
    assert (made.start_at, made.timeout) == (begin, timedelta(seconds=90))
    every = await client.schedule("t").namespace("default").workflow("report").every(timedelta(minutes=5)).paused(False)
    assert (every.cron_expr, every.interval, every.input_data) == ("", timedelta(minutes=5), None)
    assert [schedule.id async for schedule in client.schedules.list()] == ["t", "s"]
    assert [schedule.id async for schedule in client.schedules.list(workflow=report, limit=1)] == ["t"]
    assert [schedule.id async for schedule in client.schedules.list(workflow=tick)] == []


async def test_what_cannot_be_is_refused_before_it_is_sent(client: Kagzi) -> None:
    schedule = client.schedule("s")
    for builder, says in (
        (schedule.cron("* * * * *"), "no workflow"),
        (schedule.workflow(report).cron("* * * * *"), "needs an input"),
        (schedule.workflow(report).input("x"), "exactly one"),
        (schedule.workflow(report).input("x").cron("* * * * *").every("5m"), "exactly one"),
        (schedule.workflow(report).input("x").every("10ms"), "every=10ms is below the minimum, 1s"),
        (schedule.workflow(report).input("x").every("5"), "unit"),
        (schedule.workflow(tick).input("x").every("5m"), "takes no input"),
        (schedule.workflow(tick).every("5m").catchup(-1), "catchup"),
        (schedule.workflow(tick).every("5m").overlap("never"), "overlap"),  # type: ignore[arg-type]
        (schedule.workflow(tick).every("5m").start_at(datetime(2026, 1, 1)), "time zone"),
        (schedule.workflow(tick).cron("0 0 30 2 *"), "day-of-month"),
        (schedule.workflow(tick).cron("* * * * *", timezone="Mars/Base"), "time zone"),
    ):
        with pytest.raises(InvalidArgument, match=says):
            await builder
    with pytest.raises(NotFound, match="schedule s not found"):
        await client.schedules.get("s")


async def test_a_builder_that_is_never_awaited_says_so(client: Kagzi) -> None:
    def forget() -> None:
        client.schedule("s").workflow(tick).every("5m")
        gc.collect()

    with pytest.warns(RuntimeWarning, match=r"client.schedule\('s'\) was never awaited"):
        forget()


async def test_a_worker_sets_up_what_it_declares(client: Kagzi) -> None:
    declared = kagzi.schedule("declared", workflow=report, cron="0 6 * * *", input="growth")
    worker = Worker(":memory:", workflows=[report], schedules=[declared])
    async with worker:
        made = await client.schedules.get("declared")
        assert made.input_data == "growth"
        run = await client.schedules.trigger("declared")
        assert await run.result(timeout=LOADED_MACHINE) == "growth"
    async with worker.label("a", "b"):
        assert (await client.schedules.get("declared")).updated_at == made.updated_at
    assert (await client.schedules.apply(declared)).updated_at == made.updated_at
    with pytest.raises(InvalidArgument, match="twice"):
        Worker(workflows=[report], schedules=[declared, declared])
    with pytest.raises(InvalidArgument, match="not a schedule"):
        Worker(workflows=[report]).schedules(["declared"])  # type: ignore[list-item]
    with pytest.raises(InvalidArgument, match="needs an input"):
        kagzi.schedule("x", workflow=report, every="5m")


async def test_a_worker_whose_schedule_is_refused_does_not_start(client: Kagzi) -> None:
    bad = kagzi.schedule("bad", workflow=tick, cron="61 * * * *")  # the server reads expressions
    with pytest.raises(InvalidArgument, match="Bad minute"):
        async with Worker(":memory:", workflows=[tick], schedules=[bad]):
            raise AssertionError("it started")


async def test_update_trigger_and_history(client: Kagzi) -> None:
    await client.schedule("s").workflow(report).cron("0 6 * * *").input("one").overlap("skip")
    changed = await client.schedules.update(
        "s",
        every="10m",
        input="two",
        catchup=0,
        catchup_window="1h",
        overlap="allow",
        jitter="5s",
        labels={"x": "y"},
        priority=1,
        version=3,
        start_at=datetime(2026, 1, 1, tzinfo=UTC),
        end_at=datetime(2126, 1, 1, tzinfo=UTC),
    )
    assert (changed.cron_expr, changed.interval, changed.input_data) == ("", timedelta(minutes=10), "two")
    assert (changed.max_catchup, changed.overlap, changed.labels) == (0, "allow", {"x": "y"})
    assert (await client.schedules.update("s", workflow=report, cron="* * * * *", timezone="UTC")).interval is None
    first = await client.schedules.trigger("s")
    second = await client.schedules.trigger("s")
    assert first.id != second.id
    fires = [fire async for fire in client.schedules.runs("s", limit=1)]
    assert [(fire.run_id, fire.cause, fire.skipped) for fire in fires] == [(second.id, "trigger", "")]
    await client.schedules.update("s", overlap="skip")
    with pytest.raises(PreconditionFailed, match=second.id):
        await client.schedules.trigger("s")
    times = await client.schedules.preview(every="1h", count=2, after=datetime(2026, 1, 1, tzinfo=UTC))
    assert [at.hour for at in times] == [1, 2]
