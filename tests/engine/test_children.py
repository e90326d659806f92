"""A child is a run with a parent: its end wakes the parent, and the parent's end stops it, also when a server dies in
between."""

from typing import Any

from kagzi.core.error_details import ErrorDetail, ErrorKind
from kagzi.core.records import ClaimedRun, Payload, RunEnd, RunFilter, RunKey
from kagzi.core.run.commands import CancelRun, ContinueAsNew, DecideRace, FetchResults, Park, StartChild, StartRun
from kagzi.core.run.outcomes import ChildStarted, Fetched, Parked, Recorded, RunClosed
from kagzi.core.states import RunStatus
from kagzi.engine import Engine, PageAsk, Session
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import (
    Exchange,
    RecordingOutlet,
    TroubledStore,
    complete,
    leased,
    start,
    status_of,
    until,
    worker,
)

CANCELLED = ErrorDetail(kind=ErrorKind.CANCELLED, message="stopped")


def child(run: ClaimedRun, step_id: str = "bill", **fields: Any) -> StartChild:
    begun = StartRun(run=RunKey("default", ""), workflow_id="", workflow_type="bill", request_id="", on_conflict="fail")
    return StartChild(run=run.run, lease=run.lease, step_id=step_id, name=step_id, start=begun, **fields)


def park(run: ClaimedRun, *waits: str, **fields: Any) -> Park:
    return Park(run=run.run, lease=run.lease, waits=waits, known_seq=fields.pop("known_seq", 99), **fields)


async def parent_of(engine: Engine, outlet: RecordingOutlet, *types: str) -> tuple[Session, ClaimedRun]:
    session = await engine.sessions.open(worker(*(types or ("hello", "bill")), slots=100), (), outlet)
    await engine.runs.start(start())
    (run,) = await outlet.until_received(1)
    session.received([leased(run)])
    return session, run


async def started(outlet: RecordingOutlet, operation_id: int) -> str:
    answer = await outlet.answer_to(operation_id)
    assert isinstance(answer, ChildStarted)
    return answer.child_run_id


