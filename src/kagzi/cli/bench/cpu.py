"""CPU and memory of the measured processes, read from /proc. Without /proc the figures are omitted."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_UTIME_FIELD = 11  # index among the fields after the command's name in /proc/PID/stat
_STIME_FIELD = 12
_PEAK = "VmHWM:"


class ProcessMeter:
    """Reads the CPU time of named groups of processes, and their peak memory."""

    def __init__(self, groups: Mapping[str, Sequence[int]]) -> None:
        self._groups = {name: tuple(pids) for name, pids in groups.items()}

    def replace(self, name: str, pids: Sequence[int]) -> None:
        """Gives the name to other processes."""
        self._groups[name] = tuple(pids)

    def cpu(self) -> dict[str, float]:
        """Seconds by group; a group that cannot be read is absent."""
        readings: dict[str, float] = {}
        for name, pids in self._groups.items():
            seconds = [used for pid in pids if (used := cpu_seconds(pid)) is not None]
            if seconds:
                readings[name] = sum(seconds)
        return readings

    def cpu_since(self, before: Mapping[str, float]) -> dict[str, float]:
        return {name: max(used - before[name], 0.0) for name, used in self.cpu().items() if name in before}

    def peak_memory_mb(self) -> dict[str, float]:
        """By group. Shared pages count in each process: for a database the sum is meaningless, so it is absent."""
        peaks: dict[str, float] = {}
        for name, pids in self._groups.items():
            megabytes = [peak for pid in pids if (peak := peak_memory_mb(pid)) is not None]
            if len(megabytes) == 1:
                peaks[name] = megabytes[0]
        return peaks


def cpu_seconds(pid: int) -> float | None:
    """User and system time of a process with all its threads; None if it is gone or there is no /proc."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return (int(fields[_UTIME_FIELD]) + int(fields[_STIME_FIELD])) / _TICKS_PER_S


def peak_memory_mb(pid: int) -> float | None:
    """The peak resident memory; None if the process is gone or there is no /proc."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    kibibytes = [int(line.split()[1]) for line in lines if line.startswith(_PEAK)]
    return round(kibibytes[0] / 1024, 1) if kibibytes else None


def per_thousand(used: Mapping[str, float], operations: int) -> dict[str, float]:
    return {name: round(seconds / operations * 1_000, 4) for name, seconds in used.items()} if operations else {}
