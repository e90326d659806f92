"""Heartbeats that survive a blocked event loop, and reports of other problems that keep a worker from working.

User code may block the event loop (a long computation, a blocking driver in an `async def`). A thread detects this,
renews the leases of the runs over its own channel, and reports the code that blocks. It stops after a while: a process
that hangs must lose its runs. The same thread detects sync steps that wait for a thread, and steps that hold the
GIL.
"""

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable

import grpc

from ...v1 import worker_pb2 as pb
from ...v1.worker_pb2_grpc import WorkerServiceStub
from ...wire.calls.call import Metadata
from ...wire.requests import write_diagnostics
from ..execution.calls.threads import Crowd, StepThreads
from ..transport.unreachable import cause_of
from .blocked_by import blocked_by
from .diagnostics import Diagnostics
from .gil_contention import GilWatch

logger = logging.getLogger("kagzi.worker")

LIMIT_S = 600.0
_TICKS_PER_LEASE = 12
_STACK_LINES = 12
_STEPS_NAMED = 5

OpenChannel = Callable[[], tuple[grpc.Channel, Metadata]]


class Watchdog:
    """Created and started on the event loop that it watches."""

    def __init__(
        self,
        worker_id: str,
        namespace: str,
        *,
        proofs: Callable[[], list[bytes]],
        on_renewed: Callable[[float], None],
        open_channel: OpenChannel,
        lease_ms: int,
        heartbeat_ms: int,
        diagnostics: Diagnostics | None = None,
        threads: StepThreads | None = None,
        limit_s: float = LIMIT_S,
    ) -> None:
        self._worker_id = worker_id
        self._namespace = namespace
        self._proofs = proofs
        self._on_renewed = on_renewed
        self._open_channel = open_channel
        self._lease_s = lease_ms / 1_000
        self._threshold_s = self._lease_s / 3
        self._heartbeat_s = min(heartbeat_ms / 1_000, self._threshold_s)
        self._tick_s = min(self._lease_s / _TICKS_PER_LEASE, 1.0)
        self._limit_s = limit_s
        self._diagnostics = diagnostics or Diagnostics()
        self._threads = threads
        self._gil = GilWatch(self._threshold_s, threading.get_native_id())
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
            channel.close()  # aborts a call in flight
        self._thread.join(timeout=1.0)

    def _tick(self) -> None:
        self._alive_at = time.monotonic()
        self._timer = asyncio.get_running_loop().call_later(self._tick_s, self._tick)

    # --- in the thread ------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        try:
            self._watch_until_stopped()
        finally:
            self._gil.close()

    def _watch_until_stopped(self) -> None:
        polled_at = time.monotonic()
        while not self._stop.wait(self._tick_s):
            elapsed_s = time.monotonic() - polled_at
            late_s = max(elapsed_s - self._tick_s, 0.0)
            if self._threads is not None:
                self._watch_steps(self._threads, elapsed_s, late_s)
            if time.monotonic() - self._alive_at > self._threshold_s:
                self._keep_leases(self._alive_at, late_s)
            polled_at = time.monotonic()

    def _watch_steps(self, threads: StepThreads, elapsed_s: float, late_s: float) -> None:
        contention = self._gil.poll(threads.busy(), threads.spent(), elapsed_s=elapsed_s, late_s=late_s)
        if contention is not None:
            self._diagnostics.report("gil_held", contention)
        crowd = threads.crowd()
        if crowd is not None and time.monotonic() - crowd.oldest_at > self._threshold_s:
            self._diagnostics.report("threads_full", _crowded(crowd, threads.size, time.monotonic()))

    def _keep_leases(self, blocked_since: float, late_s: float) -> None:
        """Renews leases until the loop runs again, the limit is reached or the worker stops. While this thread was
        late, no thread could run, so that time is not blamed on the loop."""
        blamed = False
        try:
            while self._alive_at == blocked_since and not self._stop.is_set():
                if not blamed and time.monotonic() - blocked_since > self._threshold_s + late_s:
                    blamed = True
                    self._report_blocked(time.monotonic() - blocked_since)
                if time.monotonic() - blocked_since > self._limit_s:
                    self._give_up(blocked_since)
                    return
                self._heartbeat()
                self._wait(blocked_since, self._heartbeat_s)
        finally:
            self._close_channel()
        if blamed and not self._stop.is_set():
            logger.warning("the event loop runs again after %.1f s", time.monotonic() - blocked_since)

    def _wait(self, blocked_since: float, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self._alive_at == blocked_since and time.monotonic() < until and not self._stop.wait(self._tick_s):
            pass

    def _heartbeat(self) -> None:
        leased = [pb.LeasedRun.FromString(proof) for proof in self._proofs()]
        sent_at = time.monotonic()
        diagnostics = self._diagnostics.take()
        request = pb.HeartbeatRequest(
            worker_id=self._worker_id,
            namespace_id=self._namespace,
            active_count=len(leased),
            leased=leased,
            diagnostics=write_diagnostics(diagnostics),
        )
        try:
            if self._channel is None:
                self._channel, self._metadata = self._open_channel()
            WorkerServiceStub(self._channel).Heartbeat(request, timeout=self._threshold_s, metadata=self._metadata)
            self._on_renewed(sent_at)
        except (grpc.RpcError, ValueError) as error:  # ValueError: stop() closed the channel
            self._diagnostics.put_back(diagnostics)
            if not self._stop.is_set():
                reason = cause_of(error.details() or "").text if isinstance(error, grpc.Call) else error
                logger.warning("the watchdog could not send a heartbeat: %s", reason)
            self._close_channel()

    def _close_channel(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def _report_blocked(self, seconds: float) -> None:
        # The documented way to get another thread's stack.
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        stack = "".join(traceback.format_stack(frame)[-_STACK_LINES:]) if frame is not None else "(unknown)"
        self._diagnostics.report(
            "loop_blocked",
            f"The event loop has been blocked for {seconds:.1f} s, so no run of this worker makes progress. Their "
            "leases are "
            f"kept for up to {self._limit_s:.0f} s. {blocked_by(frame)} It is blocked here:\n{stack}",
        )

    def _give_up(self, blocked_since: float) -> None:
        logger.error(
            "The event loop has been blocked for over %.0f s. The leases of its runs are no longer renewed: other "
            "workers "
            "take them over.",
            self._limit_s,
        )
        while self._alive_at == blocked_since and not self._stop.wait(self._tick_s):
            pass


def _crowded(crowd: Crowd, size: int, now: float) -> str:
    longest = sorted(crowd.busy, key=lambda each: each.since)[:_STEPS_NAMED]
    busiest = ", ".join(f"{each.step} (for {now - each.since:.1f} s)" for each in longest)
    more = f" and {len(crowd.busy) - len(longest)} more" if len(crowd.busy) > len(longest) else ""
    return (
        f"{crowd.waiting} sync {'step waits' if crowd.waiting == 1 else 'steps wait'} for a thread, the first one for "
        f"{now - crowd.oldest_at:.1f} s: all {size} threads are taken. They are used by {busiest}{more}. Give the "
        "worker more "
        "threads, Worker(threads=...), take fewer runs at a time, or make these steps async."
    )
