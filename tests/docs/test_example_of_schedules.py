"""e08 as it is: embedded, on SQLite and on PostgreSQL, its schedule is set up, and does what schedules do."""

import asyncio
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from examples import e08_schedule
from kagzi import Kagzi, Worker
from tests.support.kagzi_process import running
from tests.support.timeouts import LOADED_MACHINE, LOADED_MACHINE_S

NO_PORTS = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")


@pytest.mark.parametrize("setup", ["embedded", "sqlite", "postgresql"])
async def test_the_schedule_of_the_example(
    setup: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    days: list[str] = []

    async def build_report(team: str, day: str) -> int:
        days.append(day)
        return 42

    monkeypatch.setattr(e08_schedule, "build_report", build_report)
    url = request.getfixturevalue("postgres_url") if setup == "postgresql" else f"sqlite:///{tmp_path / 'kagzi.db'}"
    with ExitStack() as stack:
        address = url
        if setup != "embedded":
            server = stack.enter_context(running("server", "--db", url, *NO_PORTS, cwd=tmp_path))
            address = (await asyncio.to_thread(server.says, r"grpc=(\S+)"))[1]
        async with (
            Worker(address, workflows=[e08_schedule.generate_report]),
            Kagzi.connect(address) as client,
        ):
            await set_up_on_every_deploy(client)
            await backfills_reports_of_the_days_that_they_are_about(client, days)
            await fires_pauses_triggers_backfills(client)


async def set_up_on_every_deploy(client: Kagzi) -> None:
    await e08_schedule.setup(client)
    made = await client.schedules.get("daily-report")
    assert (made.workflow, made.cron_expr, made.tz) == ("generate-report", "0 6 * * *", "Europe/Berlin")
    assert (made.max_catchup, made.input_data, made.paused) == (7, {"team": "growth"}, False)
    assert made.next_at is not None
    await e08_schedule.setup(client)
    assert await client.schedules.get("daily-report") == made
    first, second = await client.schedules.preview("daily-report", count=2)
    assert first == made.next_at
    assert second - first in (timedelta(hours=23), timedelta(hours=24), timedelta(hours=25))


async def backfills_reports_of_the_days_that_they_are_about(client: Kagzi, days: list[str]) -> None:
    begin, end = datetime(2026, 3, 27, tzinfo=UTC), datetime(2026, 3, 30, tzinfo=UTC)
    filled = await client.schedules.backfill("daily-report", begin, end)
    for fire in filled:
        assert fire.run_id is not None
        run = client.get(fire.run_id, e08_schedule.generate_report)
        assert await run.result(timeout=LOADED_MACHINE) == 42
        assert (await run.info()).scheduled_at == fire.nominal_at
    assert sorted(days) == ["2026-03-27", "2026-03-28", "2026-03-29"]
    before = datetime.now(e08_schedule.BERLIN).date().isoformat()
    by_hand = await client.start(e08_schedule.generate_report, e08_schedule.ReportConfig(team="growth"))
    await by_hand.result(timeout=LOADED_MACHINE)
    assert (await by_hand.info()).scheduled_at is None
    assert before <= days.pop() <= datetime.now(e08_schedule.BERLIN).date().isoformat()


async def fires_pauses_triggers_backfills(client: Kagzi) -> None:
    run = await client.schedules.trigger("daily-report")
    assert await run.result(timeout=LOADED_MACHINE) == 42
    now = datetime.now(UTC)
    filled = await client.schedules.backfill("daily-report", now - timedelta(days=3), now)
    assert len(filled) == 3
    for fire in filled:
        assert fire.run_id is not None
        assert await client.get(fire.run_id, e08_schedule.generate_report).result(timeout=LOADED_MACHINE) == 42
    await client.schedules.update("daily-report", cron="* * * * * *", timezone="UTC")
    async with asyncio.timeout(LOADED_MACHINE_S):
        run_id = await first_of_the_clock(client)
    assert await client.get(run_id).result(timeout=LOADED_MACHINE) == 42
    paused = await client.schedules.pause("daily-report", "seen enough")
    assert (paused.paused, paused.paused_reason, paused.next_at) == (True, "seen enough", None)
    await e08_schedule.setup(client)  # the next deploy changes it back and leaves it paused
    again = await client.schedules.get("daily-report")
    assert (again.cron_expr, again.paused) == ("0 6 * * *", True)
    assert (await client.schedules.resume("daily-report")).next_at is not None
    assert await client.schedules.delete("daily-report")


async def first_of_the_clock(client: Kagzi) -> str:
    """Schedules have no signals: this looks ten times a second."""
    while True:
        async for fire in client.schedules.runs("daily-report"):
            if fire.cause == "clock" and fire.run_id is not None:
                return fire.run_id
        await asyncio.sleep(0.1)
