"""Large results and signals beside a neighbour on the same worker, and a worker that sends and does not read: the
server stays within 256 MB, streams do not break, and the neighbour keeps its pace."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from kagzi import Kagzi, Run
from kagzi.v1 import common_pb2
from kagzi.v1 import worker_pb2 as pb
from kagzi.v1.worker_pb2_grpc import WorkerServiceStub
from tests.acceptance import size_flows as flows
from tests.acceptance.cluster import Cluster
from tests.support.polling import until
from tests.support.processes import Process, Processes

from .figures import Figures, number

CHILDREN = int(number("SIZES_CHILDREN", 200))
SIGNALS = int(number("SIZES_SIGNALS", 100))
SENT_BYTES = int(number("SIZES_SENT_MB", 25)) * 1_000_000
SERVER_MB = 256
# What a server of that size is given: it has a process, messages in the making and a batch besides.
LIMITS = ("--journal-total-bytes", "33554432", "--unread-total-bytes", "16777216")
PACE_S = 0.02
BEFORE_S = 5.0
PACE_KEPT = 0.5  # of the pace before, at least: worker, server and disk are shared with what is done to them
STORES = ("sqlite", "postgres")


@asynccontextmanager
async def one_cluster(store: str, request: pytest.FixtureRequest, directory: Path) -> AsyncIterator[Cluster]:
    database = f"sqlite:///{directory}/kagzi.db" if store == "sqlite" else request.getfixturevalue("postgres_url")
    async with Processes(directory) as processes:
        cluster = Cluster(processes, database, directory, *LIMITS, "--lease", "15s", "--heartbeat", "5s")
        await cluster.add_server()
        yield cluster


def peak_mb(process: Process) -> float:
    """The most memory it has ever had."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return round(int(line.split()[1]) / 1_000, 1)


class Neighbour:
    """Small steps, one after the other; how many a second."""

    def __init__(self, cluster: Cluster, run: Run[Any]) -> None:
        self._cluster = cluster
        self.run = run

    @classmethod
    async def begin(cls, cluster: Cluster, client: Kagzi) -> "Neighbour":
        neighbour = cls(cluster, await client.start(flows.neighbour, PACE_S))
        await until(lambda: cluster.steps_begun(neighbour.run), every_s=0.1)
        return neighbour

    async def pace(self, until: Any) -> tuple[float, float]:
        """Steps a second, and seconds, until this is done."""
        begun, at = self._cluster.steps_begun(self.run), time.monotonic()
        await until
        seconds = time.monotonic() - at
        return (self._cluster.steps_begun(self.run) - begun) / seconds, seconds


async def beside(cluster: Cluster, client: Kagzi, worker: Process, run: Run[int], expected: int) -> dict[str, Any]:
    """Figures of this run with a neighbour beside it. `run` has not begun: its signal, or its start, comes from
    here."""
    assert await run.result(timeout="5m") == expected
    return {
        "server_peak_mb": peak_mb(cluster.servers[0]),
        "worker_peak_mb": peak_mb(worker),
        "reconnects": worker.output.count("interrupted"),
    }


def check(figures: dict[str, Any]) -> None:
    assert figures["reconnects"] == 0
    assert figures["server_peak_mb"] < SERVER_MB
    assert figures["steps_per_s_during"] > PACE_KEPT * figures["steps_per_s_before"]


