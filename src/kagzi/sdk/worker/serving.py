"""A running worker: its connection, session, executor and watchdog, from start to stop."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from functools import partial

from ...core.text.plurals import counted
from ...core.workflow_types.queues import TypeLimitKeywords
from ...v1 import worker_pb2 as pb
from ..client.unserved import UNSERVED
from ..step_logs.sender import StepLogSender
from ..transport.connection import Connection, checked_namespace
from .diagnostics import Diagnostics
from .ports import Executor
from .registry import WorkerOptions
from .session import Session
from .watchdog import Watchdog

logger = logging.getLogger("kagzi.worker")

RELEASE_S = 5.0  # how long the server may take to acknowledge released runs
_HANDING_BACK = 0.25  # the largest part of the grace time for handing runs back
_HANDING_BACK_S = 1.0


class Serving:
    """Started once and stopped once. `ended` is done when it can no longer serve."""

    def __init__(
        self,
        connection: Connection,
        register: pb.RegisterRequest,
        executor: Executor,
        *,
        on_drain: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._register = register
        self._executor = executor
        self._diagnostics = Diagnostics()
        self._session = Session(
            connection,
            register,
            executor,
            on_welcome=self._on_welcome,
            on_drain=on_drain,
            diagnostics=self._diagnostics,
        )
        self._watchdog: Watchdog | None = None
        self._logs: StepLogSender | None = None

    async def start(self) -> None:
        """Returns when a server has accepted the worker. Raises Unavailable, or the server's reason to refuse it."""
        UNSERVED.served(served.workflow_type for served in self._register.served)
        await self._connection.open()
        try:
            await self._session.start()
        except BaseException:
            await self._end()
            raise
        self._session.ended.add_done_callback(_log_why)
        self._diagnostics.step_logs = self._executor.step_logs
        if self._executor.step_logs is not None:
            self._executor.step_logs.codec = self._connection.codec
            self._logs = StepLogSender(self._session.report_diagnostics, self._executor.step_logs)
            self._logs.start()
        logger.info(
            "worker %s serves %s at %s",
            self._register.worker_id,
            ", ".join(sorted({served.workflow_type for served in self._register.served})),
            self._connection.address.text,
        )

    @property
    def ended(self) -> "asyncio.Task[None]":
        return self._session.ended

    @property
    def problem(self) -> str | None:
        return self._session.problem

    def _on_welcome(self, welcome: pb.SessionWelcome) -> None:
        self._connection.note_worker(self._register.namespace_id, self._register.worker_id)
        if self._watchdog is None:
            loop = asyncio.get_running_loop()
            self._diagnostics.on_report = partial(_call_in, loop, self._session.report_diagnostics)
            self._watchdog = Watchdog(
                self._register.worker_id,
                self._register.namespace_id,
                proofs=self._session.leased.proofs,
                on_renewed=self._session.leased.clock.renewed,
                open_channel=self._connection.blocking_channel,
                lease_ms=welcome.lease_ms,
                heartbeat_ms=welcome.heartbeat_ms,
                diagnostics=self._diagnostics,
                threads=self._executor.threads,
            )
            self._watchdog.start()

    async def stop(self, grace_s: float) -> None:
        """Take no more work, finish the leased runs, hand the rest back before the grace time ends, and disconnect."""
        try:
            if not self._session.ended.done():
                logger.info("worker %s stops; runs to finish: %d", self._register.worker_id, self._executor.active)
                self._session.drain()
                await self._finish_or_release(grace_s)
                if self._logs is not None:
                    self._logs.flush()
                await self._session.leave()
        finally:
            await self._end()

    async def _finish_or_release(self, grace_s: float) -> None:
        handing_back_s = min(grace_s * _HANDING_BACK, _HANDING_BACK_S)
        if await self._drained(grace_s - handing_back_s):
            return
        logger.warning("handing back %s that did not finish in time", counted(self._executor.active, "run"))
        self._session.refuse_tasks()
        self._executor.release_all("the worker stops")
        if not await self._drained(RELEASE_S):
            logger.warning(
                "could not hand back %s: other workers take over when the leases end",
                counted(self._executor.active, "run"),
            )

    async def _drained(self, timeout_s: float) -> bool:
        """Whether no run is left. Does not wait for a session that cannot continue."""
        drained = asyncio.ensure_future(self._executor.drained())
        try:
            await asyncio.wait((drained, self._session.ended), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            return drained.done()
        finally:
            drained.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await drained

    async def _end(self) -> None:
        UNSERVED.served_no_longer(served.workflow_type for served in self._register.served)
        if self._watchdog is not None:
            self._watchdog.stop()
        if self._logs is not None:
            self._logs.stop()
        await self._session.close()
        self._executor.close()
        await self._connection.close()


async def apply_declared(
    connection: Connection, options: WorkerOptions, limits: Mapping[str, TypeLimitKeywords]
) -> None:
    """Apply to the server what the worker's program declares: schedules, and limits of its workflows."""
    namespace = checked_namespace(options.namespace)
    if options.schedules or options.schedules_owner:
        from ..client.operations.schedule_sync import apply_schedules  # noqa: PLC0415  most workers have none

        await apply_schedules(connection, namespace, options.schedules, options.schedules_owner)
    if limits:
        from ..client.operations.declared_limits import sync_limits  # noqa: PLC0415  as above

        await sync_limits(connection, namespace, limits, apply=options.apply_limits)


def _call_in(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(call)


def _log_why(ended: "asyncio.Task[None]") -> None:
    if not ended.cancelled() and (problem := ended.exception()) is not None:
        logger.error("the worker can no longer serve: %s", problem)
