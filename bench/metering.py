"""CPU and memory of process trees, read from /proc: a server with its children, a database with its backends."""

import os
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PARENT_FIELD = 1  # among the fields after the command's name in /proc/PID/stat
_TIME_FIELDS = (11, 12, 13, 14)  # user and system time: its own, and that of children that it has waited for
_SAMPLE_S = 0.5


class TreeMeter:
    """Reads named trees. `roots`: the process id at the root of each; may be changed between measurements."""

    def __init__(self, roots: Mapping[str, int]) -> None:
        self.roots = dict(roots)

    def cpu(self) -> dict[str, float]:
        """Seconds by name, of all living processes and of those that have ended since the root began."""
        return {name: sum(map(_cpu_seconds, pids)) for name, pids in self._trees().items()}

    def cpu_since(self, before: Mapping[str, float]) -> dict[str, float]:
        return {name: max(used - before.get(name, 0.0), 0.0) for name, used in self.cpu().items()}

    def memory_mb(self) -> dict[str, float]:
        """Current memory by name: pages that processes share are divided among them."""
        return {name: sum(map(_memory_mb, pids)) for name, pids in self._trees().items()}

    @contextmanager
    def peak_memory(self) -> Iterator[dict[str, float]]:
        """Samples until the end of the block. The dictionary gets the peak of each tree, and of `all`."""
        peaks: dict[str, float] = {}
        ended = threading.Event()

        def sample() -> None:
            is_last = False
            while not is_last:
                is_last = ended.wait(_SAMPLE_S) if peaks else False
                now = self.memory_mb()
                for name, megabytes in (*now.items(), ("all", sum(now.values()))):
                    peaks[name] = round(max(peaks.get(name, 0.0), megabytes), 1)

        thread = threading.Thread(target=sample, daemon=True)
        thread.start()
        try:
            yield peaks
        finally:
            ended.set()
            thread.join()

    def _trees(self) -> dict[str, list[int]]:
        children: dict[int, list[int]] = defaultdict(list)
        for entry in Path("/proc").iterdir():
            fields = _stat(int(entry.name)) if entry.name.isdigit() else None
            if fields:
                children[int(fields[_PARENT_FIELD])].append(int(entry.name))
        return {name: list(_descendants(pid, children)) for name, pid in self.roots.items()}


def _descendants(pid: int, children: Mapping[int, list[int]]) -> Iterator[int]:
    yield pid
    for child in children.get(pid, ()):
        yield from _descendants(child, children)


def _stat(pid: int) -> list[str] | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _cpu_seconds(pid: int) -> float:
    fields = _stat(pid)
    return sum(int(fields[field]) for field in _TIME_FIELDS) / _TICKS_PER_S if fields else 0.0


def _memory_mb(pid: int) -> float:
    """The proportional share; resident memory if that cannot be read."""
    for file, name in ((f"/proc/{pid}/smaps_rollup", "Pss:"), (f"/proc/{pid}/status", "VmRSS:")):
        try:
            lines = Path(file).read_text().splitlines()
        except OSError:
            continue
        kibibytes = [int(line.split()[1]) for line in lines if line.startswith(name)]
        if kibibytes:
            return kibibytes[0] / 1024
    return 0.0
