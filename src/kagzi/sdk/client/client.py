"""Kagzi, the client: starts, reads and changes runs. Each method sends one request, directly or through a `Run`."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Coroutine, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, cast, overload

from ...core.duration import Duration, parse_duration
from ...core.errors import InvalidArgument
from ...core.limits import PAGE_MAX_ROWS
from ...core.public import exported
from ...core.records import Explanation, RunOrder
from ...core.run.commands import OnConflict
from ...v1 import workflow_pb2 as pb
from ...wire.requests import write_filter
from ..transport.connection import Connection, checked_namespace, open_connection
from ..transport.credentials import Tls
from ..transport.payload_codec import Codec
from ..workflow.codec import ANY
from ..workflow.signals import Signal
from ..workflow.workflow import Workflow
from .backend import Backend
from .cancel import Cancel
from .connecting import Connecting, call_timeout_s
from .filters import Matching, list_request, run_filter
from .operations import operation
from .run import Run, RunQuery
from .run_records import RunCount
from .start import ABSENT, Start, StartKeywords, StartOptions
from .start_batching import Starter

if TYPE_CHECKING:  # loaded on first use
    from .operations.bulk import Bulk
    from .operations.keys import Keys
    from .operations.namespaces import Namespaces
    from .operations.schedules import ScheduleBuilder, Schedules
    from .operations.start_in import StartIn
    from .operations.stats import Stats
    from .operations.transfers import ImportedRun
    from .operations.versions import Versions
    from .operations.workers import Workers
    from .operations.workflow_types import WorkflowTypes

I = TypeVar("I")  # noqa: E741  input and output, as in the documentation
O = TypeVar("O")  # noqa: E741  as above
T = TypeVar("T")


@exported
class Kagzi:
    """A client: `async with Kagzi.connect() as client:`.

    Use one per process and event loop: concurrent calls share its connection, and concurrent starts share a message.
    Where a method takes the `id` of a run, it is a run id, or a workflow_id for the latest run with it.
    """

    def __init__(self, connection: Connection, namespace: str, shared: tuple[Backend, Starter] | None = None) -> None:
        self._connection = connection
        self._namespace = namespace
        self._owns_connection = shared is None
        self._backend = self._make_backend(connection) if shared is None else shared[0]
        self._starter = self._make_starter(self._backend, namespace) if shared is None else shared[1]

    def _make_backend(self, connection: Connection) -> Backend:
        return Backend(connection)

    def _make_starter(self, backend: Backend, namespace: str) -> Starter:
        return Starter(backend, namespace)

    @classmethod
    def connect(
        cls,
        address: str | None = None,
        *,
        namespace: str | None = None,
        api_key: str | None = None,
        tls: bool | Tls | None = None,
        codec: Codec | None = None,
        timeout: Duration | None = None,
        call_timeout: Duration = "30s",
    ) -> "Connecting[Kagzi]":
        """Connect to a server, or open a SQLite file and run a server for it in this process.

        Args:
            address: `"host:50051"`, `"https://host"`, several servers `"a:50051,b:50051"`, or embedded:
                `"sqlite:///kagzi.db"`, `":memory:"`. Default: $KAGZI_ADDRESS, then localhost:50051.
            namespace: The namespace of all calls. Default: $KAGZI_NAMESPACE, then "default".
            api_key: Sent with every call, never unencrypted to another machine.
                Default: $KAGZI_API_KEY.
            tls: True or `Tls(...)` to encrypt. Default: as the address says (`https://`).
            codec: Encodes payloads, for example `kagzi.crypto.AesGcm(...)`. Must be the same as that of the workers.
            timeout: How long to wait for the first response. Default: 10 s, 3 s if nothing listens, 0 s if the name
                cannot be resolved.
            call_timeout: How long each later call is retried while the server or its database is unavailable. A waiting
                call is logged after 1 s, after 10 s, and then every 30 s.

        Raises Unavailable if no server responds, InvalidArgument for an invalid address.
        """

        async def connect() -> Kagzi:
            timeout_s = None if timeout is None else parse_duration(timeout, what="timeout").total_seconds()
            call_s = call_timeout_s(call_timeout)
            connection = open_connection(address, api_key=api_key, tls=tls, codec=codec, call_timeout_s=call_s)
            await connection.open(timeout_s=timeout_s)
            return cls(connection, checked_namespace(namespace))

        return Connecting(connect)

    async def close(self) -> None:
        """Close the connection. Calls that are still waiting fail; runs continue."""
        await self._starter.close()
        if self._owns_connection:
            await self._backend.waits.close()
            await self._connection.close()

    def in_namespace(self, namespace: str) -> "Kagzi":
        """A client for another `namespace` over the same connection: `await client.in_namespace("shop").count()`."""
        return Kagzi(self._connection, namespace, (self._backend, self._make_starter(self._backend, namespace)))

    # --- starting -----------------------------------------------------------------------------------------------------

    @overload
    def start(
        self, workflow: Workflow[I, O], input: I, **options: Unpack[StartKeywords]
    ) -> Coroutine[Any, Any, Run[O]]: ...
    @overload
    def start(self, workflow: str, input: Any, **options: Unpack[StartKeywords]) -> Coroutine[Any, Any, Run[Any]]: ...
    @overload
    def start(self, workflow: Workflow[I, O]) -> Start[I, O]: ...
    @overload
    def start(self, workflow: str) -> Start[Any, Any]: ...
    def start(self, workflow: Workflow[Any, Any] | str, input: Any = ABSENT, **options: Any) -> Any:
        """Start a run durably. Returns a coroutine if an input is given, else a builder (`Start`) to refine and await.

        Args:
            workflow: The workflow, or its name.
            input: The input of the workflow.
            options: An id, a delay, labels and more: see [StartKeywords](#startkeywords).

        If the run existed already, `run.created` is False. Raises InvalidArgument, AlreadyExists, ResourceExhausted,
        Unavailable.
        """
        start = StartOptions(workflow=workflow, input=input, **options)
        if input is ABSENT:
            return Start[Any, Any](self._starter.start, start, self._backend.new_id)
        coroutine = self._starter.start(start)
        cast("Any", coroutine).__qualname__ = "Kagzi.start"  # the name in Python's warning "was never awaited"
        return coroutine

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
            on_error: `"raise"`: raise the first error after all starts are answered. `"collect"`: return errors in the
                places of their runs.

        A refused start does not affect the others.
        """
        if on_error not in ("raise", "collect"):
            raise InvalidArgument(f"on_error={on_error!r} must be 'raise' or 'collect'.", field="on_error")
        results = await asyncio.gather(*starts, return_exceptions=True)  # one event loop iteration, one message
        for number, result in enumerate(results):
            if isinstance(result, BaseException) and (on_error == "raise" or not isinstance(result, Exception)):
                started = sum(isinstance(each, Run) for each in results)
                result.add_note(f"This is start number {number} of {len(results)}; {started} of them took place.")
                raise result
        return results

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
        """Send a `signal` with a `value` to the open run with the workflow_id `id`, or start that run and send it: both
        happen or neither. If that run ends without having received the signal, the next run is started and gets it.
        `workflow`, `input`, `labels` and `on_conflict` are as in `start`."""
        start = StartOptions(workflow=workflow, input=input, id=id, labels=labels, on_conflict=on_conflict)
        return await self._starter.signal_with_start(start, signal, value)

    @overload
    async def run(
        self, workflow: str, input: Any = None, *, id: str | None = None, timeout: Duration | None = None
    ) -> Any: ...
    @overload
    async def run(
        self, workflow: Workflow[I, O], input: I, *, id: str | None = None, timeout: Duration | None = None
    ) -> O: ...
    @overload
    async def run(
        self, workflow: Workflow[None, O], *, id: str | None = None, timeout: Duration | None = None
    ) -> O: ...
    async def run(
        self,
        workflow: Workflow[Any, Any] | str,
        input: Any = ABSENT,
        *,
        id: str | None = None,
        timeout: Duration | None = None,
    ) -> Any:
        """Start a run and wait for its result. `workflow`, `input` and `id` are as in `start`. After the `timeout` it
        raises TimeoutError, and the run continues. Raises what `start()` and `Run.result()` raise."""
        what = f"the run of {workflow if isinstance(workflow, str) else workflow.name}"
        async with self._backend.time_limit(timeout, what):
            return await self._starter.run(StartOptions(workflow=workflow, input=input, id=id))

    # --- asking -------------------------------------------------------------------------------------------------------

    @overload
    def get(self, id: str, *, namespace: str | None = None) -> RunQuery[Any]: ...
    @overload
    def get(self, id: str, workflow: Workflow[Any, O], *, namespace: str | None = None) -> Run[O]: ...
    def get(self, id: str, workflow: Workflow[Any, Any] | None = None, *, namespace: str | None = None) -> Run[Any]:
        """A handle to a run. It makes no call until you use it, or await it for a `RunInfo`.

        Args:
            id: A run id, or a workflow_id for the latest run with it.
            workflow: The workflow, so that `result()` is typed.
            namespace: The run's namespace. Default: the client's. `get(id).namespace("production")` means the same.
        """
        if not (isinstance(cast("object", id), str) and id):
            raise InvalidArgument(f"id={id!r} must be a run id or a workflow id.", field="id")
        return RunQuery(
            self._backend,
            namespace or self._namespace,
            output=ANY if workflow is None else workflow.output_codec,
            searched_id=id,
        )

    async def list(
        self, *, limit: int | None = None, order: RunOrder | None = None, **matching: Unpack[Matching]
    ) -> AsyncIterator[Run[Any]]:
        """Runs that match all the conditions, newest first: `async for run in client.list(status="failed"):`.

        Args:
            limit: Return at most this many. Default: all.
            order: "ended": the latest end first, without open runs. Default: "created", but "ended" with ended_since
                or ended_until.
            matching: The conditions: see [Matching](#matching). Default: all runs.
        """
        request = list_request(self._namespace, self._connection.clock.now(), order, **matching)
        if limit is None and request.filter.id_prefix:
            limit = PAGE_MAX_ROWS  # a search returns one page
        rows = self._backend.rows(
            lambda link: link.workflows.ListWorkflows, request, lambda page: page.workflows, limit
        )
        async for run in rows:
            yield Run(self._backend, self._namespace, info=self._backend.info(run))

    async def count(self, **matching: Unpack[Matching]) -> RunCount:
        """How many runs `list` would return for the same `matching`. A server stops counting at 10,000."""
        where = run_filter(self._connection.clock.now(), **matching)
        request = pb.CountWorkflowsRequest(namespace_id=self._namespace, filter=write_filter(where))
        response = await self._backend.call(lambda link: link.workflows.CountWorkflows, request)
        return RunCount(response.count, response.capped)

    async def explain(self, id: str) -> Explanation:
        """Explain in words why the run `id` is in its state: `print(await client.explain(id))`."""
        return await self.get(id).explain()

    # --- changing -----------------------------------------------------------------------------------------------------

    @overload
    async def signal(self, id: str, signal: Signal[T], value: T, /, *, replace: bool = False) -> bool: ...
    @overload
    async def signal(self, id: str, signal: str, value: Any = None, /, *, replace: bool = False) -> bool: ...
    async def signal(self, id: str, signal: Signal[Any] | str, value: Any = None, /, *, replace: bool = False) -> bool:
        """Send a `signal` with a `value` to the run `id`, or `replace` a value that no code has received. A workflow_id
        means its open run. See `Run.signal`."""
        return await self.get(id).signal(cast("Any", signal), value, replace=replace)

    async def drop_signal(self, id: str, signal: Signal[Any] | str, /) -> bool:
        """Drop a `signal` that no code of the run `id` has received. See `Run.drop_signal`."""
        return await self.get(id).drop_signal(signal)

    def cancel(self, id: str, reason: str = "", *, namespace: str | None = None) -> Cancel:
        """Ask the run `id` to stop and clean up, for a `reason`. See `Run.cancel`. Await it, or first choose another
        `namespace` than the client's: `await client.cancel(id).namespace("production")`."""
        return Cancel(lambda run, why, where: self.get(run, namespace=where).cancel(why), id, reason, namespace)

    async def terminate(self, id: str, reason: str = "") -> None:
        """End the run `id` now, without cleanup, for a `reason`. See `Run.terminate`."""
        await self.get(id).terminate(reason)

    async def pause(self, id: str, reason: str = "") -> None:
        """Keep the run `id` from beginning further steps, for a `reason`. See `Run.pause`."""
        await self.get(id).pause(reason)

    async def resume(self, id: str) -> None:
        """Resume the paused run `id`. See `Run.resume`."""
        await self.get(id).resume()

    async def wake(self, id: str, step: str = "") -> bool:
        """Wake the run `id`, or one `step` of it that waits for a time. See `Run.wake`."""
        return await self.get(id).wake(step)

    async def retry(self, id: str, *, from_step: str = "") -> None:
        """Reopen the failed run `id`, at the step that failed or at `from_step`. See `Run.retry`."""
        await self.get(id).retry(from_step=from_step)

    async def fork(
        self,
        id: str,
        *,
        from_step: str = "",
        outputs: Mapping[str, Any] | None = None,
        version: int | str | None = None,
        workflow_id: str | None = None,
    ) -> Run[Any]:
        """Start a new run, with this `workflow_id` and `version`, from the history of the run `id` before `from_step`,
        with `outputs` replaced by step id. See `Run.fork`."""
        return await self.get(id).fork(from_step=from_step, outputs=outputs, version=version, id=workflow_id)

    # --- operations ---------------------------------------------------------------------------------------------------

    async def export(self, id: str) -> AsyncIterator[bytes]:
        """The run `id` with its whole history, as lines of JSON. See `Run.export`."""
        async for line in self.get(id).export():
            yield line

    async def import_runs(
        self, lines: Iterable[bytes | str] | AsyncIterable[bytes | str], *, at_once: int = 1
    ) -> "AsyncIterator[ImportedRun]":
        """Import exported runs from `lines`, such as an open file: each whole or not at all, and none twice. They go
        `at_once` in parallel; runs after a refused one may be imported then. Raises InvalidArgument, AlreadyExists."""
        from .operations.transfers import Transfers, as_lines  # noqa: PLC0415  most programs do not use it

        async for run in Transfers(self._connection, self._namespace).import_runs(as_lines(lines), at_once):
            yield run

    async def stats(
        self,
        *,
        workflow: Workflow[Any, Any] | str = "",
        since: datetime | Duration | None = None,
        until: datetime | Duration | None = None,
        step: str = "",
    ) -> "Stats":
        """Counts of started and ended runs over time, and of open runs now: for a `workflow` or all, `since` a time or
        duration ago (default: 60 steps), `until` a time or duration ago (default: now). With a `step` of "1m", "5m",
        "1h" or "1d", the ten busiest workflows are named and the others summed. Up to 5 seconds old."""
        from .operations.stats import get_stats  # noqa: PLC0415  most programs do not use it

        return await get_stats(
            self._connection, self._namespace, workflow=workflow, since=since, until=until, step=step
        )

    def schedule(self, id: str) -> "ScheduleBuilder":
        """Describe the schedule `id` and await it: `await client.schedule("daily").workflow(report).cron("0 6 * * *")`.
        Run it on every deploy: it changes only what differs."""
        from .operations.schedules import ScheduleBuilder  # noqa: PLC0415  most programs do not use it

        return ScheduleBuilder(self.schedules, id)

    start_in: "StartIn" = operation("start_in", "StartIn")  #: start a run when your own transaction commits
    schedules: "Schedules" = operation("schedules", "Schedules")  #: get, list, pause, trigger, update and more
    bulk: "Bulk" = operation("bulk", "Bulk")  #: cancel, retry, terminate or delete all runs that a filter matches
    workflow_types: "WorkflowTypes" = operation("workflow_types", "WorkflowTypes")  #: queues, and their limits
    namespaces: "Namespaces" = operation("namespaces", "Namespaces")  #: create, limit, disable, delete
    keys: "Keys" = operation("keys", "Keys")  #: API keys: create, list, rotate, revoke; and the audit log
    workers: "Workers" = operation("workers", "Workers")  #: list, get, events, drain
    versions: "Versions" = operation("versions", "Versions")  #: of workflows: list, counts, set_default, deprecate ...
