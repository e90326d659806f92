"""Heartbeats of workers, collected and written with the next poll: the heartbeat of an idle worker costs no
statement."""

import asyncio
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from ...core.providers import Clock
from ...store.protocol import Heartbeat

WorkerKey: TypeAlias = tuple[str, str]
"""Namespace and worker id."""

_REMEMBERED = 100_000


class Heartbeats:
    """`refresh_s`: how often a worker without changes is written."""

    def __init__(self, clock: Clock, refresh_s: float) -> None:
        self._clock = clock
        self._refresh_s = refresh_s
        self._heartbeats: dict[WorkerKey, Heartbeat] = {}
        self._noted: dict[WorkerKey, tuple[int, float]] = {}  # last written active count, and when

    def joined(self, worker: WorkerKey, active_count: int) -> None:
        """The worker was just registered, which recorded it too."""
        if len(self._noted) >= _REMEMBERED:
            self._noted.clear()
        self._noted[worker] = (active_count, asyncio.get_running_loop().time())

    def left(self, worker: WorkerKey) -> None:
        self._noted.pop(worker, None)

    def note(self, worker: WorkerKey, active_count: int, completed_delta: int = 0, failed_delta: int = 0) -> None:
        beat = self._heartbeats.get(worker)
        if beat is None:
            now = asyncio.get_running_loop().time()
            noted_active, noted_at = self._noted.get(worker, (-1, 0.0))
            nothing_new = active_count == noted_active and not completed_delta and not failed_delta
            if nothing_new and now - noted_at < self._refresh_s:
                return
        else:
            completed_delta += beat.completed_delta
            failed_delta += beat.failed_delta
        namespace, worker_id = worker
        self._heartbeats[worker] = Heartbeat(
            worker_id, active_count, completed_delta, failed_delta, self._clock.now(), namespace
        )

    def take(self) -> Sequence[Heartbeat]:
        heartbeats, self._heartbeats = self._heartbeats, {}
        if heartbeats:
            now = asyncio.get_running_loop().time()
            for worker, beat in heartbeats.items():
                if worker in self._noted:
                    self._noted[worker] = (beat.active_count, now)
        return list(heartbeats.values())

    def put_back(self, heartbeats: Sequence[Heartbeat]) -> None:
        """The write failed: keeps the heartbeats for the next one."""
        for beat in heartbeats:
            worker = (beat.namespace, beat.worker_id)
            later = self._heartbeats.get(worker)
            if later is not None:
                beat = msgspec.structs.replace(  # noqa: PLW2901  both in one
                    later,
                    completed_delta=later.completed_delta + beat.completed_delta,
                    failed_delta=later.failed_delta + beat.failed_delta,
                )
            self._heartbeats[worker] = beat
