"""Detects steps that hold the GIL.

One thread of a Python process runs Python code at a time. A sync step that computes in Python lets the others in every
few milliseconds only; one that computes in C without letting go of the GIL does not let them in at all. A step that
computes in C and lets go (most of numpy, zlib, hashlib) uses the processor, too, and harms nobody. Two things tell them
apart: while whoever asks keeps the GIL for some milliseconds, a step that needs it stands still; and whoever sleeps for
a moment wakes late, because the step has to be made to let go. On a machine with too much to do everybody wakes late:
the time spent in line for a processor is not counted, neither that of whoever asks nor that of the event loop, which
may have the GIL while it stands in line.
"""

import os
import sys
import time
from collections.abc import Sequence
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from ..execution.calls.threads import Busy, Spent

_OWN = Path("/proc/thread-self/schedstat")  # Linux: ns on a processor, ns in line for one, turns
_STOOD_S = 0.1  # of a long time, at least so much was not spent in line
_PROBES = 5
_MOSTLY = 3  # of them
_OFTEN = 0.5  # of the looks
_PROBE_S = 0.003  # shorter than what Python lets a thread keep the GIL for
_STANDS_STILL = 0.05  # of the time of a probe
_NAP_S = 0.005  # long enough for the step to go on
_LATE = 0.6  # of the time that Python lets a thread keep the GIL for
_OF_PROCESS = 0.5  # of the processor time of this process
_OF_PROCESSOR = 0.1  # a machine may have more to do than this
_LONG_S = 0.5  # nobody in the whole process could do anything for so long


def cpu_seconds(thread: int) -> float | None:
    """What a living thread has used so far. None: this system does not tell, and nothing is found out."""
    try:
        return time.clock_gettime(time.pthread_getcpuclockid(thread))
    except (AttributeError, OSError):
        return None


class _Late(NamedTuple):
    """How late somebody woke, and how much of that nobody was even in line for a processor."""

    late_s: float
    stood_s: float

    @property
    def too_long(self) -> bool:
        return self.late_s >= _LONG_S and self.stood_s >= _STOOD_S


class GilWatch:
    """`poll` is called now and then by a thread that does nothing but sleep in between. `loop_thread`: the system's
    number of the thread that runs the event loop."""

    def __init__(self, threshold_s: float, loop_thread: int | None = None) -> None:
        self._threshold_s = threshold_s
        self._used: dict[Busy, float] = {}  # processor time at the last poll
        self._process_s = time.process_time()
        self._account = _Account(loop_thread)
        self._suspect: Busy | None = None
        self._since = 0.0
        self._polls = 0
        self._contended = 0

    def poll(self, busy: Sequence[Busy], spent: Sequence[Spent], *, elapsed_s: float, late_s: float) -> str | None:
        """What to tell people, if a step keeps the GIL to itself. `spent` has ended since the last poll; `late_s`: how
        much later than it wanted to the caller woke, after `elapsed_s`."""
        earlier = self._used
        late = _Late(late_s, late_s - self._account.since_last_s())
        before, self._process_s = self._process_s, time.process_time()
        least_s = max(_OF_PROCESS * (self._process_s - before), _OF_PROCESSOR * elapsed_s)
        hog = self._hog(busy, least_s)
        if late.too_long:
            gone = [each.body for each in spent if each.cpu_s - earlier.get(each.body, each.body.cpu_s) >= least_s]
            if gone:
                return _busy_in_c(gone[0].step, late_s)
            if hog is not None and _stands_still(hog.thread):
                return _busy_in_c(hog.step, late_s)
        now = time.monotonic()
        if self._suspect != hog:
            self._suspect, self._since, self._polls, self._contended = hog, max(now - elapsed_s, 0.0), 0, 0
        if hog is None:
            return None
        naps = _naps_beside(hog.thread, self._account)
        longest = max(naps, default=None)
        if longest is not None and longest.too_long:
            return _busy_in_c(hog.step, longest.late_s)
        self._polls += 1
        self._contended += sum(late.stood_s >= _LATE * sys.getswitchinterval() for late in naps) >= _MOSTLY
        if now - self._since < self._threshold_s or self._contended < _OFTEN * self._polls:
            return None
        return _busy_in_python(hog.step, now - hog.since)

    def close(self) -> None:
        """By the thread that looks, when it looks no more."""
        self._account.close()

    def _hog(self, busy: Sequence[Busy], least_s: float) -> Busy | None:
        """The step that used most of what this process used of a processor since the last poll."""
        earlier, self._used = self._used, {}
        hog, most_s = None, 0.0
        for each in busy:
            cpu_s = cpu_seconds(each.thread)
            if cpu_s is None:
                return None
            self._used[each] = cpu_s
            used_s = cpu_s - earlier.get(each, each.cpu_s)
            if used_s > most_s:
                hog, most_s = each, used_s
        return hog if most_s >= least_s else None


