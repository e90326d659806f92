"""How much the cores of this machine do together, as a multiple of what one does alone.

The cores of a small virtual machine are often the two threads of one physical core. Then a process makes every other
one slower, and doing two things at a time gains little or nothing. See docs/adr/0081.

    python -m bench.cores        prints the figure
"""

import os
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from statistics import median

from bench.machine_speed import loop_ns

_SECONDS = 0.3
_TRIES = 3

Counter = subprocess.Popen[str]
"""A process that counts loops on request."""


def cores_together(seconds: float = _SECONDS, tries: int = _TRIES) -> float:
    """The median of a few tries."""
    cores = len(os.sched_getaffinity(0))
    with ExitStack() as stack:
        counters = [stack.enter_context(_counter()) for _ in range(cores)]
        return round(median(_count(counters, seconds) / _count(counters[:1], seconds) for _ in range(tries)), 2)


def _count(counters: Sequence[Counter], seconds: float) -> int:
    """How many loops they execute at the same time."""
    for counter in counters:
        assert counter.stdin is not None
        print(seconds, file=counter.stdin, flush=True)
    return sum(int(counter.stdout.readline()) for counter in counters if counter.stdout is not None)


@contextmanager
def _counter() -> Generator[Counter]:
    command = [sys.executable, "-m", "bench.cores", "--count"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as counter:
        try:
            yield counter
        finally:
            with suppress(ProcessLookupError):
                counter.kill()


def _count_on_request() -> None:
    for line in sys.stdin:
        count, end = 0, time.monotonic() + float(line)
        while not count or time.monotonic() < end:  # a busy machine may not run it in time
            loop_ns()
            count += 1
        print(count, flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--count"]:
        _count_on_request()
    else:
        print(cores_together())
