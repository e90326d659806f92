"""A ledger outside of Kagzi: what step bodies did, written by themselves, so that promises are checked from outside.

Each entry is one line, written with O_APPEND in one write: entries of many processes never mix, and survive kill -9.
"""

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

LINE_BYTES = 4_096  # a write of at most this many bytes to a file opened with O_APPEND is one piece


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """`event`: "begin" and "end" of a body, or whatever else a test wants to find again."""

    event: str
    run_id: str
    step_id: str
    attempt: int = 0
    lease: int = 0
    pid: int = 0
    at: float = 0.0  # time.monotonic(): comparable between the processes of one machine since its start
    note: str = ""


class Ledger:
    """Writes and reads one file. Safe from any thread and any process."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def write(self, event: str, run_id: str, step_id: str, *, attempt: int = 0, lease: int = 0, note: str = "") -> None:
        entry = Entry(
            event=event,
            run_id=run_id,
            step_id=step_id,
            attempt=attempt,
            lease=lease,
            pid=os.getpid(),
            at=time.monotonic(),
            note=note,
        )
        line = msgspec.json.encode(entry) + b"\n"
        if len(line) > LINE_BYTES:
            raise ValueError(f"an entry has at most {LINE_BYTES} bytes, this one {len(line)}: shorten its note")
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            written = os.write(descriptor, line)
        finally:
            os.close(descriptor)
        if written != len(line):
            raise OSError(f"{self.path}: wrote {written} of {len(line)} bytes")

    def entries(self, *, event: str | None = None) -> list[Entry]:
        """In the order in which they were written, without a last line that is still being written."""
        if not self.path.exists():
            return []
        decode = msgspec.json.Decoder(Entry).decode
        data = self.path.read_bytes()
        decoded = [decode(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]
        return [entry for entry in decoded if event is None or entry.event == event]

    def executions(self) -> Counter[tuple[str, str]]:
        """How often the body of each (run, step) was begun."""
        return Counter((entry.run_id, entry.step_id) for entry in self.entries(event="begin"))


def check_acknowledged_run_once(entries: Iterable[Entry], acknowledged_at: Callable[[str, str], float | None]) -> int:
    """Done is done (P2): no body begins after its step's completion was acknowledged. Returns how many were checked.

    `acknowledged_at(run_id, step_id)` is the monotonic time of the acknowledgement, None if there was none.
    """
    checked = 0
    for entry in entries:
        if entry.event != "begin":
            continue
        acknowledged = acknowledged_at(entry.run_id, entry.step_id)
        if acknowledged is not None:
            checked += 1
            assert entry.at <= acknowledged, f"ran again {entry.at - acknowledged:.3f} s after it was recorded: {entry}"
    return checked


def check_one_holder(entries: Iterable[Entry]) -> None:
    """One holder (P3): once a newer lease has begun a body of a run, none is begun under an older one by another
    process."""
    newest: dict[str, Entry] = {}
    for entry in entries:
        if entry.event != "begin" or entry.lease == 0:
            continue
        last = newest.get(entry.run_id)
        assert last is None or entry.lease >= last.lease, f"an older lease went on: {entry} after {last}"
        newest[entry.run_id] = entry


def overlapping(entries: Iterable[Entry]) -> list[tuple[Entry, Entry]]:
    """Pairs of bodies of one (run, step) that ran at the same time: begun again before the first had ended."""
    open_bodies: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    pairs: list[tuple[Entry, Entry]] = []
    for entry in entries:
        bodies = open_bodies[entry.run_id, entry.step_id]
        if entry.event == "begin":
            pairs.extend((earlier, entry) for earlier in bodies)
            bodies.append(entry)
        elif entry.event == "end":
            bodies[:] = [body for body in bodies if (body.pid, body.attempt) != (entry.pid, entry.attempt)]
    return pairs


def describe(entries: Iterable[Entry], run_id: str) -> str:
    """The life of one run, for the message of a failed test."""
    return "\n".join(json.dumps(msgspec.to_builtins(entry)) for entry in entries if entry.run_id == run_id)
