"""A namespace with something of everything in it, the names of all that, and names of nothing at all."""

import sqlite3
from typing import Any, NamedTuple

import asyncpg
import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from kagzi.server.grpc.registration import SERVICES, path_of
from kagzi.v1 import admin_pb2, common_pb2, worker_pb2, workflow_pb2, workflow_schedule_pb2
from tests.server.stubs import TIMEOUT_S, json_payload
from tests.support.polling import until

OURS, THEIRS = "ours", "theirs"
SECRET = "between-us"

METHODS = {path_of(method): method for service in SERVICES for method in service.methods}


class Names(NamedTuple):
    """What a call may name. In `nothing` there is no such thing anywhere."""

    run_id: str
    lease: Any
    ended_run: str
    workflow_id: str
    step_id: str
    worker_id: str
    schedule_id: str
    operation_id: str
    workflow_type: str
    version: str
    label: str
    request_id: str
    runs_token: str
    steps_token: str
    export: bytes


NOTHING = Names(
    run_id="0191e000-0000-7000-8000-0000000000aa",
    lease=common_pb2.Lease(counter=1, nonce=77),
    ended_run="0191e000-0000-7000-8000-0000000000bb",
    workflow_id="nobodys-id",
    step_id="nobodys-step",
    worker_id="nobodys-worker",
    schedule_id="nobodys-schedule",
    operation_id="0191e000-0000-7000-8000-0000000000cc",
    workflow_type="nobodys-type",
    version="nobodys-version",
    label="nobodys-label",
    request_id="nobodys-request",
    runs_token="bm9ib2R5",
    steps_token="bm9ib2R5",
    export=b"",
)


class Answer(NamedTuple):
    """`text`: all that was said, with what was named replaced by what it was named as."""

    code: grpc.StatusCode
    text: str
    messages: tuple[Message, ...] = ()


class Caller:
    """Calls any method by its path, one request or several, and reads all answers."""

    def __init__(self, channel: grpc.aio.Channel, key: str = "") -> None:
        self.channel = channel
        self.metadata = (("authorization", f"Bearer {key}"),) if key else ()

    def with_key(self, key: str) -> "Caller":
        return Caller(self.channel, key)

    async def ask(self, path: str, *requests: Message, until: int = 0) -> tuple[grpc.StatusCode, str, list[Message]]:
        """`until`: so many answers are enough; 0: all."""
        answer_type = GetMessageClass(METHODS[path].output_type)
        received: list[Message] = []
        try:
            if len(requests) == 1 and not until:
                # Whoever writes to a call that was refused meanwhile is not told why by gRPC.
                one: Any = self.channel.unary_stream(path)
                call = one(requests[0].SerializeToString(), timeout=TIMEOUT_S, metadata=self.metadata)
            else:
                many: Any = self.channel.stream_stream(path)
                call = many(timeout=TIMEOUT_S, metadata=self.metadata)
                for request in requests:
                    await call.write(request.SerializeToString())
                if not until:
                    await call.done_writing()
            while (data := await call.read()) is not grpc.aio.EOF:
                received.append(answer_type.FromString(data))
                if until and len(received) >= until:
                    call.cancel()
                    return grpc.StatusCode.OK, "", received
        except grpc.aio.AioRpcError as error:
            return error.code(), error.details() or "", received
        return grpc.StatusCode.OK, "", received

    async def ask_and_check(self, names: Names, path: str, *requests: Message, until: int = 0) -> Answer:
        code, details, received = await self.ask(path, *requests, until=until)
        text = "\n".join([details, *(str(message) for message in received)])
        text = text.replace(f"nonce: {names.lease.nonce}", "nonce: <nonce>")
        for field in sorted(names._fields, key=lambda field: -len(str(getattr(names, field)))):
            value = getattr(names, field)
            if isinstance(value, str) and value:
                text = text.replace(value, f"<{field}>")
        return Answer(code, text, tuple(received))

    async def one(self, path: str, request: Message) -> Any:
        code, details, received = await self.ask(path, request)
        assert code is grpc.StatusCode.OK, (path, details)
        [answer] = received
        return answer


def workflows(name: str) -> str:
    return f"/kagzi.v1.WorkflowService/{name}"


def workers(name: str) -> str:
    return f"/kagzi.v1.WorkerService/{name}"


def schedules(name: str) -> str:
    return f"/kagzi.v1.WorkflowScheduleService/{name}"


def keys(name: str) -> str:
    return f"/kagzi.v1.KeyService/{name}"


def admin(name: str) -> str:
    return f"/kagzi.v1.AdminService/{name}"


PAGE = common_pb2.PageRequest(page_size=1)