async def test_a_child_is_assigned_to_a_worker_and_its_end_wakes_the_parent(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session, run = await parent_of(engine, outlet)
    await session.submit([(1, child(run)), (2, park(run, "bill"))])
    child_id = await started(outlet, 1)
    assert isinstance(await outlet.answer_to(2), Parked)
    _, its_child = await outlet.until_received(2)
    assert (its_child.run.run_id, its_child.parent_run_id) == (child_id, run.run.run_id)
    await session.submit([(3, complete(its_child, b"7"))])
    again = (await outlet.until_received(3))[2]
    assert again.run == run.run
    assert again.history.steps[0].output == Payload(b"7")
    page = await engine.runs.list("default", RunFilter(parent_run_id=run.run.run_id), PageAsk())
    assert [row.run.run_id for row in page.rows] == [child_id]


async def test_a_repeated_start_is_the_same_child(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session, run = await parent_of(engine, outlet, "hello")
    await session.submit([(1, child(run))])
    first = await started(outlet, 1)
    await session.submit([(2, child(run))])
    assert await started(outlet, 2) == first


async def test_the_holder_of_a_running_parent_is_notified_of_the_end(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session, run = await parent_of(engine, outlet)
    await session.submit([(1, child(run))])
    _, its_child = await outlet.until_received(2)
    await session.submit([(2, complete(its_child))])
    await outlet.until(
        lambda: [(notice.leased, notice.kind) for notice in outlet.notices_received] == [(leased(run), "result")]
    )
    await session.submit([(3, FetchResults(run=run.run, lease=run.lease, waits=("bill",), known_seq=1))])
    answer = await outlet.answer_to(3)
    assert isinstance(answer, Fetched)
    assert answer.results[0].step_id == "bill"


async def test_a_parent_leased_through_another_server_is_notified_over_the_bus(make_engine: MakeEngine) -> None:
    exchange = Exchange()
    here, there = (make_engine(exchange.bus(), poll_interval_ms=600_000) for _ in range(2))
    await here.start()
    await there.start()
    mine, others = RecordingOutlet(), RecordingOutlet()
    parents, run = await parent_of(here, mine, "hello")
    children = await there.sessions.open(worker("bill"), (), others)
    await parents.submit([(1, child(run))])
    (its_child,) = await others.until_received(1)
    await children.submit([(1, complete(its_child))])
    await mine.until(lambda: [notice.kind for notice in mine.notices_received] == ["result"])


async def test_children_of_a_cancelled_parent_are_cancelled(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session, run = await parent_of(engine, outlet)
    await session.submit([(1, child(run)), (2, child(run, "kept", on_close="abandon"))])
    _, one, other = await outlet.until_received(3)
    await engine.control.cancel("default", run_id=run.run.run_id)
    child_id = await started(outlet, 1)
    kept_id = await started(outlet, 2)
    await outlet.until(lambda: len(outlet.notices_received) >= 2)
    assert {notice.leased.run.run_id for notice in outlet.notices_received} == {run.run.run_id, child_id}
    assert {notice.kind for notice in outlet.notices_received} == {"cancel_requested"}
    stopping = one if one.run.run_id == child_id else other
    await session.submit([(3, CancelRun(run=stopping.run, lease=stopping.lease, error=CANCELLED))])
    await outlet.answer_to(3)
    assert await status_of(engine, child_id) == RunStatus.CANCELLED
    assert await status_of(engine, kept_id) == RunStatus.RUNNING


async def test_grandchildren_are_cancelled_after_the_end_of_the_parent(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session, run = await parent_of(engine, outlet)
    await session.submit([(1, child(run))])
    _, its_child = await outlet.until_received(2)
    await session.submit([(2, child(its_child, "sub"))])
    grandchild_id = await started(outlet, 2)
    await outlet.until_received(3)
    await session.submit([(3, complete(run))])
    await outlet.until(lambda: len(outlet.notices_received) >= 2)
    assert {notice.leased.run.run_id for notice in outlet.notices_received} == {its_child.run.run_id, grandchild_id}


async def test_a_child_nobody_has_begun_is_cancelled_at_once_and_waits_for_it_return(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session, run = await parent_of(engine, outlet, "hello")
    await session.submit([(1, child(run))])
    child_id = await started(outlet, 1)
    await session.submit([(2, complete(run))])
    end = await engine.runs.wait("default", run_id=child_id, timeout_ms=10_000)
    assert isinstance(end, RunEnd)
    assert end.status is RunStatus.CANCELLED


async def test_the_children_of_a_race_s_losers_are_cancelled(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session, run = await parent_of(engine, outlet)
    await session.submit([(1, child(run))])
    _, its_child = await outlet.until_received(2)
    race = DecideRace(run=run.run, lease=run.lease, step_id="race", name="race", winner="0", losers=("bill",))
    await session.submit([(2, race)])
    assert isinstance(await outlet.answer_to(2), Recorded)
    await outlet.until(lambda: [notice.leased for notice in outlet.notices_received] == [leased(its_child)])
    assert outlet.notices_received[0].kind == "cancel_requested"


async def test_a_cascade_interrupted_by_a_crash_is_finished_by_the_next_poll(
    make_engine: MakeEngine, store: TroubledStore
) -> None:
    dying = make_engine(poll_interval_ms=600_000)
    await dying.start()
    outlet = RecordingOutlet()
    session, run = await parent_of(dying, outlet, "hello")
    await session.submit([(number, child(run, f"bill#{number}")) for number in range(1, 6)])
    children = [await started(outlet, number) for number in range(1, 6)]

    async def never() -> None:
        raise RuntimeError("the server died")

    store.before["cascade"] = never
    await session.submit([(9, complete(run))])
    await outlet.answer_to(9)

    async def tried() -> bool:
        return store.calls["cascade"] > 0

    await until(tried)
    await dying.stop()
    assert [await status_of(dying, child_id) for child_id in children] == [RunStatus.PENDING] * 5
    del store.before["cascade"]
    heir = make_engine(poll_interval_ms=600_000)
    await heir.start()

    async def followed() -> bool:
        return all([await status_of(heir, child_id) == RunStatus.CANCELLED for child_id in children])

    await until(followed)


async def test_a_cascade_waits_for_the_store_to_come_back(engine: Engine, store: TroubledStore) -> None:
    outlet = RecordingOutlet()
    session, run = await parent_of(engine, outlet, "hello")
    await session.submit([(1, child(run))])
    child_id = await started(outlet, 1)

    async def break_down() -> None:
        store.away = True

    store.before["cascade"] = break_down
    await session.submit([(2, complete(run))])
    await outlet.answer_to(2)

    async def tried_twice() -> bool:
        return store.calls["cascade"] >= 2

    await until(tried_twice)
    del store.before["cascade"]
    store.away = False

    async def followed() -> bool:
        return await status_of(engine, child_id) == RunStatus.CANCELLED

    await until(followed)


async def test_a_continued_run_is_assigned_and_waits_follow_it(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session, run = await parent_of(engine, outlet, "hello")
    await session.submit([(1, ContinueAsNew(run=run.run, lease=run.lease, new_run_id="", input=Payload(b"2")))])
    closed = await outlet.answer_to(1)
    assert isinstance(closed, RunClosed)
    _, successor = await outlet.until_received(2)
    assert (successor.run.run_id, successor.workflow_id) == (closed.continued_as, run.workflow_id)
    assert successor.input == Payload(b"2")
    end = await engine.runs.wait("default", run_id=run.run.run_id, timeout_ms=10_000)
    assert isinstance(end, RunEnd)
    assert end.continued_as == successor.run.run_id
