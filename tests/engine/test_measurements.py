"""What is counted: each thing once, under bounded names, and nothing while nobody looks."""

import asyncio

import msgspec
import pytest

from kagzi.core.error_details import ErrorDetail, ErrorKind
from kagzi.core.records import Lease, Payload
from kagzi.core.run.commands import BeginStep, CompleteStep, FailRun, FailStep, PauseDiverged, RecordStep
from kagzi.core.schedules.schedule import ScheduleSpec
from kagzi.core.times import US_PER_S
from kagzi.core.workflow_types.queues import TypeLimits
from kagzi.engine import Engine
from kagzi.engine.measurements import store_gauges
from kagzi.engine.measurements.measurements import NAMESPACES, PAIRS, WORKFLOW_TYPES, Measurements
from kagzi.engine.measurements.values import OTHER, Histogram, Labels, Names
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import MovableClock, RecordingOutlet, TroubledStore, complete, leased, start, until, worker

BOOM = ErrorDetail(kind=ErrorKind.PERMANENT, type="ValueError", message="boom")
MISFIT = ErrorDetail(kind=ErrorKind.NONDETERMINISM, message="the code does not fit")
HELLO = ("default", "hello")


def value(engine: Engine, name: str, *labels: str) -> object:
    return dict(engine.measurements.samples()[name]).get(labels, 0)


def count(engine: Engine, name: str, *labels: str) -> int:
    """Of a histogram."""
    sample = dict(engine.measurements.samples()[name]).get(labels)
    assert isinstance(sample, tuple)
    return sum(sample[0])


async def gauges(engine: Engine, name: str) -> dict[Labels, object]:
    return dict((await engine.store_gauges.samples())[name])


async def test_a_run_and_its_steps_are_counted_once(engine: Engine, clock: MovableClock) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello"), (), outlet)
    await engine.runs.start(start())
    await engine.runs.start(start(workflow_id="later", delay_us=20_000))
    (run, _) = await outlet.until_received(2)
    lease = leased(run)
    done = Payload(b"1")
    await session.submit(
        [
            (1, RecordStep(run=lease.run, lease=lease.lease, step_id="a", name="a", output=done)),
            (2, BeginStep(run=lease.run, lease=lease.lease, step_id="b", name="b")),
            (3, CompleteStep(run=lease.run, lease=lease.lease, step_id="b", attempt=1, output=done)),
            (4, BeginStep(run=lease.run, lease=lease.lease, step_id="c", name="c")),
            (5, FailStep(run=lease.run, lease=lease.lease, step_id="c", attempt=1, error=BOOM)),
        ]
    )
    await outlet.answer_to(5)
    clock.ahead_us += 2 * US_PER_S
    await session.submit([(6, complete(run))])
    await outlet.answer_to(6)
    await session.submit([(7, complete(run))])  # sent again
    await outlet.answer_to(7)
    assert value(engine, "kagzi_runs_started_total", *HELLO, "client") == 2
    assert value(engine, "kagzi_runs_ended_total", *HELLO, "completed") == 1
    assert value(engine, "kagzi_step_attempts_total", *HELLO, "completed") == 2
    assert value(engine, "kagzi_step_attempts_total", *HELLO, "failed") == 1
    assert count(engine, "kagzi_run_wait_seconds", *HELLO) == 2
    assert count(engine, "kagzi_run_duration_seconds", *HELLO) == 1
    [(_, (_, seconds))] = engine.measurements.samples()["kagzi_run_duration_seconds"]  # type: ignore[misc]
    assert 2 <= seconds < 60
    assert count(engine, "kagzi_commit_duration_seconds") == count(engine, "kagzi_commit_operations") >= 3
    assert count(engine, "kagzi_timer_lateness_seconds", "run") == 1
    assert value(engine, "kagzi_sessions") == 1