@pytest.mark.parametrize("kind", ["children", "signals"])
@pytest.mark.parametrize("store", STORES)
@pytest.mark.timeout(900)
async def test_large_results(store: str, kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    figures = Figures("sizes")
    if figures.known(f"{kind} on {store}"):
        return
    async with one_cluster(store, request, tmp_path) as cluster, cluster.client() as client:
        if kind == "signals":  # they wait before anybody works
            run = await client.start(flows.gathers_signals, SIGNALS)
            for _ in range(SIGNALS):
                await run.signal(flows.blob, "x" * flows.LARGE)
            await run.pause()
        worker = await cluster.worker(module="tests.acceptance.size_flows")
        neighbour = await Neighbour.begin(cluster, client)
        before, _ = await neighbour.pace(asyncio.sleep(BEFORE_S))
        if kind == "signals":
            await run.resume()
            count = SIGNALS
        else:
            run = await client.start(flows.gathers_children, CHILDREN)
            count = CHILDREN
        ended = asyncio.create_task(beside(cluster, client, worker, run, count * flows.LARGE))
        during, seconds = await neighbour.pace(ended)
        await neighbour.run.terminate()
        measured = {
            "count": count,
            "bytes_each": flows.LARGE,
            "seconds": round(seconds, 1),
            "steps_per_s_before": round(before, 1),
            "steps_per_s_during": round(during, 1),
            **ended.result(),
        }
    figures.put(f"{kind} on {store}", measured)
    check(measured)


@pytest.mark.parametrize("kind", ["acknowledgements", "refusals", "pages"])
@pytest.mark.parametrize("store", STORES)
@pytest.mark.timeout(300)
async def test_a_worker_that_does_not_read(
    store: str, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    figures = Figures("sizes")
    if figures.known(f"{kind} unread on {store}"):
        return
    async with one_cluster(store, request, tmp_path) as cluster, cluster.client() as client:
        worker = await cluster.worker(module="tests.acceptance.size_flows")
        neighbour = await Neighbour.begin(cluster, client)
        before, _ = await neighbour.pace(asyncio.sleep(BEFORE_S))
        await client.start("deaf", None)
        async with grpc.aio.insecure_channel(cluster.servers[0].grpc) as channel:
            attack = asyncio.create_task(_send(channel, kind))
            during, seconds = await neighbour.pace(attack)
            sent, blocked = attack.result()
            peak = peak_mb(cluster.servers[0])
        await neighbour.run.terminate()
        measured = {
            "sent_mb": round(sent / 1_000_000, 1),
            "writes_blocked": blocked,
            "seconds": round(seconds, 1),
            "server_peak_mb": peak,
            "steps_per_s_before": round(before, 1),
            "steps_per_s_during": round(during, 1),
            "reconnects": worker.output.count("interrupted"),
        }
    figures.put(f"{kind} unread on {store}", measured)
    check(measured)


async def _send(channel: grpc.aio.Channel, kind: str) -> tuple[int, bool]:
    """Operations until so many bytes have left, or none do any more. Nothing is read after the run has come."""
    call: Any = WorkerServiceStub(channel).Session()
    register = pb.RegisterRequest(workflow_types=["deaf"], max_concurrent=10)
    await call.write(pb.SessionRequest(hello=pb.SessionHello(register=register)))
    task: pb.Task | None = None
    while task is None:
        response = await call.read()
        task = response.tasks[0] if response.tasks else None
    head = {"run_id": task.run_id, "lease": task.lease}
    last = 0
    if kind == "pages":
        for step in range(4):
            output = common_pb2.Payload(data=b"x" * flows.LARGE)
            begin = pb.Operation(id=last + 1, begin_step=pb.BeginStepOperation(step_id=f"s{step}", attempt=1))
            done = pb.CompleteStepOperation(step_id=f"s{step}", attempt=1, output=output)
            operations = [begin, pb.Operation(id=last + 2, complete_step=done)]
            last += 2
            await call.write(pb.SessionRequest(runs=[pb.RunOperations(**head, operations=operations)]))
    sent = 0
    while sent < SENT_BYTES:
        operations = []
        for _ in range(1_000):
            last += 1
            operations.append(_operation(last, kind))
        message = pb.SessionRequest(runs=[pb.RunOperations(**head, operations=operations)])
        try:
            async with asyncio.timeout(20):
                await call.write(message)
        except TimeoutError:
            return sent, True
        sent += message.ByteSize()
    await asyncio.sleep(10)
    return sent, False


def _operation(id: int, kind: str) -> pb.Operation:
    if kind == "pages":
        return pb.Operation(id=id, fetch_results=pb.FetchResultsOperation())
    if kind == "refusals":
        return pb.Operation(id=id, complete_step=pb.CompleteStepOperation(step_id="never begun", attempt=1))
    return pb.Operation(id=id, set_status=pb.SetStatusOperation(text="still here"))
