"""What the handles of one client share: its connection and its waits; calls, lists, and calls about one run."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Protocol, TypeVar, cast
from urllib.parse import urlencode

import grpc.aio

from ...core.duration import Duration, parse_duration
from ...core.errors import InvalidArgument, NotFound
from ...core.ids import is_uuid
from ...core.records import DEFAULT_NAMESPACE, RunEnd, RunKey
from ...core.states import RunStatus
from ...system import SystemIds
from ...v1 import workflow_pb2 as pb
from ...v1.common_pb2 import PageInfo, PageRequest, Payload
from ...wire.common import write_payload
from ...wire.requests import read_run_status
from ..transport.connection import Connection, Link
from ..workflow import codec
from ..workflow.signals import Signal
from ..workflow.signatures import check_name
from .run_records import RunInfo, read_run_info
from .waits import Waits


class RunRequest(Protocol):
    """A request about one run."""

    namespace_id: str
    run_id: str


class StatusResponse(Protocol):
    """A response that tells the status of the run."""

    @property
    def status(self) -> Any: ...


class ListRequest(Protocol):
    """A request for some rows of a list."""

    @property
    def page(self) -> PageRequest: ...


class ListResponse(Protocol):
    """A response with some rows of a list, and where it goes on."""

    @property
    def page(self) -> PageInfo: ...


Request = TypeVar("Request", bound=RunRequest)
Response = TypeVar("Response", bound=StatusResponse)
Asking = TypeVar("Asking", bound=ListRequest)
Page = TypeVar("Page", bound=ListResponse)
Row = TypeVar("Row")

PAGE_ROWS = 200  # of a reader who may stop at any row
LIMITED_PAGE_ROWS = 1_000  # of one who wants that many


class Backend:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.call = connection.call
        self.waits = Waits(connection)
        self.new_id = SystemIds().token

    def url(self, run: RunKey) -> str:
        """The page of a run, at the server that was connected to; empty if it has none."""
        if not self.connection.http_url:
            return ""
        suffix = "" if run.namespace == DEFAULT_NAMESPACE else f"?{urlencode({'namespace': run.namespace})}"
        return f"{self.connection.http_url}/runs/{run.run_id}{suffix}"

    async def rows(
        self,
        method: Callable[[Link], grpc.aio.UnaryUnaryMultiCallable[Asking, Page]],
        request: Asking,
        rows_of: Callable[[Page], Iterable[Row]],
        limit: int | None = None,
    ) -> AsyncIterator[Row]:
        """The rows of a list, page by page, at most `limit`. A page is asked for when its first row is."""
        token = ""
        left = limit
        while left is None or left > 0:
            size = PAGE_ROWS if left is None else min(left, LIMITED_PAGE_ROWS)
            request.page.CopyFrom(PageRequest(page_size=size, page_token=token))
            response = await self.call(method, request)
            for row in rows_of(response):
                yield row
                left = None if left is None else left - 1
            token = response.page.next_page_token
            if not token or not response.page.has_more:
                return

    async def get(self, namespace: str, *, run_id: str = "", workflow_id: str = "") -> RunInfo:
        request = pb.GetWorkflowRequest(namespace_id=namespace, run_id=run_id, workflow_id=workflow_id)
        response = await self.call(lambda link: link.workflows.GetWorkflow, request)
        return self.info(response.workflow)

    def info(self, message: pb.Workflow) -> RunInfo:
        info = read_run_info(message)
        return info if info.url else replace(info, url=self.url(RunKey(info.namespace, info.id)))

    async def find(self, namespace: str, id: str) -> RunInfo:
        """The run with this id, else the latest one with this workflow_id. Raises NotFound."""
        if not is_uuid(id):
            return await self.get(namespace, workflow_id=id)
        try:
            return await self.get(namespace, run_id=id)
        except NotFound as missing:
            try:
                return await self.get(namespace, workflow_id=id)
            except NotFound:
                raise missing from None

    async def ended(self, run: RunKey) -> RunEnd:
        """How the run ended; of a run that was continued as new, the last one."""
        end = await self.waits.ended(run.namespace, run.run_id)
        while end.continued_as:
            end = await self.waits.ended(run.namespace, end.continued_as)
        return end

    async def change(
        self,
        method: Callable[[Link], grpc.aio.UnaryUnaryMultiCallable[Request, Response]],
        request: Request,
        run: RunKey,
    ) -> RunStatus:
        """Send a request about this run; of a run that was continued as new, about the last one. Returns its status."""
        request.namespace_id, request.run_id = run.namespace, run.run_id
        while True:
            status = read_run_status((await self.call(method, request)).status)
            if status is not RunStatus.COMPLETED:
                return status
            continued_as = (await self.get(run.namespace, run_id=request.run_id)).continued_as
            if continued_as is None:
                return status
            request.run_id = continued_as


@asynccontextmanager
async def time_limit(limit: Duration | None, what: str) -> AsyncGenerator[None]:
    """Raises TimeoutError after `limit`. `what` is waited for, and goes on."""
    timeout_s = None if limit is None else parse_duration(limit, what="timeout").total_seconds()
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except TimeoutError:
        raise TimeoutError(f"{what} has not ended within {limit}. It continues.") from None


def encode_signal(signal: Signal[Any] | str, value: Any) -> tuple[str, Payload]:
    """Raises InvalidArgument if the value does not fit the signal's type: better here than in the run that waits for
    it."""
    name = signal_name(signal)
    value_codec = signal.codec if isinstance(signal, Signal) else codec.ANY
    return name, write_payload(codec.write_payload(value_codec, value, what=f"signal {name!r}", hook=None))


def signal_name(signal: Signal[Any] | str) -> str:
    if isinstance(signal, Signal):
        return signal.name
    if not isinstance(cast("object", signal), str):
        raise InvalidArgument(
            f'signal={signal!r} is neither a Signal nor its name. Write Signal("approved", bool).', field="signal"
        )
    return check_name(signal, what="signal")
