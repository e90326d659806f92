"""Types with limits: nobody spins, and a permit that becomes free is taken at once, here or elsewhere."""

import asyncio
from typing import Any

import pytest

from kagzi.core.error_details import ErrorDetail, ErrorKind
from kagzi.core.errors import InvalidArgument, NotFound
from kagzi.core.records import ClaimedRun, NamespaceRecord
from kagzi.core.run.commands import BeginSleep, BeginStep, CancelRun, FailStep, Park, ReleaseRun
from kagzi.core.run.outcomes import Parked
from kagzi.core.states import RunStatus
from kagzi.core.workflow_types.queues import TypeLimits
from kagzi.engine import Engine, PageAsk
from kagzi.store.protocol import TypeKey
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import (
    Exchange,
    MovableClock,
    RecordingOutlet,
    TroubledStore,
    complete,
    leased,
    start,
    status_of,
    until,
    worker,
)

HELLO = TypeKey("default", "hello")


async def rested(engine: Engine) -> None:
    """Nothing counts as pending, and nothing is being claimed."""

    async def nothing() -> bool:
        return not engine._matcher._pending and engine._matcher._at_rest.is_set()

    await until(nothing)


async def limited(engine: Engine, **limits: Any) -> None:
    await engine.queues.update("default", "hello", TypeLimits(**limits), limits)


async def end(session: Any, outlet: RecordingOutlet, number: int, run: ClaimedRun) -> None:
    await session.submit([(number, complete(run))])
    await outlet.answer_to(number)


async def test_a_limited_type_is_not_claimed_again_and_again(engine: Engine, store: TroubledStore) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello"), (), outlet)
    await rested(engine)
    await limited(engine, max_running=1)
    for _ in range(4):
        await engine.runs.start(start())
    (first,) = await outlet.until_received(1)
    await rested(engine)
    claims = store.calls["claim"]
    for _ in range(100):
        await asyncio.sleep(0)
    assert store.calls["claim"] == claims
    await end(session, outlet, 1, first)
    await outlet.until_received(2)
    await rested(engine)
    assert store.calls["claim"] <= claims + 2
    assert len(outlet.claimed_runs) == 2


