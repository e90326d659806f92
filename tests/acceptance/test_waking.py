"""Nobody has to wait for a backoff of an hour, a sleep of a day or a start of tomorrow: each is woken, and a replay of
the run sees the same times."""

from kagzi import RunStatus
from tests.support.polling import until
from tests.support.timeouts import LOADED_MACHINE

from . import execution_flows as flows
from .cluster import Cluster, until_status


async def test_a_backoff_a_sleep_and_a_delayed_start_are_woken(cluster: Cluster) -> None:
    """The client asks another server than that of the worker, where there are two."""
    worker = await cluster.author(address=cluster.servers[0].grpc)
    async with cluster.client(-1) as client:
        run = await client.start(flows.patient, None, delay="1 day")
        assert await run.status() is RunStatus.SLEEPING
        assert await run.wake()
        await cluster.until_begun(run, "hourly")
        await until_status(run, RunStatus.SLEEPING)
        assert await run.wake("hourly")
        await cluster.until_begun(run, "hourly", times=2)
        await until_status(run, RunStatus.SLEEPING)
        assert await client.wake(run.id, "night")
        await cluster.until_begun(run, "hold")  # in the memory of its worker, which is busy with it

        async def begun() -> bool:
            return "beside" in [step.id for step in await run.steps()]

        await until(begun, what="the sleep beside it is recorded")
        assert await run.wake("beside")
        assert not await run.wake("hourly")
        first = await run.result(timeout=LOADED_MACHINE)
        kinds = [event["kind"] async for event in run.events()]
        worker.kill()
        await cluster.author()
        replayed = await run.fork()
        assert await replayed.result(timeout=LOADED_MACHINE) == first
    attempts, slept, ended = first
    assert (attempts, 0 < ended - slept < 3_600) == (2, True)
    assert (kinds.count("run_woken"), kinds.count("step_woken")) == (1, 3)
    assert cluster.executions(run) == {"hourly": 2, "hold": 1}
