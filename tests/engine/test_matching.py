"""How runs find workers: sync match and its refusals, claims in turn, and the wake-up that must not be lost."""

import asyncio

import pytest

from kagzi.core.errors import AlreadyExists
from kagzi.core.limits import POLL_TYPES
from kagzi.core.records import Lease, RunKey
from kagzi.core.run.outcomes import Existing, Started
from kagzi.core.states import RunStatus
from kagzi.engine import Engine
from kagzi.store.protocol import TypeKey
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import (
    TIMEOUT_S,
    Barrier,
    RecordingOutlet,
    TroubledStore,
    complete,
    leased,
    start,
    status_of,
    until,
    worker,
)


async def idle(engine: Engine, store: TroubledStore) -> None:
    """The first look of a new worker has been made, so that nothing counts as pending."""

    async def has_polled() -> bool:
        return not engine._matcher._pending

    await until(has_polled)


async def test_a_start_is_inserted_as_leased_by_a_waiting_worker(engine: Engine, store: TroubledStore) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello@1", "hello@2"), (), outlet)
    await idle(engine, store)
    claims = store.calls["claim"]
    started = await engine.runs.start(start(input=None, labels={"a": "b"}, workflow_id="mine"))
    (run,) = await outlet.until_received(1)
    assert isinstance(started, Started)
    assert started.status is RunStatus.RUNNING
    assert run.run == RunKey("default", started.run_id)
    assert (run.lease.counter, run.worker_id, run.version) == (1, session.worker_id, "2")
    assert (run.workflow_id, run.labels, run.attempt, run.last_seq) == ("mine", {"a": "b"}, 1, 0)
    assert store.calls["claim"] == claims  # no claim was needed
    await session.submit([(1, complete(run))])
    await outlet.answer_to(1)
    assert await status_of(engine, started.run_id) == RunStatus.COMPLETED


async def test_what_was_pending_goes_to_the_worker_that_comes(engine: Engine) -> None:
    started = await engine.runs.start(start())
    assert started.status is RunStatus.PENDING
    outlet = RecordingOutlet()
    await engine.sessions.open(worker("hello"), (), outlet)
    (run,) = await outlet.until_received(1)
    assert run.run.run_id == started.run_id


async def test_no_more_runs_than_slots_and_the_rest_when_one_is_free(engine: Engine, store: TroubledStore) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello", slots=2), (), outlet)
    await idle(engine, store)
    for _ in range(5):
        await engine.runs.start(start())
    await outlet.until_received(2)
    await asyncio.sleep(0)
    assert len(outlet.claimed_runs) == 2
    for number in range(5):
        run = (await outlet.until_received(number + 1))[number]
        assert len(outlet.claimed_runs) <= number + 2
        await session.submit([(number, complete(run))])
        await outlet.answer_to(number)
    assert len({run.run for run in outlet.claimed_runs}) == 5


async def test_a_slot_is_returned_when_the_start_turns_out_to_exist(engine: Engine, store: TroubledStore) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello", slots=2), (), outlet)
    await idle(engine, store)
    first = await engine.runs.start(start(workflow_id="same"))
    again = await engine.runs.start(start(workflow_id="same"))
    assert isinstance(again, Existing)
    assert again.run_id == first.run_id
    with pytest.raises(AlreadyExists):
        await engine.runs.start(start(workflow_id="same", on_conflict="fail"))
    assert session.offerable() == 1
    assert len(outlet.claimed_runs) == 1


async def test_a_delayed_start_is_not_matched(engine: Engine, store: TroubledStore) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello"), (), outlet)
    await idle(engine, store)
    started = await engine.runs.start(start(delay_us=3_600_000_000))
    assert started.status is RunStatus.SLEEPING
    assert session.offerable() == 10


async def test_a_version_is_matched_only_by_a_worker_that_serves_it(engine: Engine, store: TroubledStore) -> None:
    old, new = RecordingOutlet(), RecordingOutlet()
    await engine.sessions.open(worker("hello@9"), (), old)
    await idle(engine, store)
    waiting = await engine.runs.start(start(version="10"))
    assert waiting.status is RunStatus.PENDING
    await engine.sessions.open(worker("hello@10"), (), new)
    (run,) = await new.until_received(1)
    assert (run.run.run_id, run.version) == (waiting.run_id, "10")
    await idle(engine, store)
    await engine.runs.start(start(version="9"))
    await old.until_received(1)
    await engine.runs.start(start())  # unpinned: the newest version that is served
    assert [run.version for run in await new.until_received(2)] == ["10", "10"]


