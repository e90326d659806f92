"""A command's way to the server: the SDK's connection, and the letters of `kagzi.v1` that commands send over it."""

import os
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import click

from ..core.errors import DOWN, DOWN_CONNECTION, InvalidArgument, NotFound, Unavailable, not_found
from ..core.ids import is_uuid
from ..core.records import DEFAULT_NAMESPACE
from ..core.times import US_PER_MS, US_PER_S
from ..sdk.client.unserved import UNSERVED
from ..sdk.transport.address import Address, parse_address
from ..sdk.transport.connection import Connection
from ..sdk.transport.credentials import KEY_VARIABLE, tls_of
from ..server.database import PostgresDatabase, mask, parse_database
from ..system import SystemClock, SystemDice
from ..v1 import admin_pb2, common_pb2, worker_pb2, workflow_pb2
from ..wire.common import write_duration, write_time
from .console import say, warn
from .exits import Exit, Stop

WAIT_POLL_S = 20
WAIT_PATIENCE_S = 300.0  # a run may be long, and so may be an outage in it
PAGE_ROWS = 1_000

_ANSWER_S = 10.0
_PREFIX = re.compile(r"[0-9a-f-]{4,35}")
_UUID7_TIME_DIGITS = 12
_CLOCK_SLACK_US = US_PER_S
_SCAN_ROWS = 100_000


@asynccontextmanager
async def connected(address: str | None, namespace: str | None) -> AsyncGenerator["ServerConnection"]:
    """A connection to a server that has answered. Raises Stop(CANNOT_CONNECT) with what to do about it."""
    try:
        parsed = parse_address(address, os.environ)
        connection = Connection(
            parsed,
            tls=tls_of(parsed, None),
            api_key=os.environ.get(KEY_VARIABLE),
            clock=SystemClock(),
            dice=SystemDice(),
        )
    except InvalidArgument as error:
        raise click.BadParameter(mask(error.message), param_hint="'--address' (KAGZI_ADDRESS)") from error
    _refuse_missing_file(parsed.embedded)
    connection.notices.tell = _tell
    try:
        await connection.open()
    except Unavailable as error:
        raise Stop(Exit.CANNOT_CONNECT, error.message, _remedy(error, parsed)) from error
    try:
        with UNSERVED.shown_by(warn):
            yield ServerConnection(connection, namespace or DEFAULT_NAMESPACE)
    finally:
        await connection.close()


def _tell(text: str) -> None:
    say(f"waiting: {text}", colour="yellow")


def _remedy(error: Unavailable, address: Address) -> str:
    """A server to try things out is started only where nobody has one, and on this machine."""
    if error.metadata.get(DOWN) != DOWN_CONNECTION:
        return ""
    other = "name another server with --address HOST:PORT or KAGZI_ADDRESS"
    return other if address.leaves_machine else f"start a server with kagzi dev, or {other}"


def _refuse_missing_file(embedded: str) -> None:
    """A command looks at what is there: a mistyped path must not become a new database."""
    if not embedded:
        return
    database = parse_database(embedded)
    path = None if isinstance(database, PostgresDatabase) else database.path
    if path is None:
        raise click.BadParameter("a store in memory belongs to the process that made it.", param_hint="'--address'")
    if not path.exists():
        raise Stop(
            Exit.CANNOT_CONNECT,
            f"{path} does not exist",
            "check --address: it is sqlite:///relative.db or sqlite:////absolute.db",
        )


