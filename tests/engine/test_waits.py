"""Waiting for the end of runs: subscribed before looked, and told by whoever ends them."""

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest

from kagzi.core import limits
from kagzi.core.error_details import ErrorDetail
from kagzi.core.errors import InvalidArgument, NotFound, ResourceExhausted
from kagzi.core.records import Lease, Payload, RunEnd, RunKey, RunLease
from kagzi.core.run.commands import FailRun
from kagzi.core.states import RunStatus
from kagzi.engine import Engine
from kagzi.engine.matching.lease_registry import LeaseRegistry
from kagzi.engine.services.waits import WaitHub
from kagzi.store.protocol import Store
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import (
    TIMEOUT_S,
    Barrier,
    RecordingOutlet,
    TroubledStore,
    complete,
    start,
    worker,
)

NOBODY = "01890000-0000-7000-8000-000000000000"


async def test_a_run_started_here_is_waited_for_without_a_read(engine: Engine, store: TroubledStore) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello"), (), outlet)
    started = await engine.runs.start(start())
    wait = asyncio.create_task(engine.runs.wait("default", run_id=started.run_id, timeout_ms=60_000))
    (run,) = await outlet.until_received(1)
    await session.submit([(1, complete(run, b"42"))])
    end = await asyncio.wait_for(wait, TIMEOUT_S)
    assert end == RunEnd(run=run.run, status=RunStatus.COMPLETED, output=Payload(b"42"))
    assert store.calls["endings_of"] == 0


async def test_an_end_between_subscribing_and_reading_is_delivered_once(
    make_engine: MakeEngine, store: TroubledStore
) -> None:
    first, second = make_engine(), make_engine()
    await first.start()
    await second.start()
    outlet = RecordingOutlet()
    session = await second.sessions.open(worker("hello"), (), outlet)
    started = await first.runs.start(start())
    second._matcher.mark_namespace("default")
    (run,) = await outlet.until_received(1)
    delivered: list[RunEnd] = []

    def deliver(endings: Sequence[RunEnd], not_found: Sequence[str]) -> None:
        delivered.extend(endings)

    store.before["endings_of"] = barrier = Barrier()
    waits = second.runs.open_waits("default", deliver)
    waits.add([started.run_id])
    await barrier.arrived.wait()
    await session.submit([(1, complete(run))])
    await outlet.answer_to(1)
    assert [end.status for end in delivered] == [RunStatus.COMPLETED]
    barrier.open()
    again = await asyncio.wait_for(second.runs.wait("default", run_id=started.run_id, timeout_ms=60_000), TIMEOUT_S)
    assert isinstance(again, RunEnd)
    assert len(delivered) == 1
    assert waits.ids == set()


async def test_an_ended_run_is_answered_at_once_by_either_name(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello"), (), outlet)
    started = await engine.runs.start(start(workflow_id="mine"))
    (run,) = await outlet.until_received(1)
    error = ErrorDetail(message="broken", type="ValueError")
    await session.submit([(1, FailRun(run=run.run, lease=run.lease, error=error))])
    await outlet.answer_to(1)
    for name in ({"run_id": started.run_id}, {"workflow_id": "mine"}):
        end = await engine.runs.wait("default", timeout_ms=0, **name)
        assert isinstance(end, RunEnd)
        assert end.status is RunStatus.FAILED
        assert end.error is not None
        assert end.error.message == "broken"


async def test_a_wait_that_times_out_answers_the_status(engine: Engine) -> None:
    started = await engine.runs.start(start())
    assert await engine.runs.wait("default", run_id=started.run_id, timeout_ms=20) is RunStatus.PENDING


async def test_unknown_runs_are_not_found_also_those_of_other_namespaces(engine: Engine) -> None:
    started = await engine.runs.start(start())
    for run_id in (NOBODY, "no uuid"):
        with pytest.raises(NotFound):
            await engine.runs.wait("default", run_id=run_id, timeout_ms=5_000)
    with pytest.raises(NotFound):
        await engine.runs.wait("another", run_id=started.run_id, timeout_ms=5_000)
    with pytest.raises(InvalidArgument, match="60000"):
        await engine.runs.wait("default", run_id=started.run_id, timeout_ms=60_001)


async def test_many_waits_share_one_call(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, Sequence[str]]] = []
    done = asyncio.Event()

    def deliver(endings: Sequence[RunEnd], not_found: Sequence[str]) -> None:
        calls.append((len(endings), not_found))
        if sum(count for count, _ in calls) == 20:
            done.set()

    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello", slots=100), (), outlet)
    await engine.runs.start_many([start() for _ in range(21)])
    runs = await outlet.until_received(21)
    waits = engine.runs.open_waits("default", deliver)
    waits.add([run.run.run_id for run in runs] + ["no uuid", NOBODY])
    waits.forget([runs[20].run.run_id])
    await session.submit([(number, complete(run)) for number, run in enumerate(runs)])
    async with asyncio.timeout(TIMEOUT_S):
        await done.wait()
    assert (20, ()) in calls
    assert {name for _, names in calls for name in names} <= {"no uuid", NOBODY}
    monkeypatch.setattr(limits, "WAITS_PER_STREAM", 5)
    with pytest.raises(ResourceExhausted, match="limit is 5"):
        waits.add([str(number) for number in range(6)])
    waits.close()


async def test_a_cancelled_run_that_never_began_is_delivered(engine: Engine) -> None:
    started = await engine.runs.start(start())
    wait = asyncio.create_task(engine.runs.wait("default", run_id=started.run_id, timeout_ms=60_000))
    await asyncio.sleep(0)
    assert await engine.control.cancel("default", run_id=started.run_id) is RunStatus.CANCELLED
    end = await asyncio.wait_for(wait, TIMEOUT_S)
    assert isinstance(end, RunEnd)
    assert end.status is RunStatus.CANCELLED


async def test_a_run_replaced_by_a_new_start_is_delivered(engine: Engine) -> None:
    first = await engine.runs.start(start(workflow_id="mine"))
    wait = asyncio.create_task(engine.runs.wait("default", run_id=first.run_id, timeout_ms=60_000))
    await asyncio.sleep(0)
    second = await engine.runs.start(start(workflow_id="mine", on_conflict="replace"))
    assert second.run_id != first.run_id
    end = await asyncio.wait_for(wait, TIMEOUT_S)
    assert isinstance(end, RunEnd)
    assert end.status is RunStatus.CANCELLED


async def test_of_too_many_live_runs_the_oldest_is_looked_up_like_any_other(
    store: TroubledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kagzi.engine.services.waits.LIVE_RUNS", 3)
    hub = WaitHub(cast("Store", store))
    runs = [RunKey("default", f"{NOBODY[:-1]}{number}") for number in range(4)]
    for run in runs:
        hub.started_here(run)
    missing: asyncio.Future[Sequence[str]] = asyncio.get_running_loop().create_future()
    waits = hub.open("default", lambda _, not_found: missing.set_result(not_found))
    waits.add([run.run_id for run in runs])
    looking = asyncio.create_task(hub.run())
    assert await asyncio.wait_for(missing, TIMEOUT_S) == (runs[0].run_id,)
    assert store.calls["endings_of"] == 1
    looking.cancel()


def test_of_too_many_runs_of_unary_workers_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kagzi.engine.matching.lease_registry.UNARY_RUNS", 3)
    registry = LeaseRegistry()
    leases = [RunLease(RunKey("default", f"{number}"), Lease(1, 1)) for number in range(4)]
    for leased in leases:
        registry.add_unary(leased, "hello")
    assert [registry.get(leased.run.run_id, leased.lease) is not None for leased in leases] == [False, True, True, True]