async def test_ends_from_outside_failures_and_divergence_are_counted(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello"), (), outlet)
    for _ in range(3):
        await engine.runs.start(start())
    first, second, third = await outlet.until_received(3)
    await engine.control.terminate("default", run_id=first.run.run_id)
    await session.submit([(1, FailRun(run=second.run, lease=second.lease, error=BOOM))])
    await session.submit([(2, PauseDiverged(run=third.run, lease=third.lease, problem=MISFIT))])
    await outlet.answer_to(2)
    await session.submit([(3, msgspec.structs.replace(complete(first), lease=Lease(9, 9)))])
    await outlet.answer_to(3)
    forked = await engine.control.fork("default", second.run.run_id)
    assert forked.run_id
    assert value(engine, "kagzi_runs_ended_total", *HELLO, "cancelled") == 1
    assert value(engine, "kagzi_runs_ended_total", *HELLO, "failed") == 1
    assert value(engine, "kagzi_runs_started_total", *HELLO, "fork") == 1
    assert value(engine, "kagzi_runs_diverged_total") == 1
    assert value(engine, "kagzi_fenced_writes_total", "complete_run") == 1


async def test_a_lost_lease_and_a_quarantine_are_counted(make_engine: MakeEngine) -> None:
    engine = make_engine(lease_ms=100, poll_interval_ms=50, heartbeat_ms=50, claim_cap=1)
    await engine.start()
    await engine.sessions.open(worker("hello", slots=1), (), RecordingOutlet())
    await engine.runs.start(start())

    async def lost() -> bool:
        return value(engine, "kagzi_leases_lost_total") == 1

    await until(lost)
    assert value(engine, "kagzi_runs_quarantined_total") == 1


async def test_a_run_that_its_worker_brought_from_another_server_is_counted_by_its_type(
    make_engine: MakeEngine,
) -> None:
    one, other = make_engine(), make_engine()
    await one.start()
    await other.start()
    known = worker("hello")
    before, after = RecordingOutlet(), RecordingOutlet()
    await one.sessions.open(known, (), before)
    await one.runs.start(start())
    (run,) = await before.until_received(1)
    session = await other.sessions.open(known, [leased(run)], after)

    async def identified() -> bool:
        return bool(session.leased[run.run.run_id].workflow_type)

    await until(identified)
    await session.submit([(1, complete(run))])
    await after.answer_to(1)
    assert value(other, "kagzi_runs_ended_total", *HELLO, "completed") == 1
    assert count(other, "kagzi_run_duration_seconds", *HELLO) == 1


async def test_schedules_and_chores_are_counted(make_engine: MakeEngine, clock: MovableClock) -> None:
    engine = make_engine(housekeeping_ms=5)
    await engine.start()
    await engine.schedules.create("default", "s", ScheduleSpec(workflow_type="hello", cron_expr="* * * * * *"))

    async def fired() -> bool:
        return bool(value(engine, "kagzi_schedule_fires_total", "started"))

    await until(fired)
    fires = value(engine, "kagzi_schedule_fires_total", "started")
    assert value(engine, "kagzi_runs_started_total", *HELLO, "schedule") == fires
    assert count(engine, "kagzi_timer_lateness_seconds", "schedule") == fires
    await engine.schedules.trigger("default", "s")
    assert value(engine, "kagzi_schedule_fires_total", "started") > fires  # type: ignore[operator]

    async def done() -> bool:
        return bool(value(engine, "kagzi_chore_last_success_timestamp_seconds", "lost workers"))

    await until(done)
    at_s = value(engine, "kagzi_chore_last_success_timestamp_seconds", "lost workers")
    assert abs(at_s - clock.now() / US_PER_S) < 60  # type: ignore[operator]


async def test_a_session_whose_worker_does_not_read_is_blocked(engine: Engine) -> None:
    session = await engine.sessions.open(worker("hello"), (), RecordingOutlet())
    session.set_reading(False)
    session._unread_since_s -= 5  # that was a while ago
    session.set_reading(True)
    assert 5 <= value(engine, "kagzi_session_blocked_seconds_total") < 65  # type: ignore[operator]


async def test_an_outage_of_the_store_is_counted_and_gauges_go_stale(
    engine: Engine, store: TroubledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.runs.start(start())
    assert await gauges(engine, "kagzi_queue_depth") == {HELLO: 1}
    store.away = True
    outage = asyncio.ensure_future(engine.runs.start(start()))

    async def seen() -> bool:
        return bool(value(engine, "kagzi_store_errors_total", "unavailable"))

    await until(seen)
    assert await gauges(engine, "kagzi_queue_depth") == {HELLO: 1}
    monkeypatch.setattr(store_gauges, "SHARED_S", 0.0)
    assert await gauges(engine, "kagzi_queue_depth") == {HELLO: 1}, "the last that was known, for a while"
    monkeypatch.setattr(store_gauges, "STALE_S", 0.0)
    assert await engine.store_gauges.samples() == {}
    store.away = False
    await outage
    monkeypatch.setattr(store_gauges, "STALE_S", 60.0)
    assert await gauges(engine, "kagzi_queue_depth") == {HELLO: 2}


async def test_gauges_are_asked_for_once_in_a_while_and_only_if_somebody_looks(
    engine: Engine, store: TroubledStore
) -> None:
    assert store.calls["queue_gauges"] == 0
    await asyncio.gather(*(engine.store_gauges.samples() for _ in range(5)))
    await engine.store_gauges.samples()
    assert store.calls["queue_gauges"] == 1


async def test_what_holds_a_queue_back_is_told(engine: Engine, store: TroubledStore) -> None:
    await engine.sessions.open(worker("paused", "full", slots=1), (), RecordingOutlet())
    for name in ("paused", "full", "unserved"):
        await engine.runs.start(start(name))
    await engine.queues.pause("default", "paused")
    await engine.queues.update("default", "full", TypeLimits(max_running=1), ())
    await engine.runs.start(start("paused"))
    await engine.runs.start(start("full"))
    limited = await gauges(engine, "kagzi_queue_held_back")
    assert limited["default", "unserved", "no_worker"] == 1
    assert {labels[1:] for labels in limited} >= {("paused", "type_paused")}


def test_a_value_on_a_bound_is_below_it() -> None:
    histogram = Histogram((1.0, 2.0))
    for each in (0.5, 1.0, 1.5, 2.0, 3.0):
        histogram.observe(each)
    assert histogram.value == ([2, 2, 1], 8.0)


def test_names_beyond_the_limit_share_one() -> None:
    names = Names(2)
    assert [names.admit(name) for name in ("a", "b", "c", "a", "")] == ["a", "b", OTHER, "a", OTHER]


def test_however_many_names_there_are_few_are_counted() -> None:
    measurements = Measurements()
    for namespace in range(60):
        for workflow_type in range(300):
            measurements.started(f"namespace-{namespace}", f"type-{workflow_type}", "client")
    samples = measurements.samples()["kagzi_runs_started_total"]
    assert sum(value for _, value in samples) == 18_000  # type: ignore[misc]
    assert len({labels[0] for labels, _ in samples}) == NAMESPACES + 1
    assert len({labels[1] for labels, _ in samples}) == WORKFLOW_TYPES + 1
    assert len(samples) <= PAIRS + NAMESPACES + 1
