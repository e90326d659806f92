"""Worker: executes workflows."""

import asyncio
import os
import socket
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from ...core.checks.attributes import checked_labels
from ...core.duration import Duration, parse_duration
from ...core.errors import InvalidArgument, PreconditionFailed
from ...core.public import exported
from ...core.records import WorkerRecord
from ...core.version import __version__
from ...event_loop import new_fast_loop
from ...system import SystemIds
from ...wire.requests import write_register
from ...wire.schemas import add_schemas
from ..execution.calls.arguments import RecordInputs, checked_record_inputs
from ..schemas.registered import registered_schemas
from ..transport.connection import checked_namespace, open_connection
from ..transport.credentials import Tls
from ..transport.payload_codec import Codec
from ..workflow.retry import Retry, check_retry, retry_of_extra_tries
from ..workflow.workflow import Workflow
from .executor import Executor
from .registry import (
    AnyWorkflow,
    Registry,
    WorkerOptions,
    checked_number,
    checked_schedules,
    checked_text,
    listed,
)
from .serving import Serving, apply_declared
from .stop_signals import Block, on_stop_signal

if TYPE_CHECKING:  # most workers have no schedules and do not need the client
    from ..client.operations.schedule_options import DeclaredSchedule

BUILD_VARIABLE = "KAGZI_BUILD_ID"
VERSION_LABEL = "version"


