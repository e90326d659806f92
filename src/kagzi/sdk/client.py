"""Kagzi: what programs start runs with, and ask about them."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterable, Mapping
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, TypeVar, cast, overload

from ..core.commands import OnConflict
from ..core.duration import Duration, parse_duration
from ..core.errors import InvalidArgument
from ..core.records import DEFAULT_NAMESPACE, RunFilter
from ..core.states import RunStatus
from ..core.times import Timestamp, from_datetime, us_from_timedelta
from ..system import SystemClock, SystemDice, SystemIds
from ..wire.enums import RUN_STATUS_FROM_WIRE
from .address import parse_address
from .calls import RunCalls
from .codec import ANY
from .connection import Connection
from .credentials import KEY_VARIABLE, Tls, tls_of
from .retry import Retry
from .run import Run
from .start import ABSENT, Start, StartOptions, checked_labels, refuse_oversized, start_request
from .starts import Starter
from .waits import Waits
from .workflow import Workflow

I = TypeVar("I")  # noqa: E741  input and output, as in the documentation
O = TypeVar("O")  # noqa: E741  as above

NAMESPACE_VARIABLE = "KAGZI_NAMESPACE"


def checked_namespace(namespace: str | None) -> str:
    """The namespace given, else $KAGZI_NAMESPACE, else "default"."""
    return namespace or os.environ.get(NAMESPACE_VARIABLE) or DEFAULT_NAMESPACE


def open_connection(address: str | None, *, api_key: str | None, tls: "bool | Tls | None") -> Connection:
    """A connection as the arguments and the environment say; not yet opened. Raises InvalidArgument."""
    where = parse_address(address, os.environ)
    return Connection(
        where,
        tls=tls_of(where, tls),
        api_key=api_key if api_key is not None else os.environ.get(KEY_VARIABLE),
        clock=SystemClock(),
        dice=SystemDice(),
    )


class Connecting:
    """`await` it for a client to close yourself, or `async with` it."""

    def __init__(self, connect: Callable[[], Coroutine[Any, Any, "Kagzi"]]) -> None:
        self._connect = connect
        self._client: Kagzi | None = None

    def __await__(self) -> Generator[Any, None, "Kagzi"]:
        return self._connect().__await__()

    async def __aenter__(self) -> "Kagzi":
        self._client = await self._connect()
        return self._client

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()


class Kagzi:
    """A client. Use one per process and event loop; concurrent calls share its connection, and starts travel together."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection = connection
        self._namespace = namespace
        self._ids = SystemIds()
        self._starter = Starter(connection)
        self._waits = Waits(connection)
        self._calls = RunCalls(connection, self._waits)

    @classmethod
    def connect(
        cls,
        address: str | None = None,
        *,
        namespace: str | None = None,
        api_key: str | None = None,
        tls: bool | Tls | None = None,
        timeout: Duration = "10s",
    ) -> Connecting:
        """ "host:50051", "https://host", "sqlite:///kagzi.db" (embedded), ":memory:"; default: $KAGZI_ADDRESS, then
        localhost:50051. Several servers: "a:50051,b:50051".

        Raises Unavailable if no server answers, InvalidArgument for an address that cannot be right.
        """

        async def connect() -> Kagzi:
            timeout_s = parse_duration(timeout, what="timeout").total_seconds()
            connection = open_connection(address, api_key=api_key, tls=tls)
            await connection.open(timeout_s=timeout_s)
            return cls(connection, checked_namespace(namespace))

        return Connecting(connect)

    async def close(self) -> None:
        """Calls that are still waiting fail. Runs go on."""
        await self._waits.close()
        await self._starter.close()
        await self._connection.close()

    # --- starting ------------------------------------------------------------------------------------------------------

    @overload
    def start(
        self,
        workflow: Workflow[I, O],
        input: I,
        *,
        id: str | None = None,
        namespace: str | None = None,
        delay: Duration | None = None,
        start_at: datetime | None = None,
        deadline: datetime | None = None,
        labels: Mapping[str, str] | None = None,
        priority: int = 0,
        version: int | str | None = None,
        retry: Retry | None = None,
        on_conflict: OnConflict = "existing",
    ) -> Coroutine[Any, Any, Run[O]]: ...
    @overload
    def start(
        self,
        workflow: str,
        input: Any,
        *,
        id: str | None = None,
        namespace: str | None = None,
        delay: Duration | None = None,
        start_at: datetime | None = None,
        deadline: datetime | None = None,
        labels: Mapping[str, str] | None = None,
        priority: int = 0,
        version: int | str | None = None,
        retry: Retry | None = None,
        on_conflict: OnConflict = "existing",
    ) -> Coroutine[Any, Any, Run[Any]]: ...
    @overload
    def start(self, workflow: Workflow[I, O]) -> Start[I, O]: ...
    @overload
    def start(self, workflow: str) -> Start[Any, Any]: ...
    def start(self, workflow: Workflow[Any, Any] | str, input: Any = ABSENT, **options: Any) -> Any:
        """Start a run, durably. With an input: a coroutine. Without: a builder to refine and await.

        A run with that `id` that has not ended is answered instead (`run.created` is False), unless `on_conflict` says otherwise.
        `retry` is about the whole run. Raises InvalidArgument, AlreadyExists, ResourceExhausted, Unavailable.
        """
        said = StartOptions(workflow=workflow, input=input, **options)
        if input is ABSENT:
            return Start[Any, Any](self._start, said, self._ids.token)
        coroutine = self._start(said)
        cast("Any", coroutine).__qualname__ = "Kagzi.start"  # what Python says was never awaited
        return coroutine

    async def _start(self, said: StartOptions, request_id: str | None = None) -> Run[Any]:
        request = start_request(
            said,
            namespace=self._namespace,
            request_id=request_id or self._ids.token(),
            now=self._connection.clock.now(),
        )
        refuse_oversized(request, self._connection.max_payload_bytes)
        answer = await self._starter.start(request)
        return Run(
            self._calls,
            request.namespace,
            output=ANY if isinstance(said.workflow, str) else said.workflow.output_codec,
            draw_id=self._ids.token,
            run_id=answer.run_id,
            workflow_id=answer.workflow_id,
            url=answer.url,
            created=not answer.already_exists,
            last_status=RUN_STATUS_FROM_WIRE.get(answer.status),
        )

    @overload
    async def run(
        self,
        workflow: str,
        input: Any = None,
        *,
        id: str | None = None,
        timeout: Duration | None = None,  # noqa: ASYNC109  a word of the public API
    ) -> Any: ...
    @overload
    async def run(
        self,
        workflow: Workflow[I, O],
        input: I,
        *,
        id: str | None = None,
        timeout: Duration | None = None,  # noqa: ASYNC109  a word of the public API
    ) -> O: ...
    @overload
    async def run(
        self,
        workflow: Workflow[None, O],
        *,
        id: str | None = None,
        timeout: Duration | None = None,  # noqa: ASYNC109  a word of the public API
    ) -> O: ...
    async def run(
        self,
        workflow: Workflow[Any, Any] | str,
        input: Any = ABSENT,
        *,
        id: str | None = None,
        timeout: Duration | None = None,  # noqa: ASYNC109  a word of the public API
    ) -> Any:
        """Start a run and wait for its result. Raises what start() and result() raise."""
        timeout_s = None if timeout is None else parse_duration(timeout, what="timeout").total_seconds()
        try:
            async with asyncio.timeout(timeout_s):
                run = await self._start(StartOptions(workflow=workflow, input=input, id=id))
                return await run.result()
        except TimeoutError:
            name = workflow if isinstance(workflow, str) else workflow.name
            raise TimeoutError(f"{name} has not ended within {timeout}. The run goes on.") from None

    # --- asking --------------------------------------------------------------------------------------------------------

    @overload
    def get(self, id: str) -> Run[Any]: ...
    @overload
    def get(self, id: str, workflow: Workflow[Any, O]) -> Run[O]: ...
    def get(self, id: str, workflow: Workflow[Any, Any] | None = None) -> Run[Any]:
        """A handle to the run with this id, or to the latest with this workflow_id. No call is made yet."""
        if not (isinstance(cast("object", id), str) and id):
            raise InvalidArgument(f"id={id!r} must be a run id or a workflow id.", field="id")
        return Run(
            self._calls,
            self._namespace,
            output=ANY if workflow is None else workflow.output_codec,
            draw_id=self._ids.token,
            asked_for=id,
        )

    async def list(
        self,
        *,
        status: RunStatus | str | Iterable[RunStatus | str] = (),
        workflow: Workflow[Any, Any] | str | Iterable[Workflow[Any, Any] | str] = (),
        labels: Mapping[str, str] | None = None,
        since: datetime | Duration | None = None,
        until: datetime | Duration | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Run[Any]]:
        """Runs, newest first: those that match everything given. `since` and `until` are moments, or how long ago ("2h")."""
        now = self._connection.clock.now()
        where = RunFilter(
            statuses=_statuses(status),
            workflow_types=_types(workflow),
            labels=checked_labels(labels),
            created_after=_moment(since, now, "since"),
            created_before=_moment(until, now, "until"),
        )
        async for record in self._calls.list(self._namespace, where, limit):
            yield Run(
                self._calls,
                self._namespace,
                output=ANY,
                draw_id=self._ids.token,
                run_id=record.run.run_id,
                workflow_id=record.workflow_id,
                last_status=record.status,
            )

    async def cancel(self, id: str, reason: str = "") -> None:
        """Ask the run with this id, or the latest with this workflow_id, to stop."""
        await self.get(id).cancel(reason)


def _statuses(status: object) -> tuple[RunStatus, ...]:
    try:
        if isinstance(status, str) or not isinstance(status, Iterable):
            return (RunStatus(str(status)),)
        return tuple(RunStatus(str(each)) for each in cast("Iterable[object]", status))
    except ValueError as error:
        known = ", ".join(each.value for each in RunStatus)
        raise InvalidArgument(f"status: {error}. Known are: {known}.", field="status") from None


def _types(workflow: "Workflow[Any, Any] | str | Iterable[Workflow[Any, Any] | str]") -> tuple[str, ...]:
    given = (workflow,) if isinstance(workflow, (str, Workflow)) else workflow
    return tuple(each if isinstance(each, str) else each.name for each in given)


def _moment(moment: "datetime | Duration | None", now: Timestamp, what: str) -> Timestamp | None:
    if moment is None:
        return None
    if isinstance(moment, (str, timedelta)):
        return now - us_from_timedelta(parse_duration(moment, what=what))
    return from_datetime(moment, what=what)