def _stands_still(thread: int) -> bool:
    """Whether it does nothing while this thread does not let go of the GIL."""
    before = cpu_seconds(thread)
    end = time.monotonic() + _PROBE_S
    while time.monotonic() < end:
        pass
    after = cpu_seconds(thread)
    return before is not None and after is not None and after - before < _STANDS_STILL * _PROBE_S


def _naps_beside(thread: int, account: "_Account") -> list[_Late]:
    """How late one wakes from short naps beside a step that needs the GIL; nothing, if this one does not."""
    naps: list[_Late] = []
    for _ in range(_PROBES):
        if not _stands_still(thread):
            return []
        account.since_last_s()
        wanted = time.monotonic() + _NAP_S
        time.sleep(_NAP_S)
        late_s = time.monotonic() - wanted
        naps.append(_Late(late_s, late_s - account.since_last_s()))
        if naps[-1].too_long:
            break
    return naps


class _Account:
    """How long the thread that asks, and that of the event loop, have been ready to run but had no processor. It is
    always the same thread that asks."""

    def __init__(self, loop_thread: int | None) -> None:
        self._lines = [_Line(_OWN)]
        if loop_thread is not None:
            self._lines.append(_Line(Path(f"/proc/self/task/{loop_thread}/schedstat")))

    def since_last_s(self) -> float:
        """Since it was last asked; 0 the first time, and where the system does not tell."""
        return sum(line.since_last_s() for line in self._lines)

    def close(self) -> None:
        for line in self._lines:
            line.close()


class _Line:
    """How long one thread has been in line for a processor. Its file is opened by the thread that asks."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: FileIO | None = None
        self._last_s: float | None = None

    def since_last_s(self) -> float:
        """One call of the system, so that whoever is in line for the GIL meanwhile does not change the answer."""
        try:
            if self._file is None:
                self._file = FileIO(self.path)
            now_s = int(os.pread(self._file.fileno(), 100, 0).split()[1]) / 1e9
        except (OSError, IndexError, ValueError):
            return 0.0
        last_s, self._last_s = self._last_s, now_s
        return 0.0 if last_s is None else now_s - last_s

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _busy_in_python(step: str, seconds: float) -> str:
    return (
        f"Step {step} has been computing in Python for {seconds:.1f} s and holds the GIL, which slows down everything "
        "else in this worker. Its runs are safe: heartbeats continue. Compute in another process: loop.run_in_executor "
        "with a "
        "ProcessPoolExecutor in an async step, or a worker of its own for this workflow."
    )


def _busy_in_c(step: str, seconds: float) -> str:
    return (
        f"Nothing else in this worker could run for {seconds:.1f} s: step {step} held the GIL, probably in C code. "
        "Heartbeats stop during that time, so runs are lost if it takes longer than a lease. Compute in another "
        "process (ProcessPoolExecutor), or in smaller pieces."
    )