@exported
class Worker:
    """Executes workflows: `async with worker:`, `await worker.run()` or, as a program, `worker.serve()`.

    Args:
        address: As in `Kagzi.connect`. Default: $KAGZI_ADDRESS, then localhost:50051.
        workflows: The workflows it executes, or pairs (name, function).
        namespace: The namespace it serves. Default: $KAGZI_NAMESPACE, then "default".
        max_concurrent: How many runs it holds at once, 1 to 10,000.
        retries: Attempts after the first, as the default for steps. Use either this or `retry`.
        retry: The default for steps whose workflow has none.
        labels: Shown with the worker.
        hostname: Shown with the worker. Default: the name of the machine.
        build_id: The build of its code. A run that was paused because the code did not match its history is offered to
            other builds. Default: $KAGZI_BUILD_ID, then a hash of the source code.
        shutdown_grace: How long it may take to finish its runs when it stops; the rest are handed back.
        threads: How many sync steps run at once. Default: `max_concurrent`.
        api_key: As in `Kagzi.connect`.
        tls: As in `Kagzi.connect`.
        record_inputs: Which steps' arguments are recorded for display: "failed" (of failed steps), "always" or "never".
        codec: As in `Kagzi.connect`. With a codec, logs leave out the texts of errors.
        schedules: Schedules, declared with `kagzi.schedule`, that it creates or updates when it starts.
        schedules_owner: The owner of the schedules. Schedules of this owner that are no longer among them are logged;
            see `client.schedules.sync` to pause or delete them.
        apply_limits: Apply the limits that its workflows declare when it starts. Default: log the differences.

    The methods named like arguments return a new worker. Raises InvalidArgument for invalid options.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        workflows: Iterable[AnyWorkflow] = (),
        namespace: str | None = None,
        max_concurrent: int = 100,
        retries: int | None = None,
        retry: Retry | None = None,
        labels: Mapping[str, str] | None = None,
        hostname: str | None = None,
        build_id: str | None = None,
        shutdown_grace: Duration = "30s",
        threads: int | None = None,
        api_key: str | None = None,
        tls: bool | Tls | None = None,
        record_inputs: RecordInputs = "failed",
        codec: Codec | None = None,
        schedules: "Iterable[DeclaredSchedule]" = (),
        schedules_owner: str | None = None,
        apply_limits: bool = False,
    ) -> None:
        if retries is not None and retry is not None:
            raise InvalidArgument("retries and retry are both given. Give one of them.", field="retries")
        self._set(
            WorkerOptions(
                address=address,
                workflows=listed(workflows),
                namespace=namespace,
                max_concurrent=checked_number(max_concurrent, "max_concurrent"),
                retry=check_retry(retry) if retries is None else retry_of_extra_tries(retries),
                labels=checked_labels(labels),
                hostname=hostname or socket.gethostname(),
                build_id=build_id if build_id is not None else os.environ.get(BUILD_VARIABLE) or None,
                shutdown_grace_s=parse_duration(shutdown_grace, what="shutdown_grace").total_seconds(),
                threads=None if threads is None else checked_number(threads, "threads"),
                api_key=api_key,
                tls=tls,
                record_inputs=checked_record_inputs(record_inputs),
                codec=codec,
                schedules=checked_schedules(schedules),
                schedules_owner="" if schedules_owner is None else checked_text(schedules_owner, "schedules_owner"),
                apply_limits=apply_limits,
            )
        )

    def _set(self, options: WorkerOptions) -> None:
        self._options = options
        self._registry = Registry(options.workflows)
        self._serving: Serving | None = None
        self._is_built = False
        self._stop_requested = asyncio.Event()
        self._grace_s = options.shutdown_grace_s
        self._running = False
        self._takes_signals = False
        self._block: Block | None = None
        self._block_signals = ExitStack()

    def __repr__(self) -> str:
        names = ", ".join(sorted({served.workflow_type for served in self._registry.served}))
        return f"<Worker of {names or 'nothing yet'}>"

    @property
    def address(self) -> str | None:
        """The address it was given; None: $KAGZI_ADDRESS, then localhost:50051."""
        return self._options.address

    @property
    def options(self) -> WorkerOptions:
        """All its options."""
        return self._options

    @property
    def problem(self) -> str | None:
        """Why it gets no work at the moment, in words; None while it is connected and gets work."""
        return "the worker is not connected to a server" if self._serving is None else self._serving.problem

    @property
    def registered(self) -> tuple[Workflow[Any, Any], ...]:
        """The workflows it executes."""
        return tuple(self._registry)

    # --- the fluent spelling ------------------------------------------------------------------------------------------

    def _with(self, **changes: Any) -> Self:
        changed = type(self).__new__(type(self))
        changed._set(msgspec.structs.replace(self._options, **changes))  # noqa: SLF001  another of this class
        return changed

    def at(self, address: str, *, credentials: bool = True) -> Self:
        """The same worker for the server at another `address`; without its `api_key` and `tls` if `credentials` is
        False, because they are for another server."""
        return self._with(address=address, **({} if credentials else {"api_key": None, "tls": None}))

    def tls(self, tls: bool | Tls) -> Self:
        """The same worker with this `tls`."""
        return self._with(tls=tls)

    def codec(self, codec: Codec) -> Self:
        """The same worker with this `codec`."""
        return self._with(codec=codec)

    def namespace(self, namespace: str) -> Self:
        """The same worker in this `namespace`."""
        return self._with(namespace=namespace)

    def max_concurrent(self, n: int) -> Self:
        """The same worker with slots for `n` runs, 1 to 10,000."""
        return self._with(max_concurrent=checked_number(n, "max_concurrent"))

    def threads(self, n: int) -> Self:
        """The same worker with `n` threads for sync steps."""
        return self._with(threads=checked_number(n, "threads"))

    def retries(self, n: int) -> Self:
        """The same worker with `n` attempts after the first as the default for steps: `Retry.attempts(n + 1)`."""
        return self._with(retry=retry_of_extra_tries(n))

    def retry(self, retry: Retry) -> Self:
        """The same worker with this `retry` as the default for steps."""
        return self._with(retry=check_retry(retry))

    def label(self, key: str, value: str) -> Self:
        """The same worker with another label: `key` and `value`."""
        return self._with(labels=checked_labels({**self._options.labels, key: value}))

    def hostname(self, hostname: str) -> Self:
        """The same worker with another displayed `hostname`. Default: the name of the machine."""
        return self._with(hostname=checked_text(hostname, "hostname"))

    def version(self, version: str) -> Self:
        """The same worker with your program's `version` as its label `version`. `WorkerInfo.version` is the SDK's."""
        return self.label(VERSION_LABEL, checked_text(version, "version"))

    def build_id(self, build_id: str) -> Self:
        """The same worker with another `build_id`. A run whose history does not match the code of one build is offered
        to other builds."""
        return self._with(build_id=checked_text(build_id, "build_id"))

    def workflows(self, workflows: Iterable[AnyWorkflow]) -> Self:
        """The same worker for these `workflows`."""
        return self._with(workflows=listed(workflows))

    def schedules(self, schedules: "Iterable[DeclaredSchedule]", *, owner: str | None = None) -> Self:
        """The same worker, which creates or updates these `schedules` of an `owner` when it starts."""
        whose = self._options.schedules_owner if owner is None else checked_text(owner, "owner")
        return self._with(schedules=checked_schedules(schedules), schedules_owner=whose)

    def apply_limits(self) -> Self:
        """The same worker, which applies the limits that its workflows declare when it starts."""
        return self._with(apply_limits=True)

    def build(self) -> Self:
        """The worker, ready to run; it may be awaited. Raises InvalidArgument if it has no workflows."""
        self._check_workflows()
        self._is_built = True
        return self

    def __await__(self) -> Generator[Any, Any, Self]:
        """For `await worker.build()`, which connects to nothing."""
        if not self._is_built:
            raise TypeError("a Worker is not awaited. Write: await worker.run()")
        yield from ()
        return self

    def _check_workflows(self) -> None:
        if not len(self._registry):
            raise InvalidArgument(
                "This worker has no workflows. Give some: Worker(workflows=[...]).", field="workflows"
            )

    # --- at work ------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Returns when a server has accepted the worker. Raises Unavailable within seconds if none can be reached.

        In a program that does not handle SIGTERM and Ctrl-C itself, these signals end the block: it is cancelled, the
        worker drains, and the program ends with exit code 0.
        """
        block = Block()
        with ExitStack() as entered:
            entered.enter_context(block.listening(lambda: not self._takes_signals))
            try:
                await self._enter()
            except asyncio.CancelledError:
                block.leave_program()
                raise
            self._block, self._block_signals = block, entered.pop_all()
        return self

    async def _enter(self) -> None:
        if self._serving is not None:
            raise PreconditionFailed(
                "This worker is already running. Create another one: Worker(...) or worker.label(...)."
            )
        self._check_workflows()
        options = self._options
        record = self._record()
        connection = open_connection(options.address, api_key=options.api_key, tls=options.tls, codec=options.codec)
        serving = Serving(
            connection,
            add_schemas(write_register(record), registered_schemas(self._registry)),
            Executor(
                self._registry,
                retry=options.retry,
                threads=options.threads or options.max_concurrent,
                build_id=record.build_id,
                record_inputs=options.record_inputs,
                encoded=options.codec is not None,
                worker_id=record.worker_id,
            ),
            on_drain=self.stop,
        )
        await serving.start()
        try:
            await apply_declared(connection, options, self._registry.limits)
        except BaseException:
            await serving.stop(self._grace_s)
            raise
        self._serving = serving

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Drains. Raises the error that ended the session, if a server refused the worker; SystemExit if a signal ended
        the block."""
        block, self._block = self._block, None
        if block is not None:
            block.is_over = True
        with self._block_signals:
            await self._leave(error)
        if block is not None and isinstance(error, asyncio.CancelledError):
            block.leave_program()

    async def _leave(self, error: BaseException | None) -> None:
        serving, self._serving = self._serving, None
        if serving is None:
            return
        ended = serving.ended
        failed_before = ended.done()
        try:
            await serving.stop(self._grace_s)
        finally:
            self._forget_stop()
        if error is None and failed_before and not ended.cancelled():
            ended.result()

    async def run(self, *, handle_signals: bool = True) -> None:
        """Serve until SIGINT, SIGTERM, `stop()`, cancellation, or a server that asks the worker to drain. Then finish
        leased runs within `shutdown_grace`, hand back the rest and return. A second signal ends the process at once.

        Also works inside `async with worker:`. Signals are handled in the main thread only, and the previous handlers
        are restored at the end. Set `handle_signals` to False in an application that handles them itself.
        """
        if self._running:
            raise PreconditionFailed("This worker runs already. Make another one: Worker(...) or worker.label(...).")
        self._running, self._takes_signals = True, handle_signals
        try:
            with on_stop_signal(self.stop) if handle_signals else nullcontext():
                await self._run_until_stopped()
        finally:
            self._running = self._takes_signals = False

    def serve(self) -> None:
        """Serve as a program of its own: executes `run()` in a new event loop."""
        with asyncio.Runner(loop_factory=new_fast_loop) as runner:
            runner.run(self.run())

    def stop(self, within: Duration | None = None) -> None:
        """Make `run()` drain and return, as a signal does. `within` shortens `shutdown_grace`. Call it in the worker's
        event loop."""
        if within is not None:
            self._grace_s = min(self._grace_s, parse_duration(within, what="within").total_seconds())
        self._stop_requested.set()

    async def _run_until_stopped(self) -> None:
        stopping = asyncio.ensure_future(self._stop_requested.wait())
        try:
            if self._serving is None:
                await self._enter_unless(stopping)
            if self._serving is not None:
                await asyncio.wait((stopping, self._serving.ended), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            await self._leave(None)
            self._forget_stop()

    async def _enter_unless(self, stopping: "asyncio.Future[Any]") -> None:
        entering = asyncio.ensure_future(self._enter())
        try:
            await asyncio.wait((entering, stopping), return_when=asyncio.FIRST_COMPLETED)
            if entering.done():
                entering.result()
        finally:
            entering.cancel()
            await asyncio.wait((entering,))

    def _forget_stop(self) -> None:
        """So that the worker may run again, even in another event loop."""
        self._stop_requested = asyncio.Event()
        self._grace_s = self._options.shutdown_grace_s

    def _build_id(self) -> str:
        if self._options.build_id is not None:
            return self._options.build_id
        from .build_id import default_build_id  # noqa: PLC0415  loaded only by programs that run a worker

        return default_build_id(workflow.fn for workflow in self._registry)

    def _record(self) -> WorkerRecord:
        options = self._options
        return WorkerRecord(
            worker_id=SystemIds().token(),
            namespace=checked_namespace(options.namespace),
            served=self._registry.served,
            max_concurrent=options.max_concurrent,
            hostname=options.hostname,
            pid=os.getpid(),
            sdk_version=__version__,
            build_id=self._build_id(),
            labels=options.labels,
        )
