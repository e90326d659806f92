"""What checking the files after each commit costs: `python -m tests.store.sqlite.measure_file_status [DIRECTORY]`."""

import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from kagzi.store.sqlite.connection.file_status import status_reader

_COMMITS = 1_500
_ROUNDS = 5
_PAUSE_S = 0.0002


def _commits(directory: Path, how: str) -> tuple[float, float]:
    """The median of a commit and the CPU time of one, in microseconds, on a log that is written over."""
    path = directory / f"{how}.db"
    database = sqlite3.connect(path, isolation_level=None)
    for statement in ("journal_mode = wal", "synchronous = full", "wal_autocheckpoint = 0"):
        database.execute(f"PRAGMA {statement}")
    database.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, value BLOB)")
    database.execute("BEGIN")
    database.executemany("INSERT INTO rows (value) VALUES (?)", [(b"x" * 2_000,)] * 5_000)
    database.execute("COMMIT")
    database.execute("PRAGMA wal_checkpoint(FULL)")
    check = _check(how, str(path))
    took = []
    cpu = time.process_time_ns()
    for _ in range(_COMMITS):
        began = time.perf_counter_ns()
        database.execute("BEGIN IMMEDIATE")
        database.execute("INSERT INTO rows (value) VALUES (?)", (b"y" * 200,))
        database.execute("COMMIT")
        check()
        took.append(time.perf_counter_ns() - began)
        time.sleep(_PAUSE_S)
    cpu = time.process_time_ns() - cpu
    database.close()
    path.unlink()
    return median(took) / 1e3, cpu / _COMMITS / 1e3


def _check(how: str, path: str) -> Callable[[], object]:
    names = (path, f"{path}-wal")
    if how == "nothing":
        return lambda: None
    if how == "stat":
        return lambda: [os.stat(name) for name in names]  # noqa: PTH116  what is measured
    readers = [status_reader(name) for name in names]
    return lambda: [read() for read in readers]


def main() -> None:
    parent = sys.argv[1] if len(sys.argv) > 1 else None
    print(f"Linux {os.uname().release}; us of a commit / us of CPU")
    for _ in range(_ROUNDS):
        with tempfile.TemporaryDirectory(dir=parent) as directory:
            figures = {how: _commits(Path(directory), how) for how in ("nothing", "stat", "statx")}
        print("   ".join(f"{how} {took:.0f} / {cpu:.0f}" for how, (took, cpu) in figures.items()), flush=True)


if __name__ == "__main__":
    main()
