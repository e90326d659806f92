"""What one caller asks for costs the others a bounded number of rows, statements and steps, however much it is."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from kagzi.core import limits
from kagzi.core.errors import InvalidArgument
from kagzi.core.records import Lease, RunEnd, RunKey, RunLease
from kagzi.core.schedules.schedule import ScheduleSpec
from kagzi.core.states import RunStatus
from kagzi.core.times import US_PER_S
from kagzi.engine import Engine
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import (
    Barrier,
    Exchange,
    RecordingOutlet,
    TroubledStore,
    complete,
    start,
    until,
    worker,
)

WAITS = 2_000
ENDINGS = 20


def nobodys(count: int, namespace: str = "default") -> list[RunLease]:
    return [RunLease(RunKey(namespace, f"01890000-0000-7000-8000-{n:012}"), Lease(1, 1)) for n in range(count)]


async def beat(engine: Engine, leased: Sequence[RunLease], namespace: str = "default") -> tuple[RunLease, ...]:
    answer = await engine.workers.heartbeat(
        namespace, "w", active_count=0, completed_delta=0, failed_delta=0, leased=leased
    )
    return answer.lost


class Watched:
    """How many leases, or runs, each call of a verb names."""

    def __init__(self, store: TroubledStore, verb: str) -> None:
        self.sizes: list[int] = []
        real = getattr(store._store, verb)

        async def call(items: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
            self.sizes.append(len(items))
            return await real(items, *args, **kwargs)

        setattr(store._store, verb, call)


# --- heartbeats -------------------------------------------------------------------------------------------------------


async def test_a_heartbeat_names_no_more_leases_than_a_worker_may_hold(engine: Engine) -> None:
    session = await engine.sessions.open(worker("hello", worker_id="w"), (), RecordingOutlet())
    too_many = nobodys(limits.HEARTBEAT_LEASES + 1)
    for call in (
        beat(engine, too_many),
        session.heartbeat(too_many),
        engine.sessions.open(worker("hello", worker_id="other"), too_many, RecordingOutlet()),
    ):
        with pytest.raises(InvalidArgument, match=f"the limit is {limits.HEARTBEAT_LEASES}"):
            await call


async def test_the_leases_of_a_heartbeat_are_renewed_a_few_at_a_time(engine: Engine, store: TroubledStore) -> None:
    await engine.sessions.open(worker("hello", worker_id="w"), (), RecordingOutlet())
    renewed = Watched(store, "renew")
    named = nobodys(limits.HEARTBEAT_LEASES)
    assert set(await beat(engine, named)) == set(named)
    assert sum(renewed.sizes) == len(named)
    assert max(renewed.sizes) <= limits.LEASES_AT_ONCE


async def test_one_statement_renews_at_a_time_and_other_namespaces_take_turns(
    engine: Engine, store: TroubledStore
) -> None:
    for namespace in ("default", "quiet"):
        await engine.sessions.open(worker("hello", worker_id="w", namespace=namespace), (), RecordingOutlet())
    store.before["renew"] = barrier = Barrier()
    greedy = [asyncio.create_task(beat(engine, nobodys(limits.LEASES_AT_ONCE * 4))) for _ in range(16)]
    await barrier.arrived.wait()
    other = asyncio.create_task(beat(engine, nobodys(1, "quiet"), "quiet"))
    await asyncio.sleep(0)  # it is in line now
    before = store.calls["renew"]
    assert before == 1, "the others wait in the engine, not in the store, where writes would wait behind them"
    order: list[int] = []
    other.add_done_callback(lambda _: order.append(store.calls["renew"]))
    barrier.open()
    await asyncio.gather(other, *greedy)
    assert order[0] <= before + 3, "a heartbeat of another namespace waited for more than its turn"
    assert store.calls["renew"] == 16 * 4 + 1


# --- schedules --------------------------------------------------------------------------------------------------------


async def test_a_preview_of_rare_times_stops_searching_and_says_so(engine: Engine) -> None:
    rare = ScheduleSpec(workflow_type="hello", cron_expr="0 0 * 2 MON#5")  # a leap year that begins on a Thursday
    few = await engine.schedules.preview("default", "", rare, count=10, after=0)
    assert len(few) == 10
    with pytest.raises(InvalidArgument, match=r"only \d+ times were found within") as refusal:
        await engine.schedules.preview("default", "", rare, count=limits.SCHEDULE_PREVIEW, after=0)
    assert refusal.value.field == "count"
    often = ScheduleSpec(workflow_type="hello", cron_expr="* * * * *")
    assert len(await engine.schedules.preview("default", "", often, count=limits.SCHEDULE_PREVIEW, after=0)) == 1_000


async def test_a_backfill_of_rare_times_stops_searching(engine: Engine) -> None:
    rare = ScheduleSpec(workflow_type="hello", cron_expr="0 0 * 2 MON#5")
    record = await engine.schedules.create("default", "rare", rare)
    end = record.created_at + 6_000 * 365 * 86_400 * US_PER_S
    with pytest.raises(InvalidArgument, match="steps to search"):
        await engine.schedules.backfill("default", "rare", 0, end)


# --- waits ------------------------------------------------------------------------------------------------------------


async def test_an_end_elsewhere_costs_one_read_of_that_run_whoever_else_is_waited_for(
    make_engine: MakeEngine, store: TroubledStore
) -> None:
    exchange = Exchange()
    here, there = (make_engine(exchange.bus(), poll_interval_ms=600_000) for _ in range(2))
    await here.start()
    await there.start()
    outlet = RecordingOutlet()
    session = await here.sessions.open(worker("hello", slots=ENDINGS), (), outlet)
    runs = await outlet_runs(here, outlet)
    sleeping = [(await here.runs.start(start(workflow_type="nobody"))).run_id for _ in range(50)]
    others = [f"01890000-0000-7000-8000-{n:012}" for n in range(WAITS)]
    delivered: dict[str, RunStatus] = {}

    def deliver(endings: Sequence[RunEnd], not_found: Sequence[str]) -> None:
        delivered.update({end.run.run_id: end.status for end in endings})

    waits = there.runs.open_waits("default", deliver)
    waits.add([run.run.run_id for run in runs] + sleeping)
    await settled(there)
    # As if they were live runs: what they are makes no difference to who is looked up.
    for run_id in others:
        there._waits._waiting.setdefault(RunKey("default", run_id), []).append(waits)
    reads = Watched(store, "endings_of")
    for number, run in enumerate(runs):
        await session.submit([(number, complete(run))])
        await outlet.answer_to(number)

    async def all_delivered() -> bool:
        return len(delivered) == ENDINGS

    await until(all_delivered)
    assert set(delivered.values()) == {RunStatus.COMPLETED}
    assert sum(reads.sizes) <= 2 * ENDINGS, f"{ENDINGS} ends made the other server look at {sum(reads.sizes)} runs"
    assert len(reads.sizes) <= ENDINGS + 1


async def test_a_start_that_replaces_another_run_reads_none(engine: Engine, store: TroubledStore) -> None:
    ended: list[RunEnd] = []
    waits = engine.runs.open_waits("default", lambda endings, _: ended.extend(endings))
    first = await engine.runs.start(start(workflow_id="mine"))
    waits.add([first.run_id])
    waits.add([(await engine.runs.start(start())).run_id for _ in range(20)])
    await settled(engine)
    reads = Watched(store, "endings_of")
    await engine.runs.start(start(workflow_id="mine", on_conflict="replace"))

    async def delivered() -> bool:
        return bool(ended)

    await until(delivered)
    assert [end.run.run_id for end in ended] == [first.run_id]
    assert reads.sizes == []  # how it ended is among the effects


async def outlet_runs(engine: Engine, outlet: RecordingOutlet) -> list[Any]:
    for _ in range(ENDINGS):
        await engine.runs.start(start())
    return list(await outlet.until_received(ENDINGS))


async def settled(engine: Engine) -> None:
    async def has_polled() -> bool:
        return not engine._waits._to_read and not engine._waits._work.is_set()

    await until(has_polled)
    await asyncio.sleep(0)
