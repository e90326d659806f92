"""Runs that wait behind generators, queues and agents sleep without a worker, and go on after kill -9. A worker that
was stopped for longer than its lease begins nothing of what others have by then."""

import asyncio
import re

from kagzi import RunStatus

from . import park_flows
from .cluster import TIMEOUT_S, Cluster, last_part, until_status
from .flows import tries_for_ever

SERVER_OPTIONS = (
    "--reconnect-grace",
    "500ms",
)
RUNS = 20
AGENT = ["model", "model", "send"]


async def test_it_sleeps_until_its_signal_comes_and_goes_on_elsewhere(cluster: Cluster) -> None:
    module = park_flows.__name__
    worker = await cluster.worker(module=module)
    async with cluster.client() as client:
        runs = [
            await client.start(park_flows.behind_a_generator),
            await client.start(park_flows.support, "may I?"),
            await client.start(park_flows.streamed_support, "may I?"),
        ]
        for run in runs:
            await until_status(run, RunStatus.SLEEPING, timeout_s=TIMEOUT_S)
            info = await run.info()
            assert info.wait_reason == "signal"
            assert [last_part(wait) for wait in info.waits] == ["approved"]
        worker.kill()
        await worker.wait()
        await cluster.worker(module=module)
        for run in runs:
            await run.signal(park_flows.approved, True)
        results = [await run.result(timeout="60s") for run in runs]
    assert results == [True, "refund: granted", "refund: granted"]
    executed = [cluster.executions(run) for run in runs]
    assert [sorted(map(last_part, steps)) for steps in executed] == [["after", "before"], AGENT, AGENT]
    assert {count for steps in executed for count in steps.values()} == {1}


async def test_a_worker_that_was_stopped_begins_nothing_of_what_others_have(cluster: Cluster) -> None:
    stopped = await cluster.worker()
    async with cluster.client() as client:
        runs = await asyncio.gather(*(client.start(tries_for_ever) for _ in range(RUNS)))
        for run in runs:
            await cluster.until_begun(run, "try", times=3)  # from now on most of them wait for their next try
        stopped.pause()
        heir = await cluster.worker()
        taken = {run.id for run in runs}
        await cluster.until(
            lambda entries: taken <= {entry.run_id for entry in entries if entry.pid == heir.pid},
            "all runs in the hands of the other worker",
        )
        before = sum(entry.pid == stopped.pid for entry in cluster.ledger.entries())
        stopped.resume()
        for run in runs:
            await stopped.wait_for(re.compile(f"{run.id} is abandoned"))
        after = sum(entry.pid == stopped.pid for entry in cluster.ledger.entries())
        await asyncio.gather(*(run.cancel() for run in runs))
    print(f"bodies begun after the lease had ended: {after - before}")
    assert after == before