async def test_a_start_into_a_limited_type_gives_its_slot_back(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello", slots=3), (), outlet)
    await rested(engine)
    await engine.queues.pause("default", "hello")
    await rested(engine)
    started = [await engine.runs.start(start()) for _ in range(5)]
    assert {each.status for each in started} == {RunStatus.PENDING}
    await rested(engine)
    assert session.offerable() == 3
    await engine.queues.resume("default", "hello")
    await outlet.until_received(3)


async def test_the_matcher_claims_again_when_the_rate_allows(engine: Engine, store: TroubledStore) -> None:
    outlet = RecordingOutlet()
    await engine.sessions.open(worker("hello"), (), outlet)
    await limited(engine, starts_per_second=20.0)
    for _ in range(3):
        await engine.runs.start(start())
    await outlet.until_received(3)
    await rested(engine)
    assert store.calls["claim"] < 12


@pytest.mark.parametrize("how", ["park", "pause", "release", "cancel", "terminate"])
async def test_whoever_stops_running_gives_a_permit(engine: Engine, how: str) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello"), (), outlet)
    await limited(engine, max_running=1)
    first = await engine.runs.start(start())
    (run,) = await outlet.until_received(1)
    second = await engine.runs.start(start(priority=1))
    await rested(engine)
    if how == "terminate":
        await engine.control.terminate("default", run_id=first.run_id)
    elif how == "release":
        await engine._leases.release([session.leased[run.run.run_id].leased])
    else:
        leased: dict[str, Any] = {"run": run.run, "lease": run.lease}
        commands: list[Any] = {
            "park": [
                BeginSleep(step_id="nap", name="nap", duration_us=60_000_000, **leased),
                Park(waits=("nap",), known_seq=0, **leased),
            ],
            "pause": [ReleaseRun(**leased)],
            "cancel": [CancelRun(error=ErrorDetail(message="enough"), **leased)],
        }[how]
        if how == "pause":
            await engine.control.pause("default", run_id=first.run_id)
        if how == "cancel":
            await engine.control.cancel("default", run_id=first.run_id)
        await session.submit(list(enumerate(commands)))
        await outlet.answer_to(len(commands) - 1)
    await outlet.until_received(2)
    assert await status_of(engine, second.run_id) == RunStatus.RUNNING


async def test_a_permit_of_a_namespace(engine: Engine, store: TroubledStore, clock: MovableClock) -> None:
    """Another type waits for it."""
    await store.put_namespace(NamespaceRecord(namespace="default", running_runs_limit=1), clock.now())
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello", "other"), (), outlet)
    await engine.runs.start(start())
    (run,) = await outlet.until_received(1)
    await engine.runs.start(start(workflow_type="other"))
    await rested(engine)
    await end(session, outlet, 1, run)
    assert (await outlet.until_received(2))[1].workflow_type == "other"


async def test_a_permit_that_becomes_free_at_another_server(make_engine: MakeEngine, store: TroubledStore) -> None:
    exchange = Exchange()
    here, there = (make_engine(exchange.bus(), poll_interval_ms=600_000) for _ in range(2))
    for engine in (here, there):
        await engine.start()
    near, far = RecordingOutlet(), RecordingOutlet()
    session = await here.sessions.open(worker("hello", slots=1, worker_id="near"), (), near)
    await limited(here, max_running=1)
    await here.runs.start(start())
    (run,) = await near.until_received(1)
    await there.sessions.open(worker("hello", slots=5, worker_id="far"), (), far)
    await there.runs.start(start(version="1"))
    await rested(there)
    await session.update(drain=True, completed_delta=0, failed_delta=0)  # nobody here takes more
    await end(session, near, 1, run)
    await far.until_received(1)


# --- operators --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ({"max_running": 0}, "max_running"),
        ({"max_running_per_key": -1}, "max_running_per_key"),
        ({"starts_per_second": 0.0}, "starts_per_second"),
        ({"starts_per_second_per_key": float("nan")}, "starts_per_second_per_key"),
        ({"when_full": "reject"}, "when_full"),
        ({"when_full": "explode"}, "when_full"),
    ],
)
async def test_limits_that_mean_nothing_are_refused(engine: Engine, limits: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        await limited(engine, **limits)
    assert refused.value.field == field
    with pytest.raises(NotFound):
        await engine.queues.get("default", "hello")


async def test_only_what_is_named_changes(engine: Engine) -> None:
    await limited(engine, max_running=3, when_full="reject")
    await limited(engine, starts_per_second=1.0)
    await engine.queues.pause("default", "hello")
    queue = await engine.queues.get("default", "hello")
    assert queue.limits == TypeLimits(paused=True, max_running=3, starts_per_second=1.0, when_full="reject")
    await engine.queues.update("default", "hello", TypeLimits(), ())
    assert (await engine.queues.get("default", "hello")).limits == TypeLimits(paused=True)
    with pytest.raises(InvalidArgument, match="fields names 'versions'"):
        await engine.queues.update("default", "hello", TypeLimits(), ["versions"])


async def test_types_page_by_page(engine: Engine) -> None:
    for name in ("a", "b", "c"):
        await engine.queues.pause("default", name)
    first = await engine.queues.list("default", PageAsk(2))
    assert [record.workflow_type for record in first.rows] == ["a", "b"]
    second = await engine.queues.list("default", PageAsk(2, first.next_token))
    assert [record.workflow_type for record in second.rows] == ["c"]
    back = await engine.queues.list("default", PageAsk(2, second.prev_token))
    assert [record.workflow_type for record in back.rows] == ["a", "b"]


async def test_a_queue_that_nobody_serves(engine: Engine) -> None:
    await engine.runs.start(start())
    (standing,) = await engine.queues.depths("default")
    assert (standing.depth.waiting, standing.workers, standing.free_slots) == (1, 0, 0)
    assert standing.limit_reason == ""
    (empty,) = await engine.queues.depths("default", "unheard")
    assert (empty.depth.waiting, empty.depth.oldest_since) == (0, None)


async def test_a_start_on_another_server_replaces_a_run_that_backs_off(make_engine: MakeEngine) -> None:
    exchange = Exchange()
    here, there = (make_engine(exchange.bus(), poll_interval_ms=600_000) for _ in range(2))
    await here.start()
    await there.start()
    only_the_latest = TypeLimits(max_running_per_key=1, when_full="cancel-oldest")
    await here.queues.update("default", "hello", only_the_latest, ())
    outlet = RecordingOutlet()
    session = await here.sessions.open(worker("hello"), (), outlet)
    await here.runs.start(start(concurrency_key="a"))
    (old,) = await outlet.until_received(1)
    session.received([leased(old)])
    of_run = {"run": old.run, "lease": old.lease}
    failure = ErrorDetail(kind=ErrorKind.TRANSIENT, message="down", retry_after_ms=3_600_000)
    begun = BeginStep(**of_run, step_id="publish", name="publish")
    failed = FailStep(**of_run, step_id="publish", attempt=1, error=failure)
    parked = Park(**of_run, waits=("publish",), known_seq=99)
    await session.submit([(1, begun), (2, failed), (3, parked)])
    assert isinstance(await outlet.answer_to(3), Parked)
    assert await status_of(here, old.run.run_id) is RunStatus.SLEEPING
    new = await there.runs.start(start(concurrency_key="a"))
    runs = await outlet.until_received(2)
    assert (runs[1].run, runs[1].cancel_requested) == (old.run, True), "it comes back to clean up, before the new one"
    stopped = ErrorDetail(kind=ErrorKind.CANCELLED, message="replaced")
    await session.submit([(4, CancelRun(run=old.run, lease=runs[1].lease, error=stopped))])
    assert (await outlet.until_received(3))[2].run.run_id == new.run_id
    assert await status_of(here, old.run.run_id) is RunStatus.CANCELLED
