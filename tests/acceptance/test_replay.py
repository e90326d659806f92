"""Identity and order: concurrent branches with equal names, killed and replayed with other timings, get what is
theirs."""

from tests.support.timeouts import LOADED_MACHINE

from . import flows
from .cluster import Cluster

DELAYS = [[0.02, 0.05, 0.01, 0.6], [0.05, 0.01, 0.03, 0.6], [0.01, 0.04, 0.02, 0.6]]


async def test_branches_with_equal_step_names_keep_their_own_results_after_a_crash(cluster: Cluster) -> None:
    first = await cluster.worker()
    async with cluster.client() as client:
        run = await client.start(flows.two_branches, DELAYS)
        await cluster.until(lambda entries: len(entries) >= 10, "most branches far along")
        first.kill()
        # The other worker is quicker, and so its completions come in another order.
        await cluster.worker(KAGZI_TEST_PACE="0.1")
        assert await run.result(timeout=LOADED_MACHINE) == [[f"{label}{n}" for n in range(4)] for label in "abc"]
    done = [entry.note for entry in cluster.ledger.entries(event="begin") if entry.pid == first.pid]
    again = [entry.note for entry in cluster.ledger.entries(event="begin") if entry.pid != first.pid]
    assert again, "nothing was left for the second worker: this test has shown nothing"
    acknowledged = {f"{label}{n}" for label in "abc" for n in range(4) if f"{label}{n + 1}" in done}
    assert acknowledged, "nothing was acknowledged before the crash"
    assert acknowledged.isdisjoint(again), "an acknowledged step ran again"


async def test_the_order_in_which_results_arrived_is_the_order_of_replay(cluster: Cluster) -> None:
    first = await cluster.worker()
    async with cluster.client() as client:
        run = await client.start(flows.first_of_two)
        await cluster.until(lambda entries: any(entry.step_id == "hold" for entry in entries), "both results")
        first.kill()
        await cluster.worker()
        assert await run.result(timeout=LOADED_MACHINE) == ["y0", "x0"]
