"""How much others slow this machine down while something is measured: the CPU time that a fixed loop takes.

A virtual machine shares its cores with its neighbours. While they compute, the same instructions take up to 1.8 times
as long. Neither the load average nor stolen time shows it, and it changes from second to second. So a loop of a third
of a millisecond runs 20 times a second beside every measurement. See docs/adr/0081.
"""

import threading
import time
from bisect import insort
from collections.abc import Callable
from statistics import mean
from types import TracebackType
from typing import Self

CALM = 1.15
"""A measurement counts as undisturbed up to this: processes of the measurement itself slow the loop down, too."""
_INTERVAL_S = 0.05
_ROUNDS = 12_000
_CALIBRATION_S = 2.0
_GLANCE_S = 0.5
_CALM_SHARE = 20  # the fastest of 20 samples is how fast the machine is when it is left alone


def loop_ns() -> int:
    """The CPU time of the loop. Waiting for a core does not count."""
    began = time.thread_time_ns()
    total = 0
    for number in range(_ROUNDS):
        total += number & 3
    return time.thread_time_ns() - began


class MachineSpeed:
    """Takes samples in a thread, from entering to leaving."""

    def __init__(self, sample: Callable[[], int] = loop_ns, interval_s: float = _INTERVAL_S) -> None:
        self._sample = sample
        self._interval_s = interval_s
        self._samples: list[int] = []
        self._sorted: list[int] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._take_samples, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def calibrate(self, seconds: float = _CALIBRATION_S) -> None:
        """Take samples while nothing is measured."""
        time.sleep(seconds)

    def wait_for_calm(self, most_s: float) -> None:
        """Return when the machine is calm, or after `most_s`: slow times last from a second to minutes."""
        deadline = time.monotonic() + most_s
        calm = False
        while not calm and time.monotonic() < deadline:
            mark = self.mark()
            time.sleep(_GLANCE_S)
            calm = self.slowdown_since(mark) <= CALM

    def mark(self) -> int:
        """The beginning of a measurement, for `slowdown_since`."""
        return len(self._samples)

    def slowdown_since(self, mark: int) -> float:
        """The mean of the samples since then, as a multiple of the fast ones so far; 1 if there are none."""
        samples = self._samples[mark:]
        if not samples:
            return 1.0
        return round(mean(samples) / self._sorted[len(self._sorted) // _CALM_SHARE], 3)

    def _take_samples(self) -> None:
        while not self._ended.wait(self._interval_s):
            sample = self._sample()
            insort(self._sorted, sample)
            self._samples.append(sample)
