"""What waits to be written: one bounded queue per namespace, served in turn, and runs whose row is locked set aside."""

from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

from ..core import limits
from ..core.commands import (
    BeatStep,
    BeginStep,
    CancelRun,
    Command,
    CompleteRun,
    CompleteStep,
    ContinueAsNew,
    FailRun,
    FailStep,
    StartChild,
    StartRun,
)
from ..core.outcomes import Outcome

Sink: TypeAlias = Callable[[list[tuple[int, Outcome]]], None]
Entry: TypeAlias = tuple[Command, int, Sink, int]  # command, bytes, who is told, token
"""A plain tuple: there is one per operation, and nothing else is made for it."""

_ROW_BYTES = 200  # what an operation weighs besides its payload
_KEPT_QUEUES = 100


def weight_bytes(command: Command) -> int:
    """About how many bytes this sends to the store."""
    payloads = _PAYLOADS.get(command.__class__)
    return _ROW_BYTES if payloads is None else _ROW_BYTES + payloads(command)


def _output_bytes(command: CompleteStep | CompleteRun) -> int:
    return len(command.output.data)


def _input_bytes(command: BeginStep | ContinueAsNew) -> int:
    return 0 if command.input is None else len(command.input.data)


def _start_bytes(command: StartRun) -> int:
    signal = command.signal.payload if command.signal is not None else None
    return sum(len(payload.data) for payload in (command.input, command.context, signal) if payload is not None)


def _child_bytes(command: StartChild) -> int:
    return _start_bytes(command.start)


def _details_bytes(command: BeatStep) -> int:
    return len(command.details.data)


def _error_bytes(command: FailStep | FailRun | CancelRun) -> int:
    return len(command.error.message) + len(command.error.traceback)


_PAYLOADS: dict[type, Callable[[Any], int]] = {
    StartRun: _start_bytes,
    BeginStep: _input_bytes,
    CompleteStep: _output_bytes,
    CompleteRun: _output_bytes,
    FailStep: _error_bytes,
    FailRun: _error_bytes,
    CancelRun: _error_bytes,
    StartChild: _child_bytes,
    ContinueAsNew: _input_bytes,
    BeatStep: _details_bytes,
}


class Queue:
    """The operations of one namespace, in the order in which they came."""

    __slots__ = ("bytes", "entries", "in_turn", "namespace")

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.entries: deque[Entry] = deque()
        self.bytes = 0
        self.in_turn = False

    @property
    def full(self) -> bool:
        return len(self.entries) >= limits.JOURNAL_QUEUE_OPERATIONS or self.bytes >= limits.JOURNAL_QUEUE_BYTES


class Lane:
    """All queues, and the turn they take. The order of one run's operations is never changed."""

    def __init__(self) -> None:
        self._queues: dict[str, Queue] = {}
        self._turn: deque[Queue] = deque()
        self._aside: dict[str, list[Entry]] = {}

    def __bool__(self) -> bool:
        """Whether there is anything to gather now; what is set aside does not count."""
        return bool(self._turn)

    @property
    def aside(self) -> bool:
        return bool(self._aside)

    def full(self, namespace: str) -> bool:
        queue = self._queues.get(namespace)
        return queue is not None and queue.full

    def add(self, entry: Entry) -> None:
        queue = self._queue(entry[0].run.namespace)
        queue.entries.append(entry)
        queue.bytes += entry[1]
        if not queue.in_turn:
            queue.in_turn = True
            self._turn.append(queue)

    def gather(self) -> list[Entry]:
        """The next batch: equal shares for the namespaces that have something, the rest to those that have more."""
        batch: list[Entry] = []
        space = limits.BATCH_BYTES
        turn = self._turn
        while turn and len(batch) < limits.BATCH_OPERATIONS:
            share = max(1, (limits.BATCH_OPERATIONS - len(batch)) // len(turn))
            for _ in range(min(len(turn), limits.BATCH_OPERATIONS - len(batch))):
                queue = turn.popleft()
                space = self._take(queue, batch, share, space)
                if not queue.entries:
                    self._leave(queue)
                elif space > 0:
                    turn.append(queue)
                else:
                    turn.appendleft(queue)  # its next operation did not fit: it comes first in the next batch
                    return batch
        return batch

    def _take(self, queue: Queue, batch: list[Entry], share: int, space: int) -> int:
        """Move up to `share` entries into the batch; answers the bytes left, 0 when the next one does not fit."""
        entries, aside = queue.entries, self._aside
        while share and entries:
            weight = entries[0][1]
            if weight > space and batch:
                return 0
            entry = entries.popleft()
            queue.bytes -= weight
            if aside and (held_back := aside.get(entry[0].run.run_id)) is not None:
                held_back.append(entry)
                continue
            batch.append(entry)
            space -= weight
            share -= 1
        return max(space, 0)

    def set_aside(self, run_id: str, entries: list[Entry]) -> None:
        """The run's row is locked: what it has to write, now and later, waits until `bring_back`."""
        self._aside[run_id] = entries

    def bring_back(self, run_id: str) -> None:
        """To the head of the queue, in order."""
        entries = self._aside.pop(run_id, None)
        if not entries:
            return
        queue = self._queue(entries[0][0].run.namespace)
        queue.entries.extendleft(reversed(entries))
        queue.bytes += sum(entry[1] for entry in entries)
        if not queue.in_turn:
            queue.in_turn = True
            self._turn.appendleft(queue)

    def remove_run(self, namespace: str, run_id: str) -> list[Entry]:
        """Everything the run has waiting, aside or in its queue."""
        removed = self._aside.pop(run_id, [])
        queue = self._queues.get(namespace)
        if queue is not None:
            of_run = [entry for entry in queue.entries if entry[0].run.run_id == run_id]
            if of_run:
                queue.entries = deque(entry for entry in queue.entries if entry[0].run.run_id != run_id)
                queue.bytes -= sum(entry[1] for entry in of_run)
                removed = removed + of_run
        return removed

    def remove_all(self) -> list[Entry]:
        removed = [entry for entries in self._aside.values() for entry in entries]
        for queue in self._queues.values():
            removed.extend(queue.entries)
        self._aside.clear()
        self._queues.clear()
        self._turn.clear()
        return removed

    def _queue(self, namespace: str) -> Queue:
        queue = self._queues.get(namespace)
        if queue is None:
            queue = self._queues[namespace] = Queue(namespace)
        return queue

    def _leave(self, queue: Queue) -> None:
        queue.in_turn = False
        if len(self._queues) > _KEPT_QUEUES:
            self._queues.pop(queue.namespace, None)
