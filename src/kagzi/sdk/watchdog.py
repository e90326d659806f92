"""Heartbeats that survive a blocked event loop.

User code may block the loop (a long computation, a blocking driver in an `async def`). A thread sees it, keeps the leases of the
runs with calls on a channel of its own, and says which code is to blame. Not for ever: a process that hangs must lose its runs.
If the server lives in the same blocked loop (embedded), nobody can take the runs over while it is blocked, and the thread's
calls just time out.
"""

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable

import grpc

from ..v1 import worker_pb2 as pb
from ..v1.worker_pb2_grpc import WorkerServiceStub
from .connection import Metadata

logger = logging.getLogger("kagzi.worker")

LIMIT_S = 600.0
_TICKS_PER_LEASE = 12
_STACK_LINES = 12

OpenChannel = Callable[[], tuple[grpc.Channel, Metadata]]


class Watchdog:
    """Made and started on the loop it watches."""

    def __init__(
        self,
        worker_id: str,
        namespace: str,
        *,
        proofs: Callable[[], list[bytes]],
        open_channel: OpenChannel,
        lease_ms: int,
        heartbeat_ms: int,
        limit_s: float = LIMIT_S,
    ) -> None:
        self._worker_id = worker_id
        self._namespace = namespace
        self._proofs = proofs
        self._open_channel = open_channel
        self._lease_s = lease_ms / 1_000
        self._patience_s = self._lease_s / 3
        self._heartbeat_s = min(heartbeat_ms / 1_000, self._patience_s)
        self._tick_s = min(self._lease_s / _TICKS_PER_LEASE, 1.0)
        self._limit_s = limit_s
        self._loop_thread = threading.get_ident()
        self._alive_at = time.monotonic()
        self._stop = threading.Event()
        self._channel: grpc.Channel | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._thread = threading.Thread(target=self._watch, name="kagzi-watchdog", daemon=True)

    def start(self) -> None:
        self._tick()
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._timer is not None:
            self._timer.cancel()
        channel = self._channel
        if channel is not None:
            channel.close()  # ends a call that is under way
        self._thread.join(timeout=1.0)

    def _tick(self) -> None:
        self._alive_at = time.monotonic()
        self._timer = asyncio.get_running_loop().call_later(self._tick_s, self._tick)

    # --- in the thread -------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        while not self._stop.wait(self._tick_s):
            if time.monotonic() - self._alive_at > self._patience_s:
                self._keep_leases(self._alive_at)

    def _keep_leases(self, blocked_since: float) -> None:
        """Until the loop is alive again, the limit is reached or the worker stops."""
        self._blame(time.monotonic() - blocked_since)
        try:
            while self._alive_at == blocked_since and not self._stop.is_set():
                if time.monotonic() - blocked_since > self._limit_s:
                    self._give_up(blocked_since)
                    return
                self._heartbeat()
                self._wait(blocked_since, self._heartbeat_s)
        finally:
            self._close_channel()
        if not self._stop.is_set():
            logger.warning("the event loop is alive again after %.1f s", time.monotonic() - blocked_since)

    def _wait(self, blocked_since: float, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self._alive_at == blocked_since and time.monotonic() < until and not self._stop.wait(self._tick_s):
            pass

    def _heartbeat(self) -> None:
        held = [pb.HeldRun.FromString(proof) for proof in self._proofs()]
        request = pb.HeartbeatRequest(
            worker_id=self._worker_id, namespace_id=self._namespace, active_count=len(held), held=held
        )
        try:
            if self._channel is None:
                self._channel, self._metadata = self._open_channel()
            WorkerServiceStub(self._channel).Heartbeat(request, timeout=self._patience_s, metadata=self._metadata)
        except (grpc.RpcError, ValueError) as error:  # ValueError: the channel was closed by stop()
            if not self._stop.is_set():
                reason = error.details() if isinstance(error, grpc.Call) else error
                logger.warning("no heartbeat from beside the blocked event loop: %s", reason)
            self._close_channel()

    def _close_channel(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def _blame(self, seconds: float) -> None:
        # The documented way to another thread's stack.
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        stack = "".join(traceback.format_stack(frame)[-_STACK_LINES:]) if frame is not None else "(unknown)"
        logger.warning(
            "The event loop has been blocked for %.1f s, so no run of this worker makes progress. Their leases are kept for up "
            "to %.0f s. Make the step a plain `def` (it then runs in a thread), or await asyncio.to_thread(...) for the part "
            "that blocks. It is blocked here:\n%s",
            seconds,
            self._limit_s,
            stack,
        )

    def _give_up(self, blocked_since: float) -> None:
        logger.error(
            "The event loop has been blocked for over %.0f s. The leases of its runs are not kept any longer: other workers "
            "take them over.",
            self._limit_s,
        )
        while self._alive_at == blocked_since and not self._stop.wait(self._tick_s):
            pass
