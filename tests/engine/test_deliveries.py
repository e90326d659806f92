"""Runs on their way to a worker: over a slow line they may arrive after more than a lease, and are not given to others
meanwhile. On both stores, since these renew and end the leases."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from kagzi.core.records import RunLease
from kagzi.core.states import RunStatus
from kagzi.engine import Engine, Session
from kagzi.engine.matching import deliveries
from kagzi.engine.matching.deliveries import LEASES_TO_ARRIVE, LEASES_TO_SEND, Deliveries
from kagzi.engine.matching.lease_registry import Holding
from kagzi.store.postgres import PostgresStore
from kagzi.store.sqlite import SqliteStore
from kagzi.system import SystemRng
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import MovableClock, RecordingOutlet, TroubledStore, leased, start, until, worker

LEASE_S = 15.0


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    return ":memory:" if request.param == "sqlite" else request.getfixturevalue("migrated_postgres_url")


@pytest.fixture
async def store(database: str) -> AsyncIterator[TroubledStore]:
    real = (
        SqliteStore(database, rng=SystemRng()) if database == ":memory:" else PostgresStore(database, rng=SystemRng())
    )
    await real.open()
    try:
        yield TroubledStore(real)
    finally:
        await real.close()


class Line:
    """Deliveries whose worker and line are as a test says."""

    def __init__(self) -> None:
        self.leased: dict[str, Holding] = {}
        self.renewed: list[Sequence[RunLease]] = []
        self.is_alive: bool | None = True
        self.sent = 0
        self.deliveries = Deliveries(
            self.leased,
            lease_s=LEASE_S,
            renew=self.renewed.append,
            is_alive=lambda: self.is_alive,
            sent=lambda: self.sent,
        )

    def check(self) -> list[str]:
        """The runs whose leases are renewed now."""
        before = len(self.renewed)
        self.deliveries._check()
        return [item.run.run_id for some in self.renewed[before:] for item in some]


@pytest.fixture
async def line(engine: Engine) -> Line:
    """A slow run, one that was sent just now, one that has arrived, and one that is on its way for too long."""
    line = Line()
    now = asyncio.get_running_loop().time()
    ages_s = {"slow": LEASE_S, "new": 0.0, "arrived": 100.0 * LEASE_S, "too-slow": LEASE_S * (LEASES_TO_ARRIVE + 1)}
    outlet = RecordingOutlet()
    for _ in ages_s:
        await engine.runs.start(start())
    await engine.sessions.open(worker("hello"), (), outlet)
    for run, (name, age_s) in zip(await outlet.until_received(len(ages_s)), ages_s.items(), strict=True):
        holding = Holding(leased(run), "hello", None, received=name == "arrived", sent_at=now - age_s)
        holding.leased = RunLease(type(run.run)("default", name), run.lease)
        line.leased[name] = holding
    return line


async def test_what_is_slow_is_renewed_while_its_worker_is_heard_of(line: Line) -> None:
    assert line.check() == ["slow"]
    line.is_alive = False
    assert line.check() == []


async def test_a_worker_that_is_not_read_from_keeps_all_its_runs_while_something_leaves_for_it(line: Line) -> None:
    line.is_alive = None
    assert line.check() == ["slow", "new", "arrived"]
    line.deliveries._progress_at -= LEASES_TO_SEND * LEASE_S + 1
    assert line.check() == []  # nothing has left for so long
    line.sent += 1
    assert line.check() == ["slow", "new", "arrived"]


async def test_nothing_is_checked_once_everything_has_arrived(line: Line) -> None:
    line.check()
    assert line.deliveries._timer is not None
    line.leased = line.deliveries._leased = {"arrived": line.leased["arrived"]}
    assert line.check() == []
    assert line.deliveries._timer is None
    line.is_alive = None
    assert line.check() == ["arrived"]  # its heartbeats are not read either
    assert line.deliveries._timer is not None


async def send_heartbeats(session: Session) -> None:
    while True:
        await session.update(drain=False, completed_delta=0, failed_delta=0)
        await asyncio.sleep(0.05)


async def on_its_way(engine: Engine) -> tuple[str, Session, RecordingOutlet]:
    started = await engine.runs.start(start())
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello", slots=1), (), outlet)
    await outlet.until_received(1)
    return started.run_id, session, outlet


async def test_a_run_that_takes_longer_than_a_lease_to_arrive_is_not_lost(
    make_engine: MakeEngine, store: TroubledStore
) -> None:
    engine = make_engine(lease_ms=2_000, heartbeat_ms=1_000, poll_interval_ms=50)
    await engine.start()
    run_id, session, outlet = await on_its_way(engine)
    heartbeats = asyncio.ensure_future(send_heartbeats(session))
    try:

        async def is_a_lease_later() -> bool:  # three in a lease
            return store.calls["renew"] >= 5

        await until(is_a_lease_later)
    finally:
        heartbeats.cancel()
    run = await engine.runs.get("default", run_id=run_id)
    assert (run.status, run.lost_leases) == (RunStatus.RUNNING, 0)
    assert outlet.notices_received == []
    session.received([leased(outlet.claimed_runs[0])])


async def test_a_run_that_never_arrives_is_given_to_another_worker_in_the_end(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "LEASES_TO_ARRIVE", 1)
    engine = make_engine(lease_ms=1_000, heartbeat_ms=500, poll_interval_ms=50)
    await engine.start()
    run_id, session, outlet = await on_its_way(engine)
    other = RecordingOutlet()
    await engine.sessions.open(worker("hello", slots=1), (), other)
    heartbeats = asyncio.ensure_future(send_heartbeats(session))
    try:
        await outlet.until(lambda: outlet.notices_received)
    finally:
        heartbeats.cancel()
    assert [notice.kind for notice in outlet.notices_received] == ["lease_lost"]
    assert (await engine.runs.get("default", run_id=run_id)).lost_leases == 1


async def test_a_cancellation_is_said_again_when_the_run_has_arrived(engine: Engine) -> None:
    run_id, session, outlet = await on_its_way(engine)
    await engine.control.cancel("default", run_id=run_id, reason="enough")
    assert len(outlet.notices_received) == 1  # the worker does not know the run yet
    await session.heartbeat([leased(outlet.claimed_runs[0])])
    await session.heartbeat([leased(outlet.claimed_runs[0])])
    assert [notice.kind for notice in outlet.notices_received] == ["cancel_requested"] * 2


async def test_explain_says_that_it_is_on_its_way(engine: Engine) -> None:
    run_id, session, outlet = await on_its_way(engine)
    assert (await engine.explanations.explain("default", run_id=run_id)).reason == "running"
    session.leased[run_id].sent_at -= 42
    explained = await engine.explanations.explain("default", run_id=run_id)
    assert explained.reason == "delivering"
    assert f"on its way to worker {session.worker_id}, which has not received it after 42 s" in explained.sentence
    session.received([leased(outlet.claimed_runs[0])])
    assert (await engine.explanations.explain("default", run_id=run_id)).reason == "running"


async def test_a_worker_of_this_server_was_seen_when_it_was_last_heard_of(engine: Engine, clock: MovableClock) -> None:
    _, session, _ = await on_its_way(engine)
    clock.ahead_us += 12_000_000
    before = clock.now()
    await session.update(drain=False, completed_delta=0, failed_delta=0)
    seen = await engine.workers.get("default", session.worker_id)
    assert seen.last_heartbeat_at >= before - 5_000_000  # not when that was last written: 12 s ago
    assert seen.active_count == 1
