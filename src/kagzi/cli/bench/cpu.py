"""CPU seconds of the measured processes, read from /proc. Without /proc, the figures are left out."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_UTIME_FIELD = 11  # of what follows the command's name in /proc/PID/stat
_STIME_FIELD = 12


class CpuMeter:
    """Reads the CPU time of named groups of processes; `since` gives what they used since a reading."""

    def __init__(self, groups: Mapping[str, Sequence[int]]) -> None:
        self._groups = {name: tuple(pids) for name, pids in groups.items()}

    def read(self) -> dict[str, float]:
        """Seconds by group; a group of which nothing can be read is absent."""
        readings: dict[str, float] = {}
        for name, pids in self._groups.items():
            seconds = [used for pid in pids if (used := cpu_seconds(pid)) is not None]
            if seconds:
                readings[name] = sum(seconds)
        return readings

    def since(self, before: Mapping[str, float]) -> dict[str, float]:
        return {name: used - before[name] for name, used in self.read().items() if name in before}


def cpu_seconds(pid: int) -> float | None:
    """User and system time of a process with all its threads; None if it is gone or there is no /proc."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return (int(fields[_UTIME_FIELD]) + int(fields[_STIME_FIELD])) / _TICKS_PER_S


def per_thousand(used: Mapping[str, float], operations: int) -> dict[str, float]:
    return {name: round(seconds / operations * 1_000, 4) for name, seconds in used.items()} if operations else {}
