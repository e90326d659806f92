"""Signs of life of workers, gathered and written with the next look: a heartbeat of an idle worker costs no statement."""

import asyncio
from collections.abc import Sequence

from ..core.seams import Clock
from ..store.protocol import WorkerBeat

_REMEMBERED = 100_000
REFRESH_S = 60.0  # how often a worker is noted of which there is nothing new to say


class Beats:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._beats: dict[str, WorkerBeat] = {}
        self._noted: dict[str, tuple[int, float]] = {}  # active count, and when it was said

    def joined(self, worker_id: str, active_count: int) -> None:
        """The worker has just been registered, which notes it, too."""
        if len(self._noted) >= _REMEMBERED:
            self._noted.clear()
        self._noted[worker_id] = (active_count, asyncio.get_running_loop().time())

    def left(self, worker_id: str) -> None:
        self._noted.pop(worker_id, None)

    def note(self, worker_id: str, active_count: int, completed_delta: int = 0, failed_delta: int = 0) -> None:
        beat = self._beats.get(worker_id)
        if beat is None:
            now = asyncio.get_running_loop().time()
            noted_active, noted_at = self._noted.get(worker_id, (-1, 0.0))
            nothing_new = active_count == noted_active and not completed_delta and not failed_delta
            if nothing_new and now - noted_at < REFRESH_S:
                return
        else:
            completed_delta += beat.completed_delta
            failed_delta += beat.failed_delta
        self._beats[worker_id] = WorkerBeat(worker_id, active_count, completed_delta, failed_delta, self._clock.now())

    def take(self) -> Sequence[WorkerBeat]:
        beats = list(self._beats.values())
        self._beats.clear()
        if beats:
            now = asyncio.get_running_loop().time()
            for beat in beats:
                if beat.worker_id in self._noted:
                    self._noted[beat.worker_id] = (beat.active_count, now)
        return beats

    def put_back(self, beats: Sequence[WorkerBeat]) -> None:
        """They could not be written: the counts must not be lost."""
        for beat in beats:
            later = self._beats.get(beat.worker_id)
            if later is None:
                self._beats[beat.worker_id] = beat
            else:
                self._beats[beat.worker_id] = WorkerBeat(
                    beat.worker_id,
                    later.active_count,
                    later.completed_delta + beat.completed_delta,
                    later.failed_delta + beat.failed_delta,
                    later.at,
                )
