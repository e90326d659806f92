"""What all handles of a client share: the connection, the waits, and the calls, about lists or about one run."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from functools import lru_cache
from types import TracebackType
from typing import Any, Protocol, TypeVar, cast

import grpc.aio

from ...core.duration import Duration, parse_duration
from ...core.errors import InvalidArgument, NotFound
from ...core.ids import is_uuid
from ...core.records import RunEnd, RunKey
from ...core.run.addresses import page_of
from ...core.states import RunStatus
from ...core.traces.ids import TRACEPARENT
from ...system import SystemIds
from ...v1 import workflow_pb2 as pb
from ...v1.common_pb2 import PageInfo, PageRequest, Payload
from ...wire.common import write_payload
from ...wire.requests import read_run_status
from ..tracing.tracing import current_traceparent
from ..transport.connection import Connection
from ..transport.link import Link
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
    """A response with the status of the run."""

    @property
    def status(self) -> Any: ...


class ListRequest(Protocol):
    """A request for a page of a list."""

    @property
    def page(self) -> PageRequest: ...


class ListResponse(Protocol):
    """A response with a page of a list and the token of the next page."""

    @property
    def page(self) -> PageInfo: ...


Request = TypeVar("Request", bound=RunRequest)
Response = TypeVar("Response", bound=StatusResponse)
Asking = TypeVar("Asking", bound=ListRequest)
Page = TypeVar("Page", bound=ListResponse)
Row = TypeVar("Row")

PAGE_ROWS = 200  # for a reader that may stop at any row
LIMITED_PAGE_ROWS = 1_000  # for a reader with a limit


class Backend:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.call = connection.call
        self.new_id = SystemIds().request_id
        self.waits = Waits(connection, self.new_id)

    def time_limit(self, limit: Duration | None, what: str) -> AbstractAsyncContextManager[object]:
        """Raises TimeoutError after `limit`. `what` names what is awaited, which continues."""
        return _NO_LIMIT if limit is None else _TimeLimit(limit, what)

    def url(self, run: RunKey) -> str:
        """The URL of the run's page on the connected server; empty if it has none."""
        return page_of(run, self.connection.http_url)

    async def rows(
        self,
        method: Callable[[Link], grpc.aio.UnaryUnaryMultiCallable[Asking, Page]],
        request: Asking,
        rows_of: Callable[[Page], Iterable[Row]],
        limit: int | None = None,
    ) -> AsyncIterator[Row]:
        """The rows of a list, page by page, at most `limit`. A page is requested when its first row is read."""
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
        """The run with this id, else the latest run with this workflow_id. Raises NotFound."""
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
        """How the run ended. For a run that was continued as new: how its last successor ended."""
        end = await self.waits.ended(run.namespace, run.run_id)
        while end.continued_as:
            end = await self.waits.ended(run.namespace, end.continued_as)
        return end

    def events(self, run: RunKey, after: int) -> AsyncGenerator[dict[str, Any]]:
        """The events of the run, after this seq, until it has ended."""
        from .watching import Watch  # noqa: PLC0415  not loaded by programs that only start runs

        return Watch(self.connection, run, after).events()

    async def change(
        self,
        method: Callable[[Link], grpc.aio.UnaryUnaryMultiCallable[Request, Response]],
        request: Request,
        run: RunKey,
    ) -> RunStatus:
        """Send a request about this run, or its last successor if it was continued as new. Returns the run's status."""
        request.namespace_id, request.run_id = run.namespace, run.run_id
        while True:
            status = read_run_status((await self.call(method, request)).status)
            if status is not RunStatus.COMPLETED:
                return status
            continued_as = (await self.get(run.namespace, run_id=request.run_id)).continued_as
            if continued_as is None:
                return status
            request.run_id = continued_as

    async def wake(self, run: RunKey, step_id: str) -> tuple[bool, RunStatus]:
        """Returns whether the run or step was waiting, and the status of the run."""
        request = pb.WakeStepRequest(
            namespace_id=run.namespace, run_id=run.run_id, step_id=step_id, request_id=self.new_id()
        )
        response = await self.call(lambda link: link.workflows.WakeStep, request)
        return response.woken, read_run_status(response.status)

    async def fork(
        self, run: RunKey, request: pb.ForkWorkflowRequest, outputs: Mapping[str, Any]
    ) -> pb.ForkWorkflowResponse:
        """`outputs` by step id: replace the recorded outputs in the fork."""
        request.namespace_id, request.run_id, request.request_id = run.namespace, run.run_id, self.new_id()
        for step_id, value in outputs.items():
            output = codec.write_payload(codec.ANY, value, what=f"output of step {step_id!r}")
            request.outputs[step_id].CopyFrom(write_payload(output))
        return await self.call(lambda link: link.workflows.ForkWorkflow, request)


_NO_LIMIT = nullcontext[None]()


class _TimeLimit(AbstractAsyncContextManager[None]):
    def __init__(self, limit: Duration, what: str) -> None:
        self._limit = limit
        self._what = what
        self._timeout = asyncio.timeout(_seconds(limit) if isinstance(limit, str) else _parsed(limit))

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._timeout.__aexit__(kind, error, traceback)
        except TimeoutError:
            raise TimeoutError(f"{self._what} has not ended within {self._limit}. It continues.") from None


@lru_cache(maxsize=100)  # a program has few, and passes them with every call
def _seconds(limit: str) -> float:
    return _parsed(limit)


def _parsed(limit: Duration) -> float:
    return parse_duration(limit, what="timeout").total_seconds()


def encode_signal(signal: Signal[Any] | str, value: Any) -> tuple[str, Payload]:
    """Raises InvalidArgument if the value does not match the signal's type, so that the sender sees the error and not
    the run that waits for it."""
    name = signal_name(signal)
    value_codec = signal.codec if isinstance(signal, Signal) else codec.ANY
    payload = write_payload(codec.write_payload(value_codec, value, what=f"signal {name!r}"))
    if sender := current_traceparent():
        payload.metadata[TRACEPARENT] = sender
    return name, payload


def signal_name(signal: Signal[Any] | str) -> str:
    if isinstance(signal, Signal):
        return signal.name
    if not isinstance(cast("object", signal), str):
        raise InvalidArgument(
            f'signal={signal!r} is neither a Signal nor its name. Write Signal("approved", bool).', field="signal"
        )
    return check_name(signal, what="signal")
