"""Worker: executes workflows."""

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

import msgspec

from .. import __version__
from ..core import limits
from ..core.duration import Duration, parse_duration
from ..core.errors import InvalidArgument, PreconditionFailed
from ..core.records import NO_LABELS, WorkerRecord
from ..system import SystemIds
from ..wire.workers import write_register
from .connecting import checked_namespace, open_connection
from .credentials import Tls
from .executor import Executor
from .registry import AnyWorkflow, Registry
from .retry import Retry, retry_of_extra_tries
from .schedule_options import DeclaredSchedule, checked_schedules
from .schedules import apply_schedules
from .serving import Serving
from .start import checked_labels
from .workflow import Workflow

BUILD_VARIABLE = "KAGZI_BUILD_ID"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What was said about a worker, checked."""

    address: str | None
    workflows: tuple[AnyWorkflow, ...]
    namespace: str | None
    max_concurrent: int
    retry: Retry | None
    labels: Mapping[str, str]
    hostname: str
    build_id: str
    shutdown_grace_s: float
    threads: int | None
    api_key: str | None
    tls: bool | Tls | None
    schedules: tuple[DeclaredSchedule, ...] = ()


class Worker:
    """Executes workflows: `async with worker:`, `await worker.run()` or, as a program, `worker.serve()`.

    Args:
        address: As in `Kagzi.connect`. Default: $KAGZI_ADDRESS, then localhost:50051.
        workflows: The workflows it executes, or pairs (name, function).
        namespace: Where it works. Default: $KAGZI_NAMESPACE, then "default".
        max_concurrent: How many runs it holds at once, 1 to 10,000.
        retries: Attempts after the first, as the default for steps. Give either this or `retry`.
        retry: The default for steps whose workflow has none.
        labels: Shown with the worker.
        hostname: Shown with the worker. Default: that of the machine.
        build_id: Which build of the code it runs: a run that was paused because the code did not fit is offered to
            other builds. Default: $KAGZI_BUILD_ID.
        shutdown_grace: How long it may take to finish its runs when it stops; the rest is handed back.
        threads: How many sync steps run at once. Default: `max_concurrent`.
        api_key: As in `Kagzi.connect`.
        tls: As in `Kagzi.connect`.
        schedules: Schedules, declared with `kagzi.schedule`, that it sets up when it starts.

    The methods named like arguments return a new worker. Raises InvalidArgument for options that cannot work.
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
        schedules: Iterable[DeclaredSchedule] = (),
    ) -> None:
        if retries is not None and retry is not None:
            raise InvalidArgument("retries and retry are both given. Give one of them.", field="retries")
        self._set(
            WorkerOptions(
                address=address,
                workflows=tuple(workflows),
                namespace=namespace,
                max_concurrent=_checked_number(max_concurrent, "max_concurrent"),
                retry=_checked_retry(retry) if retries is None else retry_of_extra_tries(retries),
                labels=checked_labels(labels) or NO_LABELS,
                hostname=hostname or socket.gethostname(),
                build_id=build_id if build_id is not None else os.environ.get(BUILD_VARIABLE, ""),
                shutdown_grace_s=parse_duration(shutdown_grace, what="shutdown_grace").total_seconds(),
                threads=None if threads is None else _checked_number(threads, "threads"),
                api_key=api_key,
                tls=tls,
                schedules=checked_schedules(schedules),
            )
        )

    def _set(self, options: WorkerOptions) -> None:
        self._options = options
        self._registry = Registry(options.workflows)
        self._serving: Serving | None = None
        self._drain_asked: asyncio.Event | None = None

    def __repr__(self) -> str:
        names = ", ".join(sorted({served.workflow_type for served in self._registry.served}))
        return f"<Worker of {names or 'nothing yet'}>"

    @property
    def address(self) -> str | None:
        """The address it was given; None: $KAGZI_ADDRESS, then localhost:50051."""
        return self._options.address

    @property
    def registered(self) -> tuple[Workflow[Any, Any], ...]:
        """The workflows it executes."""
        return tuple(self._registry)

    # --- the fluent spelling -------------------------------------------------------------------------------------------

    def _with(self, **changes: Any) -> Self:
        changed = type(self).__new__(type(self))
        changed._set(msgspec.structs.replace(self._options, **changes))  # noqa: SLF001  another of this class
        return changed

    def at(self, address: str) -> Self:
        """The same worker for another `address`."""
        return self._with(address=address)

    def namespace(self, namespace: str) -> Self:
        """The same worker in this `namespace`."""
        return self._with(namespace=namespace)

    def max_concurrent(self, n: int) -> Self:
        """The same worker with room for `n` runs at once, 1 to 10,000."""
        return self._with(max_concurrent=_checked_number(n, "max_concurrent"))

    def threads(self, n: int) -> Self:
        """The same worker with `n` threads for sync steps."""
        return self._with(threads=_checked_number(n, "threads"))

    def retries(self, n: int) -> Self:
        """The same worker with `n` attempts after the first as the default for steps."""
        return self._with(retry=retry_of_extra_tries(n))

    def retry(self, retry: Retry) -> Self:
        """The same worker with this `retry` as the default for steps."""
        return self._with(retry=_checked_retry(retry))

    def label(self, key: str, value: str) -> Self:
        """The same worker with another label: `key` and `value`."""
        return self._with(labels=checked_labels({**self._options.labels, key: value}))

    def workflows(self, workflows: Iterable[AnyWorkflow]) -> Self:
        """The same worker for these `workflows`."""
        return self._with(workflows=tuple(workflows))

    def schedules(self, schedules: Iterable[DeclaredSchedule]) -> Self:
        """The same worker, which sets up these `schedules` when it starts."""
        return self._with(schedules=checked_schedules(schedules))

    # --- at work -------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Returns when a server has welcomed the worker. Raises Unavailable within seconds if none can be reached."""
        if self._serving is not None:
            raise PreconditionFailed(
                "This worker is at work already. Make another one: Worker(...) or worker.label(...)."
            )
        if not len(self._registry):
            raise InvalidArgument(
                "This worker has no workflows. Give some: Worker(workflows=[...]).", field="workflows"
            )
        options = self._options
        drain_asked = self._drain_asked = asyncio.Event()
        connection = open_connection(options.address, api_key=options.api_key, tls=options.tls)
        serving = Serving(
            connection,
            write_register(self._record()),
            Executor(
                self._registry,
                retry=options.retry,
                threads=options.threads or options.max_concurrent,
                build_id=options.build_id,
            ),
            grace_s=options.shutdown_grace_s,
            on_drain=drain_asked.set,
        )
        await serving.start()
        try:
            await apply_schedules(connection, checked_namespace(options.namespace), options.schedules)
        except BaseException:
            await serving.stop()
            raise
        self._serving = serving
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Drains. Raises what ended the session, if a server refused to go on with it."""
        serving, self._serving = self._serving, None
        if serving is None:
            return
        ended = serving.ended
        failed_before = ended.done()
        await serving.stop()
        if error is None and failed_before and not ended.cancelled():
            ended.result()

    async def run(self) -> None:
        """Serve until cancelled, or until a server asks the worker to drain."""
        await self._run_until(asyncio.Event())

    def serve(self) -> None:
        """Serve until SIGINT or SIGTERM; then finish what is held within `shutdown_grace`, hand the rest back and return.
        A second signal ends the process at once."""
        with asyncio.Runner(loop_factory=_fast_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()

        def on_signal() -> None:
            for each in _SIGNALS:
                loop.remove_signal_handler(each)
                signal.signal(each, signal.SIG_DFL)  # the second one is final
            stop.set()

        if threading.current_thread() is threading.main_thread():  # elsewhere Python hears no signals
            for each in _SIGNALS:
                loop.add_signal_handler(each, on_signal)
        await self._run_until(stop)

    async def _run_until(self, stop: asyncio.Event) -> None:
        stopping = asyncio.ensure_future(stop.wait())
        entering = asyncio.ensure_future(self.__aenter__())
        try:
            await asyncio.wait((entering, stopping), return_when=asyncio.FIRST_COMPLETED)
            if entering.done():
                entering.result()
                await self._until_over(stopping)
        finally:
            entering.cancel()
            await asyncio.wait((entering,))
            stopping.cancel()
            await self.__aexit__(None, None, None)

    async def _until_over(self, stopping: "asyncio.Future[Any]") -> None:
        if self._serving is None or self._drain_asked is None:
            return
        draining = asyncio.ensure_future(self._drain_asked.wait())
        try:
            await asyncio.wait((stopping, draining, self._serving.ended), return_when=asyncio.FIRST_COMPLETED)
        finally:
            draining.cancel()

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
            build_id=options.build_id,
            labels=options.labels,
        )


def _checked_number(n: object, what: str) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= limits.WORKER_MAX_CONCURRENT:
        raise InvalidArgument(f"{what}={n!r} must be a whole number, 1..{limits.WORKER_MAX_CONCURRENT}.", field=what)
    return n


def _checked_retry(retry: object) -> Retry | None:
    if retry is None or isinstance(retry, Retry):
        return retry
    raise InvalidArgument(f"retry={retry!r} is no Retry. Write Retry.attempts(3), for example.", field="retry")


def _fast_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop  # noqa: PLC0415  not everywhere, and only for programs that are workers
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
