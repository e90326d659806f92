"""What runs wait for from outside, of many runs at once: their open waits, and nothing else."""

from kagzi.core.pages.signal_waits import WAITS_OF_A_RUN, SignalWait
from kagzi.core.records import Payload

from .verbs import StoreHarness, begin, leased, park, sleep, wait_signal

SCHEMA = Payload(b'{"type":"boolean"}')


async def test_open_waits_in_the_order_of_the_runs(harness: StoreHarness) -> None:
    first, second, busy = [await harness.running() for _ in range(3)]
    since = harness.clock.now()
    await harness.write(wait_signal(first, "approve", input=SCHEMA), begin(first, "other"), sleep(first, "nap", s=60))
    await harness.do(wait_signal(first, "paid", s=90))
    await harness.do(wait_signal(second, "approve"))
    await harness.do(park(second, "approve"))
    await harness.do(begin(busy, "other"))
    run_ids = [second.run.run_id, busy.run.run_id, "no id", first.run.run_id, second.run.run_id]
    assert await harness.store.signal_waits("default", run_ids) == (
        SignalWait(run_id=second.run.run_id, step_id="approve", signal="approve", since=since),
        SignalWait(run_id=first.run.run_id, step_id="approve", signal="approve", since=since, schema=SCHEMA),
        SignalWait(run_id=first.run.run_id, step_id="paid", signal="paid", since=since, until=since + 90_000_000),
    )
    assert await harness.store.signal_waits("elsewhere", run_ids) == ()
    await harness.signal(first.run, "approve")
    await harness.terminate(second.run)
    (left,) = await harness.store.signal_waits("default", run_ids)
    assert left.step_id == "paid"


async def test_of_each_run_no_more_than_so_many(harness: StoreHarness) -> None:
    await harness.start()
    (claimed,) = await harness.claim()
    run = leased(claimed)
    for n in range(WAITS_OF_A_RUN + 2):
        await harness.do(wait_signal(run, "approve", step_id=f"approve#{n}"))
    waits = await harness.store.signal_waits("default", [run.run.run_id])
    assert [wait.step_id for wait in waits] == [f"approve#{n}" for n in range(WAITS_OF_A_RUN)]
