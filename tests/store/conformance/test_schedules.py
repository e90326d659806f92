"""Schedules on every store, fired by two engines that race: each nominal time becomes one run, or a skip that says
why."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
import pytest

from kagzi.core.errors import (
    AlreadyExists,
    Contended,
    InvalidArgument,
    NotFound,
    PreconditionFailed,
    ResourceExhausted,
    StatementFailed,
    StoreBroken,
    Unavailable,
)
from kagzi.core.limits import Settings
from kagzi.core.pages.cursor import Cursor
from kagzi.core.records import NamespaceRecord, Payload, RunFilter, RunRecord, Served, WorkerRecord
from kagzi.core.run.commands import StartRequest
from kagzi.core.schedules.firing import FiredSchedule, Firing
from kagzi.core.schedules.schedule import Fire, ScheduleRecord, ScheduleSpec
from kagzi.core.schedules.scheduled_time import split_scheduled_time
from kagzi.core.states import RunStatus
from kagzi.core.times import US_PER_S, Timestamp, from_datetime, to_datetime
from kagzi.engine import Engine
from kagzi.engine.services.paging import PageAsk
from kagzi.engine.timing.firing_plan import times_of
from kagzi.store.protocol import NullBus, Store
from kagzi.system import SystemIds, SystemRng
from tests.support.clock import FakeClock

from .verbs import StoreHarness, continue_as, fail_run, leased

NAMESPACE = "here"
MINUTE_US = 60 * US_PER_S
HOUR_US = 3600 * US_PER_S


def at(text: str) -> Timestamp:
    return from_datetime(datetime.fromisoformat(text).replace(tzinfo=UTC))


class ScheduleHarness:
    """Two engines on one database, and a clock that moves when told."""

    def __init__(self, store: Store, second: Store, clock: FakeClock) -> None:
        self.store = store
        self.clock = clock
        self.engines = [self._engine(store, clock), self._engine(second, clock)]
        self.schedules = self.engines[0].schedules

    @staticmethod
    def _engine(store: Store, clock: FakeClock) -> Engine:
        return Engine(
            store, NullBus(), clock=clock, ids=SystemIds(), rng=SystemRng(), settings=Settings(), server_id="s"
        )

    async def tick(self) -> None:
        """Both at once, until neither has anything more to do."""
        for _ in range(50):
            now = self.clock.now()
            await asyncio.gather(*(engine._schedule_clock._tick(now) for engine in self.engines))
            if not (await self.store.due_schedules(now, 1)).schedules:
                return
        raise AssertionError("schedules stay due")

    async def walk(self, until: Timestamp, step_us: int) -> None:
        while self.clock.now() < until:
            self.clock.set(min(self.clock.now() + step_us, until))
            await self.tick()

    async def fires(self, schedule_id: str = "s") -> list[Fire]:
        """Oldest first."""
        fires: list[Fire] = []
        token = ""
        while True:
            page = await self.schedules.fires(NAMESPACE, schedule_id, PageAsk(size=1000, token=token))
            fires += page.rows
            token = page.next_token
            if not page.has_more:
                return fires[::-1]

    async def runs(self) -> list[RunRecord]:
        rows = await self.store.list_runs(NAMESPACE, RunFilter(schedule_id="s"), None, 1000)
        return list(rows.rows[::-1])

    async def create(self, **spec: object) -> ScheduleRecord:
        return await self.schedules.create(NAMESPACE, "s", ScheduleSpec(workflow_type="flow", **spec))  # type: ignore[arg-type]


@pytest.fixture
def schedules(store: Store, second_store: Store, clock: FakeClock) -> ScheduleHarness:
    return ScheduleHarness(store, second_store, clock)


def accounted(record: ScheduleRecord, fires: Sequence[Fire], begin: Timestamp, end: Timestamp) -> None:
    """Every nominal time in (begin, end] was fired once or lies in a skip, and nothing else was fired."""
    fired = Counter(fire.nominal_at for fire in fires if not fire.skipped)
    assert not [nominal for nominal, times in fired.items() if times > 1]
    ranges = [(fire.nominal_at, fire.skipped_until or fire.nominal_at) for fire in fires if fire.skipped]
    expected = []
    for nominal in times_of(record).after(begin):
        if nominal > end:
            break
        expected.append(nominal)
        skipped = any(first <= nominal <= last for first, last in ranges)
        assert (nominal in fired) != skipped, f"{to_datetime(nominal)} fired: {nominal in fired}, skipped: {skipped}"
    assert set(fired) <= set(expected)


# --- times ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "expression", "begin", "expected"),
    [
        ("Europe/Berlin", "30 2 * * *", "2026-03-28T12:00:00", ["29 01:00", "30 00:30"]),
        ("Europe/Berlin", "30 2 * * *", "2026-10-24T12:00:00", ["25 00:30", "26 01:30"]),
        ("America/New_York", "30 2 * * *", "2026-03-07T12:00:00", ["08 07:00", "09 06:30"]),
        ("America/New_York", "30 1 * * *", "2026-10-31T12:00:00", ["01 05:30", "02 06:30"]),
    ],
)
async def test_the_clock_is_turned(
    schedules: ScheduleHarness, zone: str, expression: str, begin: str, expected: list[str]
) -> None:
    schedules.clock.set(at(begin))
    record = await schedules.create(cron_expr=expression, timezone=zone)
    await schedules.walk(at(begin) + 48 * HOUR_US, 15 * MINUTE_US)
    fires = await schedules.fires()
    assert [to_datetime(fire.nominal_at).strftime("%d %H:%M") for fire in fires] == expected
    accounted(record, fires, at(begin), schedules.clock.now())
    runs = await schedules.runs()
    assert [run.run.run_id for run in runs] == [fire.run_id for fire in fires]
    assert [run.workflow_id for run in runs] == [
        f"s/{to_datetime(fire.nominal_at).strftime('%Y-%m-%dT%H:%M:%SZ')}" for fire in fires
    ]


@pytest.mark.parametrize("catchup", [0, 1, 7])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
async def test_two_hours_of_downtime(schedules: ScheduleHarness, catchup: int, zone: str) -> None:
    """Both servers come back at once, in the middle of the turn of the clock."""
    begin = at("2026-10-25T00:05:00") if zone == "Europe/Berlin" else at("2026-11-01T05:05:00")
    schedules.clock.set(begin)
    record = await schedules.create(cron_expr="*/5 * * * *", timezone=zone, max_catchup=catchup)
    await schedules.walk(begin + 10 * MINUTE_US, MINUTE_US)
    schedules.clock.advance(s=7200)  # nobody is there
    await schedules.tick()
    fires = await schedules.fires()
    accounted(record, fires, begin, schedules.clock.now())
    missed = [fire for fire in fires if fire.cause == "catchup" and not fire.skipped]
    assert len(missed) == catchup
    assert [fire.cause for fire in fires if not fire.skipped][-1] == "clock"  # also with catch-up 0
    [skip] = [fire for fire in fires if fire.skipped]
    assert skip.count == 23 - catchup
    assert f"max_catchup is {catchup}" in skip.reason
    await schedules.walk(schedules.clock.now() + 10 * MINUTE_US, MINUTE_US)
    accounted(record, await schedules.fires(), begin, schedules.clock.now())


async def test_when_all_was_missed_and_nothing_is_caught_up_with(schedules: ScheduleHarness) -> None:
    """No run at all comes of it, and the schedule goes on: this once stopped the clock of all schedules."""
    schedules.clock.set(at("2026-01-01T00:30:00"))
    record = await schedules.create(cron_expr="0 * * * *", max_catchup=0)
    schedules.clock.advance(s=7200)
    await schedules.tick()
    [skip] = await schedules.fires()
    assert (skip.skipped, skip.count) == (True, 2)
    await schedules.walk(at("2026-01-01T03:00:10"), 10 * MINUTE_US)
    fires = await schedules.fires()
    assert [fire.cause for fire in fires if not fire.skipped] == ["clock"]
    accounted(record, fires, record.created_at, schedules.clock.now())


async def test_what_is_older_than_the_window_is_not_caught_up_with(schedules: ScheduleHarness) -> None:
    schedules.clock.set(at("2026-01-01T00:00:30"))
    record = await schedules.create(cron_expr="0 * * * *", catchup_window_us=3 * HOUR_US)
    schedules.clock.advance(s=10 * 3600)
    await schedules.tick()
    fires = await schedules.fires()
    assert len([fire for fire in fires if fire.cause == "catchup" and not fire.skipped]) == 2
    accounted(record, fires, at("2026-01-01T00:00:30"), schedules.clock.now())


async def test_a_long_catch_up_comes_in_parts_and_skips_nothing(schedules: ScheduleHarness) -> None:
    schedules.clock.set(at("2026-01-01T00:00:00.5"))
    record = await schedules.create(interval_us=10 * US_PER_S, max_catchup=500)
    schedules.clock.advance(s=6000)
    await schedules.tick()
    fires = await schedules.fires()
    assert len([fire for fire in fires if not fire.skipped]) == 501
    accounted(record, fires, record.created_at, schedules.clock.now())


async def test_jitter_delays_but_skips_and_doubles_nothing(schedules: ScheduleHarness) -> None:
    schedules.clock.set(at("2026-01-01T00:00:30"))
    record = await schedules.create(cron_expr="* * * * *", jitter_us=45 * US_PER_S)
    assert record.next_at == at("2026-01-01T00:01:00")
    assert record.due_at is not None
    schedules.clock.set(record.due_at - 1)
    await schedules.tick()
    assert await schedules.fires() == []
    schedules.clock.set(record.due_at)
    await schedules.tick()
    assert [fire.nominal_at for fire in await schedules.fires()] == [record.next_at]
    await schedules.walk(schedules.clock.now() + 20 * MINUTE_US, 7 * US_PER_S)
    fires = await schedules.fires()
    assert all(0 <= fire.at - fire.nominal_at < 60 * US_PER_S for fire in fires)
    assert len({fire.at - fire.nominal_at for fire in fires}) > 3
    now = await schedules.schedules.get(NAMESPACE, "s")
    accounted(record, fires, record.created_at, (now.next_at or 0) - 1)


async def test_start_and_end_bound_the_times(schedules: ScheduleHarness) -> None:
    begin = at("2026-01-01T00:00:00")
    schedules.clock.set(begin)
    await schedules.create(interval_us=MINUTE_US, start_at=begin + 90 * US_PER_S, end_at=begin + 4 * MINUTE_US)
    await schedules.walk(begin + 10 * MINUTE_US, 30 * US_PER_S)
    assert [(fire.nominal_at - begin) // US_PER_S for fire in await schedules.fires()] == [90, 150, 210]
    record = await schedules.schedules.get(NAMESPACE, "s")
    assert record.next_at is None
    assert record.last_fired_at == begin + 210 * US_PER_S


# --- overlap ----------------------------------------------------------------------------------------------------------


async def test_overlap_skip_names_the_run_that_is_in_the_way(schedules: ScheduleHarness) -> None:
    schedules.clock.set(at("2026-01-01T00:00:30"))
    await schedules.create(cron_expr="* * * * *", overlap="skip")
    await schedules.walk(schedules.clock.now() + 3 * MINUTE_US, MINUTE_US)
    first, *skips = await schedules.fires()
    assert first.run_id is not None
    assert len(skips) == 2
    assert all(first.run_id in skip.reason for skip in skips)
    with pytest.raises(PreconditionFailed, match=first.run_id):
        await schedules.schedules.trigger(NAMESPACE, "s")
    await schedules.engines[0].control.terminate(NAMESPACE, run_id=first.run_id)
    schedules.clock.advance(s=60)
    await schedules.tick()
    assert not (await schedules.fires())[-1].skipped
    assert len(await schedules.fires()) == 4  # the refused trigger is not part of the history


async def test_overlap_buffer_one_waits_for_the_end_of_the_other(schedules: ScheduleHarness) -> None:
    schedules.clock.set(at("2026-01-01T00:00:30"))
    await schedules.create(cron_expr="* * * * *", overlap="buffer_one")
    await schedules.walk(schedules.clock.now() + 4 * MINUTE_US, MINUTE_US)
    first, second, *skips = await schedules.fires()
    assert len(skips) == 2
    assert all(second.run_id in skip.reason for skip in skips if second.run_id)
    one, two = await schedules.runs()
    assert (one.status, two.status) == (RunStatus.PENDING, RunStatus.SLEEPING)
    assert two.blocked_by == one.run.run_id == first.run_id
    await schedules.engines[0].control.terminate(NAMESPACE, run_id=one.run.run_id)
    two = (await schedules.runs())[1]
    assert two.status is RunStatus.PENDING
    schedules.clock.advance(s=60)
    await schedules.tick()
    assert (await schedules.runs())[2].blocked_by == two.run.run_id


async def test_overlap_cancel_other(schedules: ScheduleHarness) -> None:
    schedules.clock.set(at("2026-01-01T00:00:30"))
    record = await schedules.create(cron_expr="* * * * *", overlap="cancel_other")
    await schedules.walk(schedules.clock.now() + 2 * MINUTE_US, MINUTE_US)
    assert [run.status for run in await schedules.runs()] == [RunStatus.CANCELLED, RunStatus.PENDING]
    schedules.clock.advance(s=5 * 60)
    await schedules.tick()
    assert [run.status for run in await schedules.runs()] == [
        RunStatus.CANCELLED,
        RunStatus.CANCELLED,
        RunStatus.PENDING,
    ]
    accounted(record, await schedules.fires(), record.created_at, schedules.clock.now())


async def test_overlap_allow(schedules: ScheduleHarness) -> None:
    schedules.clock.set(at("2026-01-01T00:00:30"))
    await schedules.create(cron_expr="* * * * *", input=Payload(b'"x"'), labels={"team": "a"}, priority=7, version="3")
    await schedules.walk(schedules.clock.now() + 3 * MINUTE_US, MINUTE_US)
    runs = await schedules.runs()
    assert [run.status for run in runs] == [RunStatus.PENDING] * 3
    full = await schedules.store.get_run(NAMESPACE, run_id=runs[0].run.run_id)
    assert full is not None
    assert full.input == Payload(b'"x"')
    assert (full.labels, full.priority, full.version, full.schedule_id) == ({"team": "a"}, 7, "3", "s")


# --- refusals ---------------------------------------------------------------------------------------------------------


async def test_a_start_that_is_refused_is_a_skip_and_harms_no_other_tenant(schedules: ScheduleHarness) -> None:
    schedules.clock.set(at("2026-01-01T00:00:30"))
    await schedules.store.put_namespace(NamespaceRecord(namespace="full", open_runs_limit=1), schedules.clock.now())
    spec = ScheduleSpec(workflow_type="flow", cron_expr="* * * * *")
    for namespace in ("full", "gone", NAMESPACE):
        await schedules.schedules.create(namespace, "s", spec)
    await schedules.store.put_namespace(NamespaceRecord(namespace="gone", enabled=False), schedules.clock.now())
    await schedules.walk(schedules.clock.now() + 2 * MINUTE_US, MINUTE_US)
    assert [fire.skipped for fire in await schedules.fires()] == [False, False]
    full = (await schedules.schedules.fires("full", "s", PageAsk())).rows[::-1]
    assert [fire.skipped for fire in full] == [False, True]
    assert "open_runs_limit" in full[1].reason
    gone = (await schedules.schedules.fires("gone", "s", PageAsk())).rows
    assert [fire.skipped for fire in gone] == [True, True]
    assert "disabled" in gone[0].reason


async def test_a_deprecated_version_is_a_skip(schedules: ScheduleHarness) -> None:
    schedules.clock.set(at("2026-01-01T00:00:30"))
    await schedules.create(cron_expr="* * * * *", version="1")
    worker = WorkerRecord(
        worker_id="w", namespace=NAMESPACE, served=(Served("flow", "1"), Served("flow", "2")), max_concurrent=1
    )
    await schedules.store.register_worker(worker, schedules.clock.now())
    await schedules.engines[0].versions.deprecate(NAMESPACE, "flow", "1", undo=False)
    schedules.clock.advance(s=60)
    await schedules.tick()
    [fire] = await schedules.fires()
    assert fire.skipped
    assert "deprecated" in fire.reason
    with pytest.raises(PreconditionFailed, match="deprecated"):
        await schedules.schedules.trigger(NAMESPACE, "s")
    with pytest.raises(PreconditionFailed, match="deprecated"):
        await schedules.schedules.backfill(NAMESPACE, "s", at("2026-01-01T00:00:00"), at("2026-01-01T00:01:00"))


async def test_a_workflow_id_that_is_taken_is_a_skip(schedules: ScheduleHarness) -> None:
    schedules.clock.set(at("2026-01-01T00:00:30"))
    request = StartRequest(namespace=NAMESPACE, workflow_type="flow", workflow_id="s/2026-01-01T00:01:00Z")
    engine = schedules.engines[0]
    await engine.start()
    try:
        await engine.runs.start(request)
        await schedules.create(cron_expr="* * * * *")
        schedules.clock.advance(s=60)
        await schedules.tick()
        [fire] = await schedules.fires()
        assert fire.skipped
        assert "s/2026-01-01T00:01:00Z" in fire.reason
    finally:
        await engine.stop()


@pytest.mark.parametrize("error", [StatementFailed("inside words"), StoreBroken("inside words")])
async def test_a_schedule_that_cannot_fire_is_tried_again_and_the_others_keep_firing(
    schedules: ScheduleHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    schedules.clock.set(at("2026-01-01T00:00:30"))
    await schedules.create(cron_expr="* * * * *")
    await schedules.schedules.create(NAMESPACE, "bad", ScheduleSpec(workflow_type="flow", cron_expr="* * * * *"))
    from kagzi.engine.timing.schedule_clock import ScheduleClock

    fire = ScheduleClock.fire
    tries = 0

    async def stumble(self: ScheduleClock, firings: Sequence[Firing]) -> Sequence[FiredSchedule | None]:
        nonlocal tries
        if any(firing.schedule.schedule_id == "bad" for firing in firings):
            tries += len(firings) == 1
            raise error
        return await fire(self, firings)

    monkeypatch.setattr(ScheduleClock, "fire", stumble)
    schedules.clock.advance(s=30)
    for _ in range(20):
        await schedules.tick()
        schedules.clock.advance(s=1)
    assert len(await schedules.fires()) == 1
    assert 5 <= tries <= 10  # by each engine: at once, and after 1, 2, 4 and 8 s
    bad = await schedules.schedules.get(NAMESPACE, "bad")
    assert (bad.enabled, bad.paused_reason) == (True, "")
    assert "could not fire (5 times) and is tried again in 16 s" in caplog.text
    monkeypatch.undo()
    schedules.clock.advance(s=60)
    await schedules.tick()
    fired = [fire.nominal_at for fire in await schedules.fires("bad") if not fire.skipped]
    assert fired == [at("2026-01-01T00:01:00"), at("2026-01-01T00:02:00")]


@pytest.mark.parametrize("error", [Unavailable("away"), Contended("locked")])
async def test_an_outage_of_the_store_is_no_schedules_fault(
    schedules: ScheduleHarness, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    schedules.clock.set(at("2026-01-01T00:00:30"))
    await schedules.create(cron_expr="* * * * *")
    from kagzi.engine.timing.schedule_clock import ScheduleClock

    async def away(self: ScheduleClock, firings: Sequence[Firing]) -> Sequence[FiredSchedule | None]:
        raise error

    monkeypatch.setattr(ScheduleClock, "fire", away)
    schedules.clock.advance(s=60)
    for _ in range(20):
        with pytest.raises(type(error)):
            await schedules.tick()
    monkeypatch.undo()
    await schedules.tick()
    assert len(await schedules.fires()) == 1


async def test_a_schedule_that_is_at_fault_itself_is_paused_and_the_others_keep_firing(
    schedules: ScheduleHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    schedules.clock.set(at("2026-01-01T00:00:30"))
    await schedules.create(cron_expr="* * * * *")
    await schedules.schedules.create(NAMESPACE, "bad", ScheduleSpec(workflow_type="flow", cron_expr="* * * * *"))
    from kagzi.engine.timing import schedule_clock

    decide = schedule_clock.decide

    def stumble(record: ScheduleRecord, *args: int, **kwargs: bool) -> object:
        if record.schedule_id == "bad":
            raise InvalidArgument("timezone names no zone that is known here", field="timezone")
        return decide(record, *args, **kwargs)

    monkeypatch.setattr(schedule_clock, "decide", stumble)
    schedules.clock.advance(s=60)
    await schedules.tick()
    assert len(await schedules.fires()) == 1
    bad = await schedules.schedules.get(NAMESPACE, "bad")
    assert not bad.enabled
    assert bad.paused_reason == "paused by the server: timezone names no zone that is known here"
    assert "schedule 'bad' of namespace" in caplog.text


# --- changes ----------------------------------------------------------------------------------------------------------


async def test_an_upsert_that_changes_nothing_changes_nothing(schedules: ScheduleHarness) -> None:
    schedules.clock.set(at("2026-01-01T00:00:30"))
    spec = ScheduleSpec(workflow_type="flow", cron_expr="0 6 * * *", input=Payload(b"1"), labels={"a": "b"})
    made, created = await schedules.schedules.upsert(NAMESPACE, "s", spec)
    assert created
    schedules.clock.advance(s=60)
    again, created = await schedules.schedules.upsert(NAMESPACE, "s", spec)
    assert not created
    assert again == made
    changed, _ = await schedules.schedules.upsert(
        NAMESPACE, "s", ScheduleSpec(workflow_type="flow", cron_expr="0 7 * * *", input=Payload(b"1"))
    )
    assert changed.revision == made.revision + 1
    assert changed.next_at == at("2026-01-01T07:00:00")
    assert (changed.created_at, changed.updated_at) == (made.created_at, schedules.clock.now())


async def test_an_upsert_leaves_a_paused_schedule_paused(schedules: ScheduleHarness) -> None:
    spec = ScheduleSpec(workflow_type="flow", cron_expr="0 6 * * *")
    await schedules.schedules.upsert(NAMESPACE, "s", spec)
    await schedules.schedules.pause(NAMESPACE, "s", "holiday")
    again, _ = await schedules.schedules.upsert(
        NAMESPACE, "s", ScheduleSpec(workflow_type="flow", cron_expr="0 7 * * *")
    )
    assert (again.enabled, again.paused_reason, again.next_at) == (False, "holiday", None)
    resumed, _ = await schedules.schedules.upsert(NAMESPACE, "s", again.spec, enabled=True)
    assert resumed.enabled
    assert resumed.next_at is not None


async def test_racing_upserts_make_one_schedule(schedules: ScheduleHarness) -> None:
    spec = ScheduleSpec(workflow_type="flow", cron_expr="0 6 * * *")
    made = await asyncio.gather(
        *(engine.schedules.upsert(NAMESPACE, "s", spec) for engine in schedules.engines for _ in range(4))
    )
    assert sum(created for _, created in made) == 1
    assert len({record.revision for record, _ in made}) == 1


async def test_paused_time_is_not_missed(schedules: ScheduleHarness) -> None:
    schedules.clock.set(at("2026-01-01T00:00:30"))
    await schedules.create(cron_expr="* * * * *")
    await schedules.walk(schedules.clock.now() + MINUTE_US, MINUTE_US)
    paused = await schedules.schedules.pause(NAMESPACE, "s", "why not")
    assert (paused.enabled, paused.paused_reason, paused.next_at) == (False, "why not", None)
    assert await schedules.schedules.pause(NAMESPACE, "s", "again") == paused
    await schedules.walk(schedules.clock.now() + 5 * MINUTE_US, MINUTE_US)
    assert len(await schedules.fires()) == 1
    resumed = await schedules.schedules.resume(NAMESPACE, "s")
    assert resumed.next_at == at("2026-01-01T00:07:00")
    await schedules.walk(schedules.clock.now() + MINUTE_US, MINUTE_US)
    assert [fire.skipped for fire in await schedules.fires()] == [False, False]


async def test_what_is_due_happens_before_a_change(schedules: ScheduleHarness) -> None:
    schedules.clock.set(at("2026-01-01T00:00:30"))
    record = await schedules.create(cron_expr="* * * * *", jitter_us=50 * US_PER_S)
    schedules.clock.set(at("2026-01-01T00:03:00") + 1)  # and nobody has ticked
    await schedules.schedules.pause(NAMESPACE, "s")
    accounted(record, await schedules.fires(), record.created_at, schedules.clock.now())
    assert len(await schedules.fires()) == 3


async def test_next_fire_at_records_what_it_skips(schedules: ScheduleHarness) -> None:
    schedules.clock.set(at("2026-01-01T00:00:30"))
    await schedules.create(cron_expr="* * * * *")
    record = await schedules.schedules.change(NAMESPACE, "s", lambda was: was, next_fire_at=at("2026-01-01T00:04:30"))
    assert record.next_at == at("2026-01-01T00:05:00")
    await schedules.walk(at("2026-01-01T00:06:00"), MINUTE_US)
    fires = await schedules.fires()
    assert [fire.count for fire in fires if fire.skipped] == [4]
    accounted(record, fires, record.created_at, schedules.clock.now())
    with pytest.raises(InvalidArgument, match="next_fire_at"):
        await schedules.schedules.change(NAMESPACE, "s", lambda was: was, next_fire_at=1)


async def test_create_is_refused_when_taken_or_full(schedules: ScheduleHarness) -> None:
    await schedules.store.put_namespace(NamespaceRecord(namespace=NAMESPACE, schedules_limit=2), 1)
    spec = ScheduleSpec(workflow_type="flow", cron_expr="0 6 * * *")
    made = await schedules.schedules.create(NAMESPACE, "s", spec, request_id="r")
    assert await schedules.schedules.create(NAMESPACE, "s", spec, request_id="r") == made
    with pytest.raises(AlreadyExists, match="exists"):
        await schedules.schedules.create(NAMESPACE, "s", spec, request_id="q")
    both = await asyncio.gather(
        *(engine.schedules.create(NAMESPACE, f"t{n}", spec) for n, engine in enumerate(schedules.engines)),
        return_exceptions=True,
    )
    assert sorted(type(each).__name__ for each in both) == ["ResourceExhausted", "ScheduleRecord"]
    with pytest.raises(ResourceExhausted, match="schedules_limit"):
        await schedules.schedules.create(NAMESPACE, "u", spec)


async def test_delete_takes_its_history_and_leaves_its_runs(schedules: ScheduleHarness) -> None:
    schedules.clock.set(at("2026-01-01T00:00:30"))
    await schedules.create(interval_us=US_PER_S, max_catchup=1000)
    schedules.clock.advance(s=500)
    await schedules.tick()
    assert (await schedules.store.delete_schedule("elsewhere", "s", 10)) == (False, False)
    assert await schedules.store.delete_schedule(NAMESPACE, "s", 400) == (True, True)
    assert await schedules.store.delete_schedule(NAMESPACE, "s", 400) == (False, False)
    assert not await schedules.schedules.delete(NAMESPACE, "s")
    with pytest.raises(NotFound):
        await schedules.schedules.get(NAMESPACE, "s")
    assert len(await schedules.runs()) == 500
    assert (await schedules.store.list_fires(NAMESPACE, "s", None, 10)).rows == ()


# --- trigger, backfill, lists -----------------------------------------------------------------------------------------


async def test_a_trigger_is_a_run_of_its_own(schedules: ScheduleHarness) -> None:
    schedules.clock.set(at("2026-01-01T00:01:00"))
    await schedules.create(cron_expr="* * * * *")
    await schedules.schedules.pause(NAMESPACE, "s")
    run_id, workflow_id = await schedules.schedules.trigger(NAMESPACE, "s", "r")
    assert workflow_id == "s/2026-01-01T00:01:00.000001Z"
    schedules.clock.advance(s=5)
    assert await schedules.schedules.trigger(NAMESPACE, "s", "r") == (run_id, workflow_id)
    assert (await schedules.schedules.trigger(NAMESPACE, "s"))[0] != run_id
    assert [fire.cause for fire in await schedules.fires()] == ["trigger", "trigger"]


async def test_a_repeated_trigger_is_not_in_its_own_way(schedules: ScheduleHarness) -> None:
    await schedules.create(cron_expr="* * * * *", overlap="skip")
    first = await schedules.schedules.trigger(NAMESPACE, "s", "r")
    schedules.clock.advance(s=1)
    assert await schedules.schedules.trigger(NAMESPACE, "s", "r") == first


async def test_backfill_fires_what_has_not_fired(schedules: ScheduleHarness) -> None:
    schedules.clock.set(at("2026-01-01T00:00:30"))
    await schedules.create(cron_expr="* * * * *", max_catchup=0, overlap="skip")
    schedules.clock.advance(s=600)
    await schedules.tick()  # one on time, nine skipped
    begin, end = at("2026-01-01T00:00:00"), at("2026-01-01T00:10:00")
    fires = await schedules.schedules.backfill(NAMESPACE, "s", begin, end)
    assert [(fire.nominal_at - begin) // MINUTE_US for fire in fires] == list(range(10))
    assert {fire.cause for fire in fires} == {"backfill"}
    again, same = await asyncio.gather(
        *(engine.schedules.backfill(NAMESPACE, "s", begin, end + MINUTE_US) for engine in schedules.engines)
    )
    assert [fire.run_id for fire in again] == [fire.run_id for fire in same]
    assert [fire.run_id for fire in again[:-1]] == [fire.run_id for fire in fires]
    assert again[-1].cause == "clock"
    assert len(await schedules.runs()) == 11


async def test_a_run_keeps_its_nominal_time_over_retries_forks_and_continue_as_new(
    schedules: ScheduleHarness, harness: StoreHarness
) -> None:
    schedules.clock.set(at("2026-01-02T00:00:00"))
    await schedules.create(cron_expr="0 * * * *", context=Payload(b'"given"', {"k": "v"}))
    nominal = at("2026-01-01T06:00:00")
    [fire] = await schedules.schedules.backfill(NAMESPACE, "s", nominal, nominal + MINUTE_US)
    expected = (Payload(b'"given"', {"k": "v"}), nominal)
    first = await harness.claim_one(workflow_type="flow", namespace=NAMESPACE)
    assert first.run.run_id == fire.run_id
    assert split_scheduled_time(first.context) == expected
    await harness.done(leased(first), "a")
    taken_over = await harness.take_over(leased(first))
    assert split_scheduled_time((await harness.run(first.run)).context) == expected
    await harness.do(fail_run(taken_over))
    await harness.retry(first.run)
    again = await harness.claim_one(workflow_type="flow", namespace=NAMESPACE)
    assert (again.run, split_scheduled_time(again.context)) == (first.run, expected)
    await harness.fork(first.run, "a", workflow_id="fork")
    fork = await harness.claim_one(workflow_type="flow", namespace=NAMESPACE)
    assert (fork.workflow_id, split_scheduled_time(fork.context)) == ("fork", expected)
    await harness.do(continue_as(leased(again), harness.ids.run_id(harness.now), "round 2"))
    successor = await harness.claim_one(workflow_type="flow", namespace=NAMESPACE)
    assert (successor.run != first.run, split_scheduled_time(successor.context)) == (True, expected)


async def test_an_owner_stays_until_another_one_is_named(schedules: ScheduleHarness) -> None:
    spec = ScheduleSpec(workflow_type="flow", cron_expr="0 6 * * *", owner="billing")
    service = schedules.schedules
    made = await service.create(NAMESPACE, "s", spec)
    assert made.spec.owner == "billing"
    nobody, later = msgspec.structs.replace(spec, owner=""), msgspec.structs.replace(spec, cron_expr="0 7 * * *")
    assert await service.upsert(NAMESPACE, "s", nobody) == (made, False)  # says the same: left alone
    changed, _ = await service.upsert(NAMESPACE, "s", msgspec.structs.replace(later, owner=""))
    assert (changed.spec, changed.revision) == (later, made.revision + 1)
    taken, _ = await service.upsert(NAMESPACE, "s", msgspec.structs.replace(later, owner="shipping"))
    assert (taken.spec.owner, taken.next_at) == ("shipping", changed.next_at)
    [listed] = (await service.list(NAMESPACE, None, PageAsk())).rows
    assert listed == taken


async def test_a_backfill_has_a_limit(schedules: ScheduleHarness) -> None:
    schedules.clock.set(at("2026-01-02T00:00:00"))
    await schedules.create(cron_expr="* * * * * *")
    begin = at("2026-01-01T00:00:00")
    with pytest.raises(InvalidArgument, match="1000"):
        await schedules.schedules.backfill(NAMESPACE, "s", begin, begin + 1001 * US_PER_S)
    with pytest.raises(InvalidArgument, match="future"):
        await schedules.schedules.backfill(NAMESPACE, "s", schedules.clock.now(), schedules.clock.now() + 2 * US_PER_S)
    assert len(await schedules.schedules.backfill(NAMESPACE, "s", begin, begin + 1000 * US_PER_S)) == 1000


async def test_lists_are_paged_both_ways_and_see_one_namespace(schedules: ScheduleHarness) -> None:
    spec = ScheduleSpec(workflow_type="flow", cron_expr="0 6 * * *")
    for number in range(5):
        schedules.clock.advance(us=number % 2)
        await schedules.schedules.create(NAMESPACE, f"s{number}", spec)
    await schedules.schedules.create("elsewhere", "x", spec)
    names: list[str] = []
    page = await schedules.schedules.list(NAMESPACE, None, PageAsk(size=2))
    pages = [page]
    while page.has_more:
        page = await schedules.schedules.list(NAMESPACE, None, PageAsk(size=2, token=page.next_token))
        pages.append(page)
    names = [record.schedule_id for page in pages for record in page.rows]
    assert names == ["s4", "s3", "s2", "s1", "s0"]
    back = await schedules.schedules.list(NAMESPACE, None, PageAsk(size=2, token=pages[-1].prev_token))
    assert back.rows == pages[1].rows
    assert (await schedules.schedules.list(NAMESPACE, "other", PageAsk())).rows == ()
    with pytest.raises(NotFound):
        await schedules.schedules.get(NAMESPACE, "x")


async def test_fires_are_paged_both_ways(schedules: ScheduleHarness) -> None:
    schedules.clock.set(at("2026-01-01T00:00:30"))
    await schedules.create(cron_expr="* * * * *", max_catchup=0)
    for _ in range(3):
        schedules.clock.advance(s=180)
        await schedules.tick()
    begin = at("2026-01-01T00:00:00")
    await schedules.schedules.backfill(NAMESPACE, "s", begin, schedules.clock.now())
    everything = (await schedules.store.list_fires(NAMESPACE, "s", None, 100)).rows
    assert len(everything) == 13  # ten runs and three skips, of times that were backfilled later
    for size in (1, 2, 5):
        page = await schedules.schedules.fires(NAMESPACE, "s", PageAsk(size=size))
        rows = list(page.rows)
        while page.has_more:
            page = await schedules.schedules.fires(NAMESPACE, "s", PageAsk(size=size, token=page.next_token))
            rows += page.rows
        assert tuple(rows) == everything
    last = everything[-1]
    newer = await schedules.store.list_fires(NAMESPACE, "s", Cursor(last.nominal_at, str(int(last.skipped)), "prev"), 5)
    assert newer.rows == everything[-6:-1]


async def test_old_fires_are_forgotten_so_many_at_a_time(schedules: ScheduleHarness) -> None:
    schedules.clock.set(at("2026-01-01T00:00:30"))
    await schedules.create(interval_us=US_PER_S, max_catchup=100)
    schedules.clock.advance(s=60)
    await schedules.tick()
    assert not await schedules.store.forget_fires(schedules.clock.now(), 40)
    assert await schedules.store.forget_fires(schedules.clock.now() + 1, 40)
    assert not await schedules.store.forget_fires(schedules.clock.now() + 1, 40)
    assert await schedules.fires() == []


async def test_a_poll_returns_when_the_next_schedule_is_due(schedules: ScheduleHarness) -> None:
    assert (await schedules.store.poll((), schedules.clock.now())).next_schedule_at is None
    record = await schedules.create(cron_expr="0 6 * * *", jitter_us=HOUR_US)
    assert (await schedules.store.poll((), schedules.clock.now())).next_schedule_at == record.due_at
    await schedules.schedules.pause(NAMESPACE, "s")
    assert (await schedules.store.poll((), schedules.clock.now())).next_schedule_at is None
