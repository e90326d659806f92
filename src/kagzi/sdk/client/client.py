"""Kagzi: what programs start runs with, and ask about them."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, cast, overload

from ...core.commands import OnConflict, StartRequest
from ...core.duration import Duration, parse_duration
from ...core.errors import InvalidArgument
from ...core.public import exported
from ...v1 import workflow_pb2 as pb
from ...wire.enums import RUN_STATUS_FROM_WIRE
from ..transport.connecting import checked_namespace, open_connection
from ..transport.connection import Connection
from ..transport.credentials import Tls
from ..workflow.codec import ANY
from ..workflow.retry import Retry
from ..workflow.signals import Signal
from ..workflow.workflow import Workflow
from .operations.operation_verbs import OperationVerbs
from .run import Run
from .run_verbs import RunVerbs
from .signals_sent import signal_given
from .start import ABSENT, Start, StartOptions, refuse_oversized, start_request
from .start_many import start_many
from .starts import Starter
from .unserved import UNSERVED

I = TypeVar("I")  # noqa: E741  input and output, as in the documentation
O = TypeVar("O")  # noqa: E741  as above
T = TypeVar("T")


class Connecting:
    """A connection in the making: `await` it for a client that you close yourself, or use it with `async with`."""

    def __init__(self, connect: Callable[[], Coroutine[Any, Any, "Kagzi"]]) -> None:
        self._connect = connect
        self._client: Kagzi | None = None

    def __await__(self) -> Generator[Any, None, "Kagzi"]:
        return self._connect().__await__()

    if not TYPE_CHECKING:  # a checker is to see that it is no client

        def __getattr__(self, name: str) -> NoReturn:
            hint = "" if name.startswith("_") else " Write: client = await Kagzi.connect(...), or async with it."
            raise AttributeError(f"Kagzi.connect(...) has no {name!r} before it is awaited.{hint}", name=name, obj=self)

    async def __aenter__(self) -> "Kagzi":
        self._client = await self._connect()
        return self._client

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()


@exported
class Kagzi(RunVerbs, OperationVerbs):
    """A client: `async with Kagzi.connect() as client:`.

    Use one per process and event loop: concurrent calls share its connection, and concurrent starts share a message.
    """

    def __init__(self, connection: Connection, namespace: str) -> None:
        super().__init__(connection, namespace)
        self._starter = Starter(connection)

    @classmethod
    def connect(
        cls,
        address: str | None = None,
        *,
        namespace: str | None = None,
        api_key: str | None = None,
        tls: bool | Tls | None = None,
        timeout: Duration | None = None,
        call_timeout: Duration = "30s",
    ) -> Connecting:
        """Connect to a server, or open a SQLite file and run a server for it in this process.

        Args:
            address: `"host:50051"`, `"https://host"`, several servers `"a:50051,b:50051"`, or embedded:
                `"sqlite:///kagzi.db"`, `":memory:"`. Default: $KAGZI_ADDRESS, then localhost:50051.
            namespace: Where the client works. Default: $KAGZI_NAMESPACE, then "default".
            api_key: Sent as a bearer token with every call, never in clear off this machine: for a proxy in front of
                the server. Servers themselves do not check keys yet. Default: $KAGZI_API_KEY.
            tls: True or `Tls(...)` to encrypt; the default is what the address says (`https://`).
            timeout: How long to wait for a first answer.

        `timeout`: how long to wait for the first answer. If it is not given: 10 s, 3 s where nothing listens, and no time where
        waiting cannot help, such as a name that does not resolve. `call_timeout`: how long each later call is repeated while the
        server or its database is away. That a call waits is logged after 1 s, after 10 s, and then every 30 s.

        Raises Unavailable if no server answers, InvalidArgument for an address that cannot be right.
        """

        async def connect() -> Kagzi:
            timeout_s = None if timeout is None else parse_duration(timeout, what="timeout").total_seconds()
            call_timeout_s = parse_duration(call_timeout, what="call_timeout").total_seconds()
            if call_timeout_s <= 0:
                raise InvalidArgument('call_timeout must be longer than 0. Write "30s".', field="call_timeout")
            connection = open_connection(address, api_key=api_key, tls=tls, call_timeout_s=call_timeout_s)
            await connection.open(timeout_s=timeout_s)
            return cls(connection, checked_namespace(namespace))

        return Connecting(connect)

    async def close(self) -> None:
        """Close the connection. Calls that are still waiting fail; runs go on."""
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
        concurrency_key: str | None = None,
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
        concurrency_key: str | None = None,
    ) -> Coroutine[Any, Any, Run[Any]]: ...
    @overload
    def start(self, workflow: Workflow[I, O]) -> Start[I, O]: ...
    @overload
    def start(self, workflow: str) -> Start[Any, Any]: ...
    def start(self, workflow: Workflow[Any, Any] | str, input: Any = ABSENT, **options: Any) -> Any:
        """Start a run, durably. Returns a coroutine if an input is given, else a builder (`Start`) to refine and await.

        Args:
            workflow: The workflow, or its name.
            input: What the workflow is given.
            id: The workflow_id. Default: a new one. While a run with this id has not ended, that run is returned.
            namespace: Where to start it. Default: the client's namespace.
            delay: Begin this much later.
            start_at: Begin at this moment. Give either this or `delay`.
            deadline: The run fails with kind TIMEOUT at this moment, wherever it is. Time in the queue counts.
            labels: Up to 64 texts by name, to find runs by.
            priority: -100 to 100; higher ones are taken first.
            version: The version of the workflow. Default: the default version.
            retry: Try the whole function again when it raises; results of its steps are kept. Default: no retry.
            on_conflict: What happens if `id` is taken by a run that has not ended: `"existing"` (the default) returns
                it, `"existing_or_completed"` also returns a completed one, `"fail"` raises AlreadyExists, `"replace"`
                terminates it and starts anew.
            concurrency_key: Limits per key of the workflow count the runs with the same key.

        If the run was there already, `run.created` is False. Raises InvalidArgument, AlreadyExists, ResourceExhausted,
        Unavailable.
        """
        said = StartOptions(workflow=workflow, input=input, **options)
        if input is ABSENT:
            return Start[Any, Any](self._start, said, self._ids.token)
        coroutine = self._start(said)
        cast("Any", coroutine).__qualname__ = "Kagzi.start"  # what Python says was never awaited
        return coroutine

    async def _start(self, said: StartOptions, request_id: str | None = None) -> Run[Any]:
        request = self._request(said, request_id or self._ids.token())
        return self._started(said, request, await self._starter.start(request))

    def _request(self, said: StartOptions, request_id: str) -> StartRequest:
        request = start_request(said, namespace=self._namespace, request_id=request_id)
        refuse_oversized(request, self._connection.max_payload_bytes)
        return request

    def _started(self, said: StartOptions, request: StartRequest, answer: pb.StartWorkflowResponse) -> Run[Any]:
        UNSERVED.tell(request.namespace, request.workflow_type, answer.warning)
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
    async def start_many(
        self, starts: Iterable[Awaitable[Run[O]]], *, on_error: Literal["raise"] = "raise"
    ) -> list[Run[O]]: ...
    @overload
    async def start_many(
        self, starts: Iterable[Awaitable[Run[O]]], *, on_error: Literal["collect"]
    ) -> list[Run[O] | Exception]: ...
    async def start_many(self, starts: Iterable[Awaitable[Run[Any]]], *, on_error: str = "raise") -> list[Any]:
        """Start many runs in few messages: `await client.start_many(client.start(order, each) for each in orders)`.

        Args:
            starts: Starts that have not been awaited.
            on_error: `"raise"`: raise the first error once all starts are answered. `"collect"`: return errors in the
                places of their runs.

        A start that is refused leaves the others alone.
        """
        return await start_many(starts, on_error=on_error)

    @overload
    async def signal_with_start(
        self,
        workflow: Workflow[I, O],
        input: I,
        signal: Signal[T],
        value: T,
        *,
        id: str,
        labels: Mapping[str, str] | None = None,
        on_conflict: OnConflict = "existing",
    ) -> Run[O]: ...
    @overload
    async def signal_with_start(
        self,
        workflow: str,
        input: Any,
        signal: Signal[Any] | str,
        value: Any = None,
        *,
        id: str,
        labels: Mapping[str, str] | None = None,
        on_conflict: OnConflict = "existing",
    ) -> Run[Any]: ...
    async def signal_with_start(
        self,
        workflow: Workflow[Any, Any] | str,
        input: Any,
        signal: Signal[Any] | str,
        value: Any = None,
        *,
        id: str,
        labels: Mapping[str, str] | None = None,
        on_conflict: OnConflict = "existing",
    ) -> Run[Any]:
        """Send a signal to the run with this workflow_id, and start it first if it is not active: both or neither.

        Args:
            workflow: The workflow to start, or its name.
            input: What the workflow is given if it is started.
            signal: The signal, or its name.
            value: What is sent.
            id: The workflow_id.
            labels: Labels of the run if it is started.
            on_conflict: As in `start`.
        """
        said = StartOptions(workflow=workflow, input=input, id=id, labels=labels, on_conflict=on_conflict)
        request = self._request(said, self._ids.token())
        given = signal_given(signal, value, request_id=request.request_id)
        return self._started(said, request, await self._calls.signal_with_start(request, given))

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
        """Start a run and wait for its result.

        Args:
            workflow: The workflow, or its name.
            input: What the workflow is given.
            id: The workflow_id. Default: a new one.
            timeout: Stop waiting after this time with TimeoutError; the run goes on.

        Raises what `start()` and `Run.result()` raise.
        """
        timeout_s = None if timeout is None else parse_duration(timeout, what="timeout").total_seconds()
        try:
            async with asyncio.timeout(timeout_s):
                run = await self._start(StartOptions(workflow=workflow, input=input, id=id))
                return await run.result()
        except TimeoutError:
            name = workflow if isinstance(workflow, str) else workflow.name
            raise TimeoutError(f"{name} has not ended within {timeout}. The run goes on.") from None
