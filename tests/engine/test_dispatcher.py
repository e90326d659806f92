"""One dispatcher: effects reach everybody here, and other servers get what concerns them from the same effects."""

import asyncio
from typing import Any, cast

from kagzi.core.effects import NO_EFFECTS, Effects, LeaseNotice
from kagzi.core.records import Lease, RunEnd, RunKey, RunLease
from kagzi.core.states import RunStatus
from kagzi.engine import Engine
from kagzi.engine.commit.dispatcher import Dispatcher
from kagzi.store.protocol import EndedRun, RemoteNotice, TypeKey
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import Exchange, RecordingOutlet, leased, start, worker

ELSEWHERE = RunLease(RunKey("default", "01890000-0000-7000-8000-000000000001"), Lease(3, 4))
GONE = RunEnd(run=RunKey("default", "01890000-0000-7000-8000-000000000002"), status=RunStatus.CANCELLED)
UNSERVED = TypeKey("default", "served elsewhere")


async def test_other_servers_get_what_concerns_them(make_engine: MakeEngine) -> None:
    exchange = Exchange()
    engine = make_engine(exchange.bus(), poll_interval_ms=600_000)
    await engine.start()
    await engine._wakeups.flush()
    exchange.published.clear()
    engine._dispatcher.dispatch(
        Effects(
            pending=(UNSERVED,),
            notices=(
                LeaseNotice(ELSEWHERE, "cancel_requested", "worker-9", "enough"),
                LeaseNotice(ELSEWHERE, "lease_lost"),  # without a worker: nobody elsewhere is asked
            ),
            ended=(GONE,),
        )
    )
    await engine._wakeups.flush()
    [wake] = exchange.published
    assert wake.pending == {UNSERVED}
    assert wake.ended_runs == {EndedRun(*_key(GONE.run))}
    assert wake.notices == {RemoteNotice("worker-9", *_key(ELSEWHERE.run), "cancel_requested")}


async def test_a_worker_that_is_connected_here_is_notified_here(make_engine: MakeEngine) -> None:
    exchange = Exchange()
    engine = make_engine(exchange.bus(), poll_interval_ms=600_000)
    await engine.start()
    outlet = RecordingOutlet()
    await engine.sessions.open(worker("hello", slots=3), (), outlet)
    for _ in range(2):
        await engine.runs.start(start())
    one, other = map(leased, await outlet.until_received(2))
    await engine._wakeups.flush()
    exchange.published.clear()
    engine._dispatcher.dispatch(
        Effects(
            notices=(
                LeaseNotice(one, "pause_requested", "worker-1", "lunch"),
                LeaseNotice(one, "lease_lost", "worker-1", "it ended"),
                LeaseNotice(other, "lease_lost", "worker-1", "it ended"),
            )
        )
    )
    received = [(notice.leased, notice.kind, notice.reason) for notice in outlet.notices_received]
    assert received == [
        (one, "pause_requested", "lunch"),
        (one, "lease_lost", "it ended"),
        (other, "lease_lost", "it ended"),
    ]
    await engine._wakeups.flush()
    assert [wake for wake in exchange.published if wake.notices] == []


async def test_callers_timers_and_the_cascade_hear_of_what_concerns_them(engine: Engine) -> None:
    started = await engine.runs.start(start(workflow_type="nobody"))
    endings: list[RunEnd] = []
    waits = engine.runs.open_waits("default", lambda some, _: endings.extend(some))
    waits.add((started.run_id,))
    end = RunEnd(run=RunKey("default", started.run_id), status=RunStatus.CANCELLED)
    due_at = engine._due_times._clock.now() + 1_000
    calls_before = engine._cascade._work.is_set()
    engine._dispatcher.dispatch(Effects(ended=(end,), due=(due_at,), children_due=True))
    assert endings == [end]
    assert due_at in engine._due_times
    assert (calls_before, engine._cascade._work.is_set()) == (False, True)


async def test_no_effects_touch_nobody() -> None:
    """By identity: a commit of plain steps costs one comparison."""
    nobody = cast("Any", object())
    dispatcher = Dispatcher(
        clock=nobody,
        registry=nobody,
        matcher=nobody,
        due_times=nobody,
        waits=nobody,
        watching=nobody,
        live_lists=nobody,
        wakeups=nobody,
        served=nobody,
        children_due=asyncio.Event(),
    )
    dispatcher.dispatch(NO_EFFECTS)


def _key(run: RunKey) -> tuple[str, str]:
    return run.namespace, run.run_id