class ServerConnection:
    """What commands ask of a server. Raises the exceptions of core/errors.py."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self.namespace = namespace
        self._connection = connection

    @property
    def connection(self) -> Connection:
        """For what the SDK's own nouns ask."""
        return self._connection

    async def start(self, request: workflow_pb2.StartWorkflowRequest) -> workflow_pb2.StartWorkflowResponse:
        """`request` must carry a request id: it may be sent more than once."""
        return await self._connection.call(lambda link: link.workflows.StartWorkflow, request)

    async def wait(self, run_id: str, timeout_s: float) -> workflow_pb2.WaitResponse:
        """Until the run has ended or `timeout_s` (at most WAIT_POLL_S) has passed."""
        span_s = min(timeout_s, WAIT_POLL_S)
        request = workflow_pb2.WaitRequest(
            namespace_id=self.namespace, run_id=run_id, timeout=write_duration(int(span_s * US_PER_S))
        )
        return await self._connection.call(
            lambda link: link.workflows.Wait, request, timeout_s=WAIT_PATIENCE_S, try_s=span_s + _ANSWER_S
        )

    async def cancel(self, run_id: str, reason: str) -> int:
        request = workflow_pb2.CancelWorkflowRequest(namespace_id=self.namespace, run_id=run_id, reason=reason)
        answer = await self._connection.call(lambda link: link.workflows.CancelWorkflow, request)
        return answer.status

    async def terminate(self, run_id: str, reason: str, request_id: str) -> int:
        request = workflow_pb2.TerminateWorkflowRequest(
            namespace_id=self.namespace, run_id=run_id, reason=reason, request_id=request_id
        )
        return (await self._connection.call(lambda link: link.workflows.TerminateWorkflow, request)).status

    async def pause(self, run_id: str, reason: str) -> int:
        request = workflow_pb2.PauseWorkflowRequest(namespace_id=self.namespace, run_id=run_id, reason=reason)
        return (await self._connection.call(lambda link: link.workflows.PauseWorkflow, request)).status

    async def resume(self, run_id: str) -> int:
        request = workflow_pb2.ResumeWorkflowRequest(namespace_id=self.namespace, run_id=run_id)
        return (await self._connection.call(lambda link: link.workflows.ResumeWorkflow, request)).status

    async def retry(self, run_id: str, from_step: str, request_id: str) -> int:
        request = workflow_pb2.RetryWorkflowRequest(
            namespace_id=self.namespace, run_id=run_id, from_step=from_step, request_id=request_id
        )
        return (await self._connection.call(lambda link: link.workflows.RetryWorkflow, request)).status

    async def fork(self, request: workflow_pb2.ForkWorkflowRequest) -> workflow_pb2.ForkWorkflowResponse:
        """`request` must carry a request id: it may be sent more than once."""
        return await self._connection.call(lambda link: link.workflows.ForkWorkflow, request)

    async def signal(self, request: workflow_pb2.SignalWorkflowRequest) -> workflow_pb2.SignalWorkflowResponse:
        """`request` must carry a request id: it may be sent more than once."""
        return await self._connection.call(lambda link: link.workflows.SignalWorkflow, request)

    async def replace_signal(self, request: workflow_pb2.ReplaceSignalRequest) -> workflow_pb2.ReplaceSignalResponse:
        """`request` must carry a request id: it may be sent more than once."""
        return await self._connection.call(lambda link: link.workflows.ReplaceSignal, request)

    async def explain(self, run_id: str) -> workflow_pb2.ExplainWorkflowResponse:
        request = workflow_pb2.ExplainWorkflowRequest(namespace_id=self.namespace, run_id=run_id)
        return await self._connection.call(lambda link: link.workflows.ExplainWorkflow, request)

    async def count(self, where: workflow_pb2.WorkflowFilter) -> workflow_pb2.CountWorkflowsResponse:
        request = workflow_pb2.CountWorkflowsRequest(namespace_id=self.namespace, filter=where)
        return await self._connection.call(lambda link: link.workflows.CountWorkflows, request)

    async def get(self, *, run_id: str = "", workflow_id: str = "") -> workflow_pb2.Workflow:
        request = workflow_pb2.GetWorkflowRequest(namespace_id=self.namespace, run_id=run_id, workflow_id=workflow_id)
        answer = await self._connection.call(lambda link: link.workflows.GetWorkflow, request)
        return answer.workflow

    async def find_run(self, name: str) -> workflow_pb2.Workflow:
        """By run id, by workflow id (its latest run), or by a beginning that only one run id has."""
        if is_uuid(name.lower()):
            try:
                return await self.get(run_id=name.lower())
            except NotFound:
                pass  # a UUID may be the user's own workflow id
        try:
            return await self.get(workflow_id=name)
        except NotFound:
            if not _PREFIX.fullmatch(name.lower()):
                raise not_found("run", name) from None
        return await self._find_by_prefix(name.lower())

    async def runs(self, where: workflow_pb2.WorkflowFilter, limit: int) -> AsyncIterator[workflow_pb2.Workflow]:
        """Newest first."""
        token = ""
        while limit > 0:
            page = common_pb2.PageRequest(page_size=min(limit, PAGE_ROWS), page_token=token)
            request = workflow_pb2.ListWorkflowsRequest(namespace_id=self.namespace, filter=where, page=page)
            answer = await self._connection.call(lambda link: link.workflows.ListWorkflows, request)
            for run in answer.workflows:
                yield run
            limit -= len(answer.workflows)
            token = answer.page.next_page_token
            if not answer.page.has_more or not token:
                return

    async def steps(self, run_id: str) -> AsyncIterator[worker_pb2.Step]:
        """In the order in which they were begun."""
        token = ""
        while True:
            page = common_pb2.PageRequest(page_size=PAGE_ROWS, page_token=token)
            request = admin_pb2.ListStepsRequest(
                namespace_id=self.namespace, run_id=run_id, page=page, include_payloads=True
            )
            answer = await self._connection.call(lambda link: link.admin.ListSteps, request)
            for step in answer.steps:
                yield step
            token = answer.page.next_page_token
            if not answer.page.has_more or not token:
                return

    async def workers(self, workflow_type: str | None = None) -> list[worker_pb2.Worker]:
        """Those that are online, at most a page of them."""
        request = admin_pb2.ListWorkersRequest(
            namespace_id=self.namespace,
            task_queue=workflow_type,
            status_filter=worker_pb2.WORKER_STATUS_ONLINE,
            page=common_pb2.PageRequest(page_size=PAGE_ROWS),
        )
        answer = await self._connection.call(lambda link: link.admin.ListWorkers, request)
        return list(answer.workers)

    async def _find_by_prefix(self, prefix: str) -> workflow_pb2.Workflow:
        matches: list[str] = []
        async for run in self.runs(_created_with_prefix(prefix), _SCAN_ROWS):
            if run.run_id.startswith(prefix):
                matches.append(run.run_id)
                if len(matches) > 5:
                    break
        if not matches:
            raise not_found("run", prefix)
        if len(matches) > 1:
            some = "\n  ".join(matches[:5])
            raise Stop(
                Exit.USAGE, f"{prefix!r} is the beginning of more than one run id:\n  {some}", "write more digits"
            )
        return await self.get(run_id=matches[0])


def _created_with_prefix(prefix: str) -> workflow_pb2.WorkflowFilter:
    """A run id begins with the milliseconds of its creation: a beginning of it says when that was, more or less."""
    digits = prefix.replace("-", "")[:_UUID7_TIME_DIGITS]
    first_ms = int(digits.ljust(_UUID7_TIME_DIGITS, "0"), 16)
    last_ms = int(digits.ljust(_UUID7_TIME_DIGITS, "f"), 16)
    latest_us = 253_402_300_799 * US_PER_S  # the wire ends with the year 9999
    return workflow_pb2.WorkflowFilter(
        created_after=write_time(max(min(first_ms * US_PER_MS, latest_us) - _CLOCK_SLACK_US, 0)),
        created_before=write_time(min(last_ms * US_PER_MS + _CLOCK_SLACK_US, latest_us)),
    )
