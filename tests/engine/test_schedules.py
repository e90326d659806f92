"""The clock of schedules while an engine runs: on time, through outages and lost answers, and without asking when there
is nothing to do."""

import asyncio
from itertools import takewhile

from hypothesis import given, settings
from hypothesis import strategies as st

from kagzi.core.errors import InternalError, Unavailable
from kagzi.core.schedules.schedule import Fire, ScheduleRecord, ScheduleSpec
from kagzi.core.times import US_PER_S, Timestamp
from kagzi.engine import Engine
from kagzi.engine.services.paging import PageAsk
from kagzi.engine.timing.firing_plan import ahead_of, decide, times_of
from kagzi.store.protocol import PendingWork
from tests.support import polling
from tests.support.timeouts import LOADED_MACHINE_S

from .conftest import MakeEngine
from .fakes import Barrier, MovableClock, TroubledStore, until

LATE_US = 60 * US_PER_S
EVERY_SECOND = ScheduleSpec(workflow_type="flow", cron_expr="* * * * * *")
EVERY_DAY = ScheduleSpec(workflow_type="flow", cron_expr="0 6 * * *")


async def fires(engine: Engine) -> list[Fire]:
    return list((await engine.schedules.fires("here", "s", PageAsk(size=1000))).rows)[::-1]


async def until_fires(engine: Engine, count: int) -> list[Fire]:
    async def enough() -> bool:
        return len(await fires(engine)) >= count

    await until(enough)
    return await fires(engine)


async def test_a_schedule_fires_on_time_and_never_early(engine: Engine) -> None:
    await engine.schedules.create("here", "s", EVERY_SECOND)
    firings = await until_fires(engine, 3)
    assert all(0 <= fire.at - fire.nominal_at < US_PER_S // 2 for fire in firings)
    assert [fire.nominal_at - firings[0].nominal_at for fire in firings[:3]] == [0, US_PER_S, 2 * US_PER_S]


async def test_no_statement_runs_while_nothing_is_due(engine: Engine, store: TroubledStore) -> None:
    await engine.schedules.create("here", "s", EVERY_DAY)
    await engine.schedules.pause("here", "s")
    await engine.schedules.resume("here", "s")
    store.calls.clear()
    engine._timers.poll_soon()

    async def has_polled() -> bool:
        return store.calls["poll"] >= 1

    await until(has_polled)
    assert store.calls["due_schedules"] == store.calls["fire_schedules"] == 0


async def test_a_poll_returns_what_another_server_knew(make_engine: MakeEngine, clock: MovableClock) -> None:
    dead = make_engine()  # never started: it made the schedule, and is gone
    await dead.schedules.create("here", "s", EVERY_DAY)
    clock.ahead_us += 2 * 86_400 * US_PER_S
    alive = make_engine(poll_interval_ms=50)
    await alive.start()
    firings = await until_fires(alive, 1)
    assert firings


async def test_an_outage_and_a_lost_answer_double_nothing(engine: Engine, store: TroubledStore) -> None:
    await engine.schedules.create("here", "s", EVERY_SECOND)
    await until_fires(engine, 1)
    lost = 0

    async def answer_is_lost() -> None:
        nonlocal lost
        lost += 1
        if lost <= 2:
            raise Unavailable("what was written is not known to have been")

    store.after["fire_schedules"] = answer_is_lost
    firings = await until_fires(engine, 4)
    assert lost > 2
    store.away, tried = True, store.calls["due_schedules"]
    await polling.until(lambda: store.calls["due_schedules"] > tried, what="a time comes meanwhile")
    store.away = False
    firings = await until_fires(engine, len(firings) + 2)
    nominals = [fire.nominal_at for fire in firings]
    assert nominals == list(range(nominals[0], nominals[-1] + 1, US_PER_S))
    assert not [fire for fire in firings if fire.skipped]


async def test_a_change_meets_a_fire_that_is_under_way(engine: Engine, store: TroubledStore) -> None:
    """The pause was decided on a schedule that has moved on since: it is decided anew, and nothing is lost or
    doubled."""
    await engine.schedules.create("here", "s", EVERY_SECOND)
    barrier = Barrier()
    store.before["put_schedule"] = barrier
    pausing = asyncio.create_task(engine.schedules.pause("here", "s", "now"))
    async with asyncio.timeout(LOADED_MACHINE_S):
        await barrier.arrived.wait()
    before = len(await fires(engine))
    await until_fires(engine, before + 1)
    barrier.open()
    paused = await pausing
    assert (paused.enabled, paused.next_at) == (False, None)
    assert store.calls["put_schedule"] >= 2
    nominals = [fire.nominal_at for fire in await fires(engine)]
    assert nominals == list(range(nominals[0], nominals[-1] + 1, US_PER_S))


async def test_a_poll_without_schedules_changes_nothing(engine: Engine) -> None:
    engine._polled(PendingWork(0, None, ()))
    assert engine._schedule_clock._next is None


# --- the decision alone -----------------------------------------------------------------------------------------------

specs = st.builds(
    ScheduleSpec,
    workflow_type=st.just("flow"),
    cron_expr=st.sampled_from(["*/20 * * * * *", "* * * * *", "*/15 * * * *", "30 2 * * *", "0 */2 * * *"]),
    timezone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]),
    jitter_us=st.sampled_from([0, 5 * US_PER_S, 3600 * US_PER_S]),
    max_catchup=st.sampled_from([0, 1, 7, 100, 1000]),
    catchup_window_us=st.sampled_from([0, 600 * US_PER_S, 86_400 * US_PER_S]),
    overlap=st.sampled_from(["allow", "cancel_other"]),
)
# Around both turns of the clock in Berlin and New York.
beginnings = st.sampled_from([1_774_735_200, 1_792_886_400, 1_772_949_600, 1_793_505_600])
gaps_s = st.lists(st.one_of(st.floats(0.1, 90), st.floats(60, 3 * 3600), st.floats(3600, 12 * 3600)), max_size=6)


