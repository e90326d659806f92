"""Detects steps that hold the GIL.

Only one thread of a Python process runs Python code at a time. A sync step that computes in Python lets other threads
run only every few milliseconds; one that computes in C without releasing the GIL blocks them completely. A step that
computes in C and releases the GIL (most of numpy, zlib, hashlib) uses the CPU too, but disturbs nobody. Two tests
distinguish them: while the probing thread holds the GIL for some milliseconds, a step that needs it makes no progress;
and after a short sleep the probing thread wakes late, because the step must first be made to release the GIL. On an
overloaded machine every thread wakes late, so time spent waiting for a CPU is not counted: neither that of the probing
thread nor that of the event loop, which may hold the GIL while it waits for a CPU.
"""

import os
import sys
import time
from collections.abc import Sequence
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from ..execution.calls.threads import Busy, Spent

_OWN = Path("/proc/thread-self/schedstat")  # Linux: ns on a CPU, ns waiting for one, time slices
_STOOD_S = 0.1  # of a long delay, at least this much was not waiting for a CPU
_PROBES = 5
_MOSTLY = 3  # of the probes
_OFTEN = 0.5  # of the polls
_PROBE_S = 0.003  # shorter than Python's switch interval
_STANDS_STILL = 0.05  # of the duration of a probe
_NAP_S = 0.005  # long enough for the step to continue
_LATE = 0.6  # of Python's switch interval
_OF_PROCESS = 0.5  # of the CPU time of this process
_OF_PROCESSOR = 0.1  # of one CPU: the machine may be busy with other processes
_LONG_S = 0.5  # no thread of the process could run for this long


def cpu_seconds(thread: int) -> float | None:
    """The CPU time of a live thread. None: not available on this system, and nothing is detected."""
    try:
        return time.clock_gettime(time.pthread_getcpuclockid(thread))
    except (AttributeError, OSError):
        return None


class _Late(NamedTuple):
    """How late a thread woke, and how much of that time neither thread waited for a CPU."""

    late_s: float
    stood_s: float

    @property
    def too_long(self) -> bool:
        return self.late_s >= _LONG_S and self.stood_s >= _STOOD_S


class GilWatch:
    """`poll` is called regularly by a thread that only sleeps in between. `loop_thread`: the native id of the thread
    that runs the event loop."""

    def __init__(self, threshold_s: float, loop_thread: int | None = None) -> None:
        self._threshold_s = threshold_s
        self._used: dict[Busy, float] = {}  # CPU time at the last poll
        self._process_s = time.process_time()
        self._account = _Account(loop_thread)
        self._suspect: Busy | None = None
        self._since = 0.0
        self._polls = 0
        self._contended = 0

    def poll(self, busy: Sequence[Busy], spent: Sequence[Spent], *, elapsed_s: float, late_s: float) -> str | None:
        """The text of a report if a step holds the GIL. `spent`: bodies that ended since the last poll; `late_s`: how
        late the caller woke, after `elapsed_s`."""
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
        """Called by the polling thread when it stops polling."""
        self._account.close()

    def _hog(self, busy: Sequence[Busy], least_s: float) -> Busy | None:
        """The step that used most of this process's CPU time since the last poll."""
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
    """Whether that thread makes no progress while this thread holds the GIL."""
    before = cpu_seconds(thread)
    end = time.monotonic() + _PROBE_S
    while time.monotonic() < end:
        pass
    after = cpu_seconds(thread)
    return before is not None and after is not None and after - before < _STANDS_STILL * _PROBE_S


def _naps_beside(thread: int, account: "_Account") -> list[_Late]:
    """How late this thread wakes from short sleeps beside a step that needs the GIL; empty if the step does not."""
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
    """How long the polling thread and the event loop's thread were ready to run but waited for a CPU. Must always be
    called by the same thread."""

    def __init__(self, loop_thread: int | None) -> None:
        self._lines = [_Line(_OWN)]
        if loop_thread is not None:
            self._lines.append(_Line(Path(f"/proc/self/task/{loop_thread}/schedstat")))

    def since_last_s(self) -> float:
        """Since the last call; 0 the first time, and where the system does not report it."""
        return sum(line.since_last_s() for line in self._lines)

    def close(self) -> None:
        for line in self._lines:
            line.close()


class _Line:
    """How long one thread has waited for a CPU. Its file is opened by the polling thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: FileIO | None = None
        self._last_s: float | None = None

    def since_last_s(self) -> float:
        """Uses a single system call, so that threads waiting for the GIL do not affect the result."""
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
