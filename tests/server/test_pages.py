"""Every list, whatever its rows hold, answers in messages of a bounded size, and page by page with everything once.

Which lists there are is read from the protos: a new one has to be added here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from kagzi import Kagzi
from kagzi.core import limits
from kagzi.server.app import Server
from kagzi.server.grpc import interceptor
from kagzi.server.grpc.answer_budget import Answers
from kagzi.server.grpc.registration import SERVICES, reads_much
from kagzi.v1 import (
    admin_pb2,
    common_pb2,
    key_pb2,
    key_pb2_grpc,
    namespace_pb2,
    namespace_pb2_grpc,
    worker_pb2,
    workflow_pb2,
    workflow_schedule_pb2,
    workflow_schedule_pb2_grpc,
)
from tests.engine.fakes import until
from tests.server.conftest import StartServer
from tests.server.stubs import TIMEOUT_S, Stubs, leased
from tests.support.kagzi_process import kagzi

PAGE_BYTES = 16 * limits.KIB
LARGE = 5_000  # three rows make a page
ROWS = 10
MANY = 100  # of small rows

Ask = Callable[[common_pb2.PageRequest], Awaitable[Any]]


class Lists:
    """For each list: fill it, and the call that reads a page of it, with the field of its rows."""

    def __init__(self, stubs: Stubs) -> None:
        self.stubs = stubs
        self.schedules: Any = workflow_schedule_pb2_grpc.WorkflowScheduleServiceStub(stubs.channel)
        self.keys: Any = key_pb2_grpc.KeyServiceStub(stubs.channel)
        self.namespaces: Any = namespace_pb2_grpc.NamespaceServiceStub(stubs.channel)

    async def ListWorkflows(self) -> tuple[Ask, str]:
        worker_id = await self.stubs.register()
        for _ in range(ROWS):
            await self.stubs.start()
            task = await self.stubs.poll(worker_id)
            error = common_pb2.ErrorDetail(message="boom", traceback="x" * LARGE)
            request = worker_pb2.FailWorkflowRequest(**leased(task), error=error)
            await self.stubs.workers.FailWorkflow(request, timeout=TIMEOUT_S)
        return lambda page: self.stubs.workflows.ListWorkflows(
            workflow_pb2.ListWorkflowsRequest(page=page), timeout=TIMEOUT_S
        ), "workflows"

    async def ListSteps(self) -> tuple[Ask, str]:
        task = await self.stubs.claim()
        for number in range(ROWS):
            step = {**leased(task), "step_id": f"s{number}"}
            await self.stubs.workers.BeginStep(worker_pb2.BeginStepRequest(**step), timeout=TIMEOUT_S)
            request = worker_pb2.CompleteStepRequest(**step, output=common_pb2.Payload(data=b"1" * LARGE))
            await self.stubs.workers.CompleteStep(request, timeout=TIMEOUT_S)
        return lambda page: self.stubs.admin.ListSteps(
            admin_pb2.ListStepsRequest(run_id=task.run_id, include_payloads=True, page=page), timeout=TIMEOUT_S
        ), "steps"

    async def ListStepLogs(self) -> tuple[Ask, str]:
        worker_id = await self.stubs.register()
        await self.stubs.start()
        task = await self.stubs.poll(worker_id)
        line = worker_pb2.StepLogLine(text=common_pb2.Payload(data=b'"%s"' % (b"x" * (LARGE // 2))))
        logs = [worker_pb2.StepLog(run_id=task.run_id, step_id=f"s{n}", lines=[line, line]) for n in range(ROWS)]
        heartbeat = worker_pb2.HeartbeatRequest(worker_id=worker_id, step_logs=logs)
        await self.stubs.workers.Heartbeat(heartbeat, timeout=TIMEOUT_S)
        last = admin_pb2.ListStepLogsRequest(run_id=task.run_id, step_id=f"s{ROWS - 1}")

        async def written() -> bool:
            return bool((await self.stubs.admin.ListStepLogs(last, timeout=TIMEOUT_S)).logs)

        await until(written)
        return lambda page: self.stubs.admin.ListStepLogs(
            admin_pb2.ListStepLogsRequest(run_id=task.run_id, page=page), timeout=TIMEOUT_S
        ), "logs"

    async def ListWorkers(self) -> tuple[Ask, str]:
        for number in range(ROWS):
            await self.stubs.register(*(f"{number}-{n}-{'t' * 200}" for n in range(30)))
        return lambda page: self.stubs.admin.ListWorkers(
            admin_pb2.ListWorkersRequest(page=page), timeout=TIMEOUT_S
        ), "workers"

    async def ListWorkerEvents(self) -> tuple[Ask, str]:
        worker_id = await self.stubs.register()
        trouble = worker_pb2.WorkerDiagnostic(kind="late", detail="x" * limits.TROUBLE_DETAIL_BYTES)
        request = worker_pb2.HeartbeatRequest(worker_id=worker_id, diagnostics=[trouble] * ROWS)
        await self.stubs.workers.Heartbeat(request, timeout=TIMEOUT_S)
        return lambda page: self.stubs.admin.ListWorkerEvents(
            admin_pb2.ListWorkerEventsRequest(page=page), timeout=TIMEOUT_S
        ), "events"

    async def ListWorkflowTypes(self) -> tuple[Ask, str]:
        await self.stubs.register(*(f"type-{n}-{'t' * 200}" for n in range(MANY)))
        return lambda page: self.stubs.admin.ListWorkflowTypes(
            admin_pb2.ListWorkflowTypesRequest(page=page), timeout=TIMEOUT_S
        ), "types"

    async def ListVersions(self) -> tuple[Ask, str]:
        await self.stubs.register(*(f"type-{n}-{'t' * 200}" for n in range(MANY)))
        return lambda page: self.stubs.admin.ListVersions(
            admin_pb2.ListVersionsRequest(page=page), timeout=TIMEOUT_S
        ), "versions"

    async def ListNamespaces(self) -> tuple[Ask, str]:
        await asyncio.gather(
            *(
                self.namespaces.CreateNamespace(
                    namespace_pb2.CreateNamespaceRequest(namespace_id=f"n{number}-{'n' * 200}"), timeout=TIMEOUT_S
                )
                for number in range(MANY)
            )
        )
        return lambda page: self.namespaces.ListNamespaces(
            namespace_pb2.ListNamespacesRequest(page=page), timeout=TIMEOUT_S
        ), "namespaces"

    async def ListKeys(self) -> tuple[Ask, str]:
        await self._keys()
        return lambda page: self.keys.ListKeys(key_pb2.ListKeysRequest(page=page), timeout=TIMEOUT_S), "keys"

    async def ListAudit(self) -> tuple[Ask, str]:
        await self._keys()
        return lambda page: self.keys.ListAudit(key_pb2.ListAuditRequest(page=page), timeout=TIMEOUT_S), "entries"

    async def _keys(self) -> None:
        await asyncio.gather(
            *(
                self.keys.CreateKey(
                    key_pb2.CreateKeyRequest(name=f"{number}-{'k' * 200}", scopes=["read"]), timeout=TIMEOUT_S
                )
                for number in range(MANY)
            )
        )

    async def ListBulkOperations(self) -> tuple[Ask, str]:
        where = workflow_pb2.WorkflowFilter(workflow_types=[f"{n}-{'t' * 200}" for n in range(25)])
        for number in range(ROWS):
            request = workflow_pb2.StartBulkOperationRequest(
                action=workflow_pb2.BULK_ACTION_CANCEL, filter=where, request_id=f"r{number}"
            )
            await self.stubs.workflows.StartBulkOperation(request, timeout=TIMEOUT_S)
        return lambda page: self.stubs.workflows.ListBulkOperations(
            workflow_pb2.ListBulkOperationsRequest(page=page), timeout=TIMEOUT_S
        ), "operations"

    async def ListWorkflowSchedules(self) -> tuple[Ask, str]:
        for number in range(ROWS):
            await self._schedule(f"s{number}", common_pb2.Payload(data=b"1" * LARGE))
        return lambda page: self.schedules.ListWorkflowSchedules(
            workflow_schedule_pb2.ListWorkflowSchedulesRequest(include_payloads=True, page=page), timeout=TIMEOUT_S
        ), "schedules"

    async def ListWorkflowScheduleRuns(self) -> tuple[Ask, str]:
        await self._schedule("s")
        begin, end = Timestamp(seconds=1_700_000_000), Timestamp(seconds=1_700_000_000 + 3 * MANY * 60)
        request = workflow_schedule_pb2.BackfillWorkflowScheduleRequest(schedule_id="s", to=end)
        getattr(request, "from").CopyFrom(begin)
        await self.schedules.BackfillWorkflowSchedule(request, timeout=TIMEOUT_S)
        return lambda page: self.schedules.ListWorkflowScheduleRuns(
            workflow_schedule_pb2.ListWorkflowScheduleRunsRequest(schedule_id="s", page=page), timeout=TIMEOUT_S
        ), "fires"

    async def _schedule(self, schedule_id: str, payload: common_pb2.Payload | None = None) -> None:
        request = workflow_schedule_pb2.CreateWorkflowScheduleRequest(
            schedule_id=schedule_id, workflow_type="greet", interval=Duration(seconds=60), input=payload, enabled=False
        )
        await self.schedules.CreateWorkflowSchedule(request, timeout=TIMEOUT_S)


def lists_of_the_protos() -> set[str]:
    return {
        method.name
        for service in SERVICES
        for method in service.methods
        if "next_page_token" in str(_fields(method.output_type))
    }


def _fields(message: Any) -> list[str]:
    page = message.fields_by_name.get("page")
    return [] if page is None else list(page.message_type.fields_by_name)


def test_every_list_is_tried_here_and_reserves_bytes_for_its_answer() -> None:
    assert lists_of_the_protos() == {name for name in vars(Lists) if name.startswith("List")}
    for service in SERVICES:
        for method in service.methods:
            assert not method.name.startswith("List") or reads_much(method)


@pytest.mark.parametrize("name", sorted(lists_of_the_protos()))
async def test_a_page_is_limited_to_a_number_of_bytes(stubs: Stubs, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ask, field = await getattr(Lists(stubs), name)()
    everything = await read_all(ask, field, 1_000)
    assert len(everything) == 1, "they fit one page, which is as large as ever"
    monkeypatch.setattr(limits, "PAGE_BYTES", PAGE_BYTES)
    pages = await read_all(ask, field, 1_000)
    assert len(pages) > 2
    for page in pages:
        rows = getattr(page, field)
        copies = 2 if name == "ListWorkers" else 1  # how often: what a worker serves is in two fields
        assert len(rows) == 1 or page.ByteSize() <= copies * PAGE_BYTES + limits.KIB
    whole = [_identity(row) for page in everything for row in getattr(page, field)]
    parts = [_identity(row) for page in pages for row in getattr(page, field)]
    assert parts == whole, "everything, once, in the same order"
    assert {(page.page.total_count, page.page.total_is_capped) for page in pages} == {(len(whole), False)}
    monkeypatch.setattr(limits, "COUNT_CAP", 3)
    capped = (await ask(common_pb2.PageRequest(page_size=1, include_total_count=True))).page
    assert (capped.total_count, capped.total_is_capped) == (3, True)
    uncounted = (await ask(common_pb2.PageRequest(page_size=1))).page
    assert (uncounted.total_count, uncounted.total_is_capped) == (0, False)


def _identity(row: Any) -> object:
    """Some rows change while they are looked at."""
    return getattr(row, {"BulkOperation": "operation_id", "Worker": "worker_id"}.get(row.DESCRIPTOR.name, ""), row)


async def read_all(ask: Ask, field: str, size: int) -> list[Any]:
    pages: list[Any] = []
    token = ""
    while True:
        page = await ask(common_pb2.PageRequest(page_size=size, page_token=token, include_total_count=True))
        pages.append(page)
        assert getattr(page, field)
        token = page.page.next_page_token
        if not page.page.has_more:
            return pages


async def test_lists_carry_no_payloads_unless_requested(stubs: Stubs) -> None:
    lists = Lists(stubs)
    await lists._schedule("s", common_pb2.Payload(data=b"1"))
    await stubs.start(input=common_pb2.Payload(data=b"1"))
    listed = await lists.schedules.ListWorkflowSchedules(
        workflow_schedule_pb2.ListWorkflowSchedulesRequest(), timeout=TIMEOUT_S
    )
    assert not listed.schedules[0].HasField("input")
    got = await lists.schedules.GetWorkflowSchedule(
        workflow_schedule_pb2.GetWorkflowScheduleRequest(schedule_id="s"), timeout=TIMEOUT_S
    )
    assert got.schedule.input.data == b"1"
    runs = await stubs.workflows.ListWorkflows(workflow_pb2.ListWorkflowsRequest(), timeout=TIMEOUT_S)
    assert not runs.workflows[0].HasField("input")


# --- ends of runs -----------------------------------------------------------------------------------------------------


async def test_outcomes_that_nobody_reads_are_not_kept(
    start_server: StartServer, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """400 ends of 2 MB once cost half a gigabyte. What does not fit is read from the store when it can be sent."""
    monkeypatch.setattr(limits, "MESSAGE_SOFT_BYTES", 4 * LARGE)
    monkeypatch.setattr(limits, "PAGE_BYTES", 4 * LARGE)
    monkeypatch.setattr(limits, "ANSWERS_KEPT_BYTES", kept := 3 * LARGE)
    made: list[Answers] = []
    monkeypatch.setattr(interceptor, "Answers", lambda *arguments: made.append(Answers(*arguments)) or made[-1])
    server = await start_server(database_url)
    answers = made[0]
    async with grpc.aio.insecure_channel(server.grpc_address) as channel:
        await many_endings(Stubs(channel), answers, kept)


async def many_endings(stubs: Stubs, answers: Answers, kept: int) -> None:
    worker_id = await stubs.register()
    tasks: list[Any] = []
    for _ in range(3 * ROWS):
        await stubs.start()
        tasks.append(await stubs.poll(worker_id))
    call = stubs.workflows.WaitStream(timeout=TIMEOUT_S)
    await call.write(workflow_pb2.WaitStreamRequest(run_ids=[task.run_id for task in tasks]))
    for number, task in enumerate(tasks):
        output = common_pb2.Payload(data=str(number).encode() * LARGE)
        request = worker_pb2.CompleteWorkflowRequest(**leased(task), output=output)
        await stubs.workers.CompleteWorkflow(request, timeout=TIMEOUT_S)
        assert 0 <= answers.keepable <= kept
        assert answers.used <= limits.ANSWERS_NAMESPACE_BYTES
    await call.done_writing()
    outputs: dict[str, bytes] = {}
    while (answer := await call.read()) is not grpc.aio.EOF:
        assert len(answer.outcomes) == 1 or answer.ByteSize() <= 4 * LARGE + limits.KIB
        for outcome in answer.outcomes:
            assert outcome.run_id not in outputs
            outputs[outcome.run_id] = outcome.output.data
    assert outputs == {task.run_id: str(number).encode() * LARGE for number, task in enumerate(tasks)}
    assert (answers.keepable, answers.used) == (kept, 0)


# --- what users call --------------------------------------------------------------------------------------------------


async def test_steps_with_20_mb_of_results_are_read_by_the_sdk_and_the_command(server: Server, stubs: Stubs) -> None:
    """Both asked for everything at once, in one message that they could not read."""
    task = await stubs.claim()
    largest = common_pb2.Payload(data=b"1" * (limits.PAYLOAD_BYTES - limits.KIB))
    for number in range(ROWS):
        step = {**leased(task), "step_id": f"s{number}"}
        await stubs.workers.BeginStep(worker_pb2.BeginStepRequest(**step), timeout=TIMEOUT_S)
        await stubs.workers.CompleteStep(worker_pb2.CompleteStepRequest(**step, output=largest), timeout=TIMEOUT_S)
    names = [f"s{number}" for number in range(ROWS)]
    async with Kagzi.connect(server.grpc_address) as client:
        assert [step.id for step in await client.get(task.run_id).steps()] == names
    shown = await asyncio.to_thread(kagzi, "get", task.run_id, "--steps", "--address", server.grpc_address)
    assert shown.returncode == 0, shown.stderr
    assert all(f"\n{name} " in shown.stdout or f" {name} " in shown.stdout for name in names)
