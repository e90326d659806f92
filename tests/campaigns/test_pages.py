"""Whatever is asked for at once, a server keeps below 256 MB: the largest pages of every kind for 20 callers, ends of
runs that nobody reads, exports. Peaks are what the kernel says (VmHWM), of a real server on each store."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from kagzi.core import limits
from kagzi.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    common_pb2,
    worker_pb2,
    worker_pb2_grpc,
    workflow_pb2,
    workflow_pb2_grpc,
    workflow_schedule_pb2,
    workflow_schedule_pb2_grpc,
)
from tests.server.stubs import leased
from tests.support.processes import Processes, ServerProcess

from .figures import Figures, number, spread

MOST_MB = 256
CALLERS = int(number("CALLERS", 20))
STEPS = int(number("STEPS", 300))
FAILED = int(number("FAILED", 200))
SCHEDULES = int(number("SCHEDULES", 60))
ENDINGS = int(number("ENDS", 400))
PAGES = int(number("PAGES", 30))  # that each caller reads
CALL_S = 120.0
LARGEST = common_pb2.Payload(data=b"1" * limits.PAYLOAD_BYTES)
CHANNEL = (("grpc.max_receive_message_length", 4 * limits.MESSAGE_HARD_BYTES),)


class Client:
    """On a channel of its own: callers do not share flow control."""

    def __init__(self, address: str) -> None:
        options = (*CHANNEL, ("grpc.use_local_subchannel_pool", 1))
        self.channel = grpc.aio.insecure_channel(address, options=options)
        self.workflows: Any = workflow_pb2_grpc.WorkflowServiceStub(self.channel)
        self.workers: Any = worker_pb2_grpc.WorkerServiceStub(self.channel)
        self.admin: Any = admin_pb2_grpc.AdminServiceStub(self.channel)
        self.schedules: Any = workflow_schedule_pb2_grpc.WorkflowScheduleServiceStub(self.channel)

    async def register(self, workflow_type: str) -> str:
        request = worker_pb2.RegisterRequest(
            workflow_types=[workflow_type], max_concurrent=limits.WORKER_MAX_CONCURRENT
        )
        return (await self.workers.Register(request, timeout=CALL_S)).worker_id

    async def take(self, worker_id: str, workflow_type: str) -> Any:
        await self.workflows.StartWorkflow(
            workflow_pb2.StartWorkflowRequest(workflow_type=workflow_type), timeout=CALL_S
        )
        return await self.workers.PollTask(worker_pb2.PollTaskRequest(worker_id=worker_id), timeout=CALL_S)


def megabytes(server: ServerProcess, field: str) -> float:
    for line in Path(f"/proc/{server.pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1_024
    raise AssertionError(f"no {field}")


def forget_peak(server: ServerProcess) -> None:
    Path(f"/proc/{server.pid}/clear_refs").write_text("5")


async def long_run(client: Client, worker_id: str) -> str:
    """Steps with the largest results that there are."""
    task = await client.take(worker_id, "long")
    for each in range(STEPS):
        step = {**leased(task), "step_id": f"s{each}"}
        await client.workers.BeginStep(worker_pb2.BeginStepRequest(**step), timeout=CALL_S)
        await client.workers.CompleteStep(worker_pb2.CompleteStepRequest(**step, output=LARGEST), timeout=CALL_S)
        if each % 20 == 0:
            await client.workers.Heartbeat(
                worker_pb2.HeartbeatRequest(worker_id=worker_id, leased=[worker_pb2.LeasedRun(**leased(task))]),
                timeout=CALL_S,
            )
    await client.workers.CompleteWorkflow(worker_pb2.CompleteWorkflowRequest(**leased(task)), timeout=CALL_S)
    return task.run_id


async def failed_runs(client: Client, worker_id: str) -> None:
    """Errors as large as they are accepted."""
    error = None
    for _ in range(limits.ERROR_CAUSES):
        error = common_pb2.ErrorDetail(
            message="m" * (limits.ERROR_MESSAGE_BYTES - 1),
            traceback="t" * (limits.ERROR_TRACEBACK_BYTES - 1),
            cause=error,
        )
    for _ in range(FAILED):
        task = await client.take(worker_id, "failing")
        await client.workers.FailWorkflow(worker_pb2.FailWorkflowRequest(**leased(task), error=error), timeout=CALL_S)


async def many_schedules(client: Client) -> None:
    for each in range(SCHEDULES):
        request = workflow_schedule_pb2.CreateWorkflowScheduleRequest(
            schedule_id=f"s{each}",
            workflow_type="nobody",
            interval=Duration(seconds=3_600),
            input=LARGEST,
            enabled=False,
        )
        await client.schedules.CreateWorkflowSchedule(request, timeout=CALL_S)


# --- what is asked for at once ----------------------------------------------------------------------------------------


async def all_pages(ask: Callable[[common_pb2.PageRequest], Awaitable[Any]], field: str, most: int = PAGES) -> int:
    """How many rows; of the first pages only."""
    rows, token = 0, ""
    for _ in range(most):
        answer = await ask(common_pb2.PageRequest(page_size=limits.PAGE_MAX_ROWS, page_token=token))
        rows += len(getattr(answer, field))
        token = answer.page.next_page_token
        if not answer.page.has_more:
            break
    return rows


async def steps(client: Client, run_id: str) -> int:
    return await all_pages(
        lambda page: client.admin.ListSteps(
            admin_pb2.ListStepsRequest(run_id=run_id, include_payloads=True, page=page), timeout=CALL_S
        ),
        "steps",
    )


async def failures(client: Client, _: str) -> int:
    where = workflow_pb2.WorkflowFilter(statuses=[workflow_pb2.WORKFLOW_STATUS_FAILED])
    return await all_pages(
        lambda page: client.workflows.ListWorkflows(
            workflow_pb2.ListWorkflowsRequest(filter=where, page=page), timeout=CALL_S
        ),
        "workflows",
    )


async def schedules(client: Client, _: str) -> int:
    return await all_pages(
        lambda page: client.schedules.ListWorkflowSchedules(
            workflow_schedule_pb2.ListWorkflowSchedulesRequest(include_payloads=True, page=page), timeout=CALL_S
        ),
        "schedules",
    )


async def exports(client: Client, run_id: str) -> int:
    call = client.workflows.ExportWorkflow(workflow_pb2.ExportWorkflowRequest(run_id=run_id), timeout=CALL_S)
    read = 0
    try:
        while read < PAGES and await call.read() is not grpc.aio.EOF:
            read += 1
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:  # who waited too long is told so
            raise
    call.cancel()
    return read


async def unread_endings(client: Client, worker_id: str, server: ServerProcess) -> dict[str, float]:
    """A stream that waits for all of them and is not read until the last one has ended."""
    reader = Client(server.grpc)
    tasks = [await client.take(worker_id, "ending") for _ in range(ENDINGS)]
    call = reader.workflows.WaitStream(timeout=10 * CALL_S)
    await call.write(workflow_pb2.WaitStreamRequest(run_ids=[task.run_id for task in tasks]))
    forget_peak(server)
    before = megabytes(server, "VmRSS")
    for task in tasks:
        request = worker_pb2.CompleteWorkflowRequest(**leased(task), output=LARGEST)
        await client.workers.CompleteWorkflow(request, timeout=CALL_S)
    unread = megabytes(server, "VmHWM")
    await call.done_writing()
    outcomes = set()
    while (answer := await call.read()) is not grpc.aio.EOF:
        for outcome in answer.outcomes:
            assert len(outcome.output.data) == limits.PAYLOAD_BYTES
            outcomes.add(outcome.run_id)
    assert outcomes == {task.run_id for task in tasks}
    await reader.channel.close()
    return {"before_mb": round(before), "unread_peak_mb": round(unread), "peak_mb": round(megabytes(server, "VmHWM"))}


class Neighbour:
    """Somebody else, who starts a run and looks at it every now and then."""

    def __init__(self, address: str) -> None:
        self._client = Client(address)
        self.took_ms: list[float] = []

    async def live(self) -> None:
        while True:
            began = time.perf_counter()
            started = await self._client.workflows.StartWorkflow(
                workflow_pb2.StartWorkflowRequest(workflow_type="other", namespace_id="neighbour"), timeout=CALL_S
            )
            request = workflow_pb2.GetWorkflowRequest(run_id=started.run_id, namespace_id="neighbour")
            await self._client.workflows.GetWorkflow(request, timeout=CALL_S)
            self.took_ms.append((time.perf_counter() - began) * 1_000)
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
@pytest.mark.timeout(3_000)
async def test_memory_stays_below_a_bound(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    figures = Figures("pages")
    if figures.known(store):
        return
    database = f"sqlite:///{tmp_path}/kagzi.db" if store == "sqlite" else request.getfixturevalue("postgres_url")
    measured: dict[str, Any] = {"callers": CALLERS}
    async with Processes(tmp_path) as processes:
        server = await processes.server(database, "--lease", "60s")
        measured["idle_mb"] = round(megabytes(server, "VmRSS"))
        client = Client(server.grpc)
        run_id = await long_run(client, await client.register("long"))
        await failed_runs(client, await client.register("failing"))
        await many_schedules(client)
        measured["filled_peak_mb"] = round(megabytes(server, "VmHWM"))
        neighbour = Neighbour(server.grpc)
        living = asyncio.create_task(neighbour.live())
        for attack in (steps, failures, schedules, exports):
            measured[attack.__name__] = await together(attack, server, run_id)
        living.cancel()
        measured["neighbour"] = spread(neighbour.took_ms)
        measured["ends"] = await unread_endings(client, await client.register("ending"), server)
        await client.channel.close()
    figures.put(store, measured)
    peaks = [part["peak_mb"] for part in measured.values() if isinstance(part, dict) and "peak_mb" in part]
    assert len(peaks) == 5
    assert max(peaks) < MOST_MB
    assert measured["filled_peak_mb"] < MOST_MB


async def together(
    attack: Callable[[Client, str], Awaitable[int]], server: ServerProcess, run_id: str
) -> dict[str, float]:
    forget_peak(server)
    clients = [Client(server.grpc) for _ in range(CALLERS)]
    began = time.perf_counter()
    rows = await asyncio.gather(*(attack(client, run_id) for client in clients))
    took_s = time.perf_counter() - began
    for client in clients:
        await client.channel.close()
    assert sum(rows), "nothing was read: nothing was tried"
    return {"rows": sum(rows), "took_s": round(took_s, 1), "peak_mb": round(megabytes(server, "VmHWM"))}