async def test_a_worker_serves_all_its_types(engine: Engine) -> None:
    # A worker once polled only its first type; runs of the others never started.
    for workflow_type in ("a", "b", "c"):
        for _ in range(3):
            await engine.runs.start(start(workflow_type))
    outlet = RecordingOutlet()
    await engine.sessions.open(worker("a", "b", "c", slots=3), (), outlet)
    runs = await outlet.until_received(3)
    assert {run.workflow_type for run in runs} == {"a", "b", "c"}


async def test_a_flood_of_one_type_does_not_starve_another(engine: Engine) -> None:
    for _ in range(30):
        await engine.runs.start(start("flood"))
    await engine.runs.start(start("rare"))
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("flood", "rare", slots=1), (), outlet)
    for number in range(3):
        run = (await outlet.until_received(number + 1))[number]
        if run.workflow_type == "rare":
            return
        await engine.runs.start(start("flood"))
        await session.submit([(number, complete(run))])
        await outlet.answer_to(number)
    pytest.fail(f"not among the first: {[run.workflow_type for run in outlet.claimed_runs]}")


async def test_a_new_start_does_not_overtake_pending_runs_of_its_worker(engine: Engine, store: TroubledStore) -> None:
    older = await engine.runs.start(start())
    store.before["claim"] = barrier = Barrier()
    outlet = RecordingOutlet()
    await engine.sessions.open(worker("hello", slots=1), (), outlet)
    await barrier.arrived.wait()
    newer = await engine.runs.start(start())
    assert newer.status is RunStatus.PENDING
    barrier.open()
    (run,) = await outlet.until_received(1)
    assert run.run.run_id == older.run_id


async def test_a_new_start_does_not_take_the_slot_from_pending_runs_of_another_type(
    engine: Engine, store: TroubledStore
) -> None:
    await engine.runs.start(start("older"))
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("older", "newer", slots=2), (), outlet)
    await outlet.until_received(1)
    await idle(engine, store)
    store.before["claim"] = barrier = Barrier()
    engine._matcher.mark(TypeKey("default", "older"))
    await barrier.arrived.wait()
    session._max_concurrent = 3
    newer = await engine.runs.start(start("newer"))
    assert newer.status is RunStatus.PENDING
    barrier.open()
    await outlet.until_received(2)


async def test_a_wake_up_that_comes_during_a_claim_is_not_lost(engine: Engine, store: TroubledStore) -> None:
    # The claim reads an empty table, then a run becomes pending, then the claim comes back with nothing.
    store.after["claim"] = barrier = Barrier()
    outlet = RecordingOutlet()
    await engine.sessions.open(worker("hello"), (), outlet)
    await barrier.arrived.wait()
    started = await engine.runs.start(start())
    assert started.status is RunStatus.PENDING
    barrier.open()
    (run,) = await outlet.until_received(1)
    assert run.run.run_id == started.run_id


async def test_idle_slots_and_no_work_cost_no_claims(engine: Engine, store: TroubledStore) -> None:
    outlet = RecordingOutlet()
    await engine.sessions.open(worker("a", "b"), (), outlet)
    await idle(engine, store)
    claims = store.calls["claim"]
    for _ in range(20):
        await asyncio.sleep(0.005)  # real time is the subject: nothing happens in it
    assert store.calls["claim"] == claims


async def test_two_workers_of_one_type_share_the_work(engine: Engine, store: TroubledStore) -> None:
    outlets = [RecordingOutlet(), RecordingOutlet()]
    for outlet in outlets:
        await engine.sessions.open(worker("hello", slots=4), (), outlet)
    await idle(engine, store)
    await engine.runs.start_many([start() for _ in range(8)])
    for outlet in outlets:
        await outlet.until_received(4)
        assert outlet.deliveries == [4]  # many to a message