async def furnish(caller: Caller) -> Names:
    """A namespace of ours: a run in a worker's hands with a recorded step, one that failed, others, and all the
    rest."""
    worker_id = (
        await caller.one(
            workers("Register"),
            worker_pb2.RegisterRequest(
                namespace_id=OURS,
                served=[worker_pb2.WorkflowTypeVersion(workflow_type="our-type", version="our-version")],
            ),
        )
    ).worker_id
    run_id, task = await _claimed(caller, worker_id, "our-id")
    leased = {"namespace_id": OURS, "run_id": run_id, "lease": task.lease}
    for step_id in ("our-step", "our-second-step"):
        await caller.one(
            workers("BeginStep"),
            worker_pb2.BeginStepRequest(
                **leased, step_id=step_id, step_name=step_id, attempt=1, kind=worker_pb2.STEP_KIND_FUNCTION
            ),
        )
        await caller.one(
            workers("CompleteStep"),
            worker_pb2.CompleteStepRequest(**leased, step_id=step_id, attempt=1, output=json_payload(f'"{SECRET}"')),
        )
    ended_run, ended_task = await _claimed(caller, worker_id, "our-ended-id")
    await caller.one(
        workers("FailWorkflow"),
        worker_pb2.FailWorkflowRequest(
            namespace_id=OURS,
            run_id=ended_run,
            lease=ended_task.lease,
            error=common_pb2.ErrorDetail(message=SECRET, type="Boom"),
        ),
    )
    await caller.one(
        schedules("CreateWorkflowSchedule"),
        workflow_schedule_pb2.CreateWorkflowScheduleRequest(
            namespace_id=OURS,
            schedule_id="our-schedule",
            workflow_type="our-type",
            interval=Duration(seconds=3600),
            input=json_payload(f'"{SECRET}"'),
        ),
    )
    operation = await caller.one(
        workflows("StartBulkOperation"),
        workflow_pb2.StartBulkOperationRequest(
            namespace_id=OURS,
            action=workflow_pb2.BULK_ACTION_CANCEL,
            filter=workflow_pb2.WorkflowFilter(labels={"label": "nothing-has-it"}),
            request_id="our-request",
        ),
    )
    ask = workflow_pb2.GetBulkOperationRequest(namespace_id=OURS, operation_id=operation.operation_id)

    async def finished() -> bool:
        return (await caller.one(workflows("GetBulkOperation"), ask)).finished

    await until(finished)
    runs = await caller.one(workflows("ListWorkflows"), workflow_pb2.ListWorkflowsRequest(namespace_id=OURS, page=PAGE))
    steps = await caller.one(
        admin("ListSteps"), admin_pb2.ListStepsRequest(namespace_id=OURS, run_id=run_id, page=PAGE)
    )
    _, _, exported = await caller.ask(
        workflows("ExportWorkflow"), workflow_pb2.ExportWorkflowRequest(namespace_id=OURS, run_id=ended_run)
    )
    return Names(
        run_id=run_id,
        lease=task.lease,
        ended_run=ended_run,
        workflow_id="our-id",
        step_id="our-step",
        worker_id=worker_id,
        schedule_id="our-schedule",
        operation_id=operation.operation_id,
        workflow_type="our-type",
        version="our-version",
        label="our-label",
        request_id="our-request",
        runs_token=runs.page.next_page_token,
        steps_token=steps.page.next_page_token,
        export=b"".join(part.json for part in exported),  # type: ignore[attr-defined]
    )


async def _claimed(caller: Caller, worker_id: str, workflow_id: str) -> tuple[str, Any]:
    started = await caller.one(
        workflows("StartWorkflow"),
        workflow_pb2.StartWorkflowRequest(
            namespace_id=OURS,
            workflow_type="our-type",
            workflow_id=workflow_id,
            input=json_payload(f'"{SECRET}"'),
            labels={"label": "our-label"},
            request_id=f"request-of-{workflow_id}",
        ),
    )
    task = await caller.one(
        workers("PollTask"), worker_pb2.PollTaskRequest(namespace_id=OURS, worker_id=worker_id, max_tasks=1)
    )
    assert task.run_id == started.run_id
    return started.run_id, task


async def picture(database_url: str) -> dict[str, list[str]]:
    """Every row of every table that belongs to our namespace, or to one of its runs."""
    if database_url.startswith("sqlite"):
        return _sqlite_picture(database_url.removeprefix("sqlite:///"))
    connection = await asyncpg.connect(database_url)
    try:
        columns = await connection.fetch(
            "select table_name, column_name from information_schema.columns where table_schema = current_schema() "
            "and column_name in ('namespace', 'run_id')"
        )
        rows_by_table: dict[str, list[str]] = {}
        for table, column in _tables([(row["table_name"], row["column_name"]) for row in columns]).items():
            ours = (
                "namespace = $1"
                if column == "namespace"
                else "run_id in (select run_id from runs where namespace = $1)"
            )
            rows = await connection.fetch(f'select t::text as row from "{table}" as t where {ours} order by 1', OURS)
            rows_by_table[table] = [row["row"] for row in rows]
        return rows_by_table
    finally:
        await connection.close()


async def rows_of(database_url: str, table: str) -> list[str]:
    """All of a table, as text."""
    if database_url.startswith("sqlite"):
        database = sqlite3.connect(database_url.removeprefix("sqlite:///"))
        try:
            return [str(row) for row in database.execute(f"select * from {table}")]
        finally:
            database.close()
    connection = await asyncpg.connect(database_url)
    try:
        return [row["row"] for row in await connection.fetch(f'select t::text as row from "{table}" as t')]
    finally:
        await connection.close()


def _sqlite_picture(path: str) -> dict[str, list[str]]:
    database = sqlite3.connect(path)
    try:
        columns = database.execute(
            "select m.name, c.name from sqlite_master m, pragma_table_info(m.name) c "
            "where m.type = 'table' and c.name in ('namespace', 'run_id')"
        ).fetchall()
        rows_by_table: dict[str, list[str]] = {}
        for table, column in _tables(columns).items():
            ours = (
                "namespace = ?" if column == "namespace" else "run_id in (select run_id from runs where namespace = ?)"
            )
            rows = database.execute(f"select * from {table} where {ours}", (OURS,)).fetchall()
            rows_by_table[table] = sorted(map(str, rows))
        return rows_by_table
    finally:
        database.close()


def _tables(columns: list[tuple[str, str]]) -> dict[str, str]:
    """By which column each table's rows are known to be ours."""
    tables: dict[str, str] = {}
    for table, column in columns:
        if tables.get(table) != "namespace":
            tables[table] = column
    return tables