@settings(deadline=None, max_examples=40)
@given(specs, beginnings, gaps_s)
def test_every_time_is_decided_about_once(spec: ScheduleSpec, beginning: int, gaps: list[float]) -> None:
    begin = now = beginning * US_PER_S + 123
    record = ahead_of(
        ScheduleRecord(namespace="here", schedule_id="s", spec=spec, created_at=begin, updated_at=begin), begin
    )
    fired: list[Timestamp] = []
    ranges: list[tuple[Timestamp, Timestamp]] = []
    for gap in gaps:
        now += round(gap * US_PER_S)
        while record.due_at is not None and record.due_at <= now:
            decided = decide(record, now, LATE_US)
            assert decided.next_at is None or decided.next_at > (record.next_at or 0)
            fired += [nominal for nominal, _ in decided.runs]
            ranges += [(skip.nominal_at, skip.skipped_until or skip.nominal_at) for skip in decided.skips]
            assert all(nominal <= now for nominal in fired)
            record = ScheduleRecord(
                namespace="here",
                schedule_id="s",
                spec=spec,
                created_at=begin,
                next_at=decided.next_at,
                due_at=decided.due_at,
            )
    assert len(fired) == len(set(fired))
    assert record.next_at is not None
    decided_about = list(takewhile(lambda nominal: nominal < record.next_at, times_of(record).after(begin)))
    skipped = [nominal for first, last in ranges for nominal in decided_about if first <= nominal <= last]
    assert sorted(fired + skipped) == decided_about


def test_a_schedule_without_a_time_cannot_be_decided_about() -> None:
    record = ScheduleRecord(namespace="here", schedule_id="s", spec=EVERY_DAY)
    try:
        decide(record, 1, LATE_US)
    except InternalError:
        return
    raise AssertionError("it was decided about")