async def test_a_poll_claims_what_is_pending_even_without_waiting(engine: Engine) -> None:
    registered = await engine.workers.register(worker("hello", "other"))
    started = await engine.runs.start(start("other"))
    claimed = await engine.tasks.poll("default", registered.worker_id, (), max_tasks=5, wait_ms=0)
    assert [run.run.run_id for run in claimed] == [started.run_id]
    assert await engine.tasks.poll("default", registered.worker_id, (), max_tasks=5, wait_ms=0) == ()


async def test_a_waiting_poll_gets_a_run_that_is_started(engine: Engine) -> None:
    registered = await engine.workers.register(worker("hello"))
    poll = asyncio.create_task(
        engine.tasks.poll("default", registered.worker_id, ("hello",), max_tasks=1, wait_ms=9_000)
    )

    async def waiting() -> bool:
        return bool(engine.tasks._polls) and not engine._matcher._pending

    await until(waiting)
    started = await engine.runs.start(start())
    assert started.status is RunStatus.RUNNING
    (run,) = await asyncio.wait_for(poll, TIMEOUT_S)
    assert run.run.run_id == started.run_id
    outcome = await engine.tasks.submit(complete(run))
    assert outcome.status is RunStatus.COMPLETED  # type: ignore[union-attr]


async def test_a_poll_whose_caller_went_away_returns_its_run(engine: Engine, store: TroubledStore) -> None:
    registered = await engine.workers.register(worker("hello"))
    started = await engine.runs.start(start())
    store.after["claim"] = barrier = Barrier()
    poll = asyncio.create_task(engine.tasks.poll("default", registered.worker_id, (), max_tasks=1, wait_ms=9_000))
    await barrier.arrived.wait()
    poll.cancel()
    await asyncio.gather(poll, return_exceptions=True)
    assert await status_of(engine, started.run_id) == RunStatus.RUNNING
    barrier.open()

    async def returned() -> bool:
        return await status_of(engine, started.run_id) == RunStatus.PENDING

    await until(returned)


async def test_a_run_claimed_for_a_session_that_has_closed_is_pending_again(
    engine: Engine, store: TroubledStore
) -> None:
    started = await engine.runs.start(start())
    store.after["claim"] = barrier = Barrier()
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello"), (), outlet)
    await barrier.arrived.wait()
    await session.close()
    barrier.open()

    async def returned() -> bool:
        return await status_of(engine, started.run_id) == RunStatus.PENDING

    await until(returned)
    assert outlet.claimed_runs == []
    assert (await engine.runs.get("default", run_id=started.run_id)).lost_leases == 0


async def test_a_claim_that_fails_gives_its_slots_back(engine: Engine, store: TroubledStore) -> None:
    started = await engine.runs.start(start())
    store.away = True
    store.before["claim"] = barrier = Barrier()
    barrier.open()
    outlet = RecordingOutlet()
    store.away = False
    session = await engine.sessions.open(worker("hello"), (), outlet)
    store.away = True
    await barrier.arrived.wait()
    store.away = False
    (run,) = await outlet.until_received(1)
    assert run.run.run_id == started.run_id
    assert session.offerable() == 9
    assert leased(run).lease == Lease(1, run.lease.nonce)


async def test_every_type_is_claimed_within_a_round_of_polls_by_a_server_without_notifications(
    make_engine: MakeEngine, store: TroubledStore
) -> None:
    """More types than a look tells, in runs that another server started, and no bus between the two."""
    here, deaf = make_engine(poll_interval_ms=600_000), make_engine(poll_interval_ms=600_000)
    await here.start()
    await deaf.start()
    types = [f"type-{number:04}" for number in range(POLL_TYPES + POLL_TYPES // 2)]
    served = types[::50]  # from the first to the last ones
    outlet = RecordingOutlet()
    await deaf.sessions.open(worker(*served, slots=2 * len(served)), (), outlet)
    await idle(deaf, store)
    await asyncio.gather(*(here.runs.start(start(workflow_type)) for workflow_type in types))
    for _ in range(2):
        seen = store.calls["poll"]
        deaf._timers.poll_soon()

        async def has_polled(seen: int = seen) -> bool:
            return store.calls["poll"] > seen and deaf._timers._poll_at > 0

        await until(has_polled)
        await idle(deaf, store)
    assert sorted(run.workflow_type for run in outlet.claimed_runs) == served
