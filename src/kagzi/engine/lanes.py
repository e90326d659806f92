"""What waits to be written: one bounded queue per namespace, served in turn. Runs whose row is locked are set aside; what is to be
answered to somebody who does not read his answers is held back."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..core import limits
from ..core.budgets import ByteBudget
from ..core.commands import (
    BeatStep,
    BeginStep,
    CancelRun,
    Command,
    CompleteRun,
    CompleteStep,
    ContinueAsNew,
    DecideRace,
    FailRun,
    FailStep,
    Park,
    PauseDiverged,
    StartChild,
    StartRun,
)
from ..core.outcomes import Outcome
from ..core.sizes import error_bytes

Sink: TypeAlias = Callable[[list[tuple[int, Outcome]]], None]
Entry: TypeAlias = tuple[Command, int, Sink, int]  # command, bytes, who is told, token
"""A plain tuple: there is one per operation, and nothing else is made for it."""

_ROW_BYTES = 1_000  # what an operation takes besides its payload, here in memory: more than in the store
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
    return error_bytes(command.error)


def _problem_bytes(command: PauseDiverged) -> int:
    return error_bytes(command.problem)


def _waits_bytes(command: Park) -> int:
    return sum(map(_name_bytes, command.waits))


def _losers_bytes(command: DecideRace) -> int:
    return sum(map(_name_bytes, command.losers))


def _name_bytes(name: str) -> int:
    return len(name) + 64


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
    Park: _waits_bytes,
    DecideRace: _losers_bytes,
    PauseDiverged: _problem_bytes,
}


class Queue:
    """The operations of one namespace, in the order in which they came. `count` and `bytes` are of all that was not gathered
    yet, whether it is in turn, set aside or held back."""

    __slots__ = ("bytes", "count", "entries", "in_turn", "namespace")

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.entries: deque[Entry] = deque()
        self.count = 0
        self.bytes = 0
        self.in_turn = False


class Lane:
    """All queues, and the turn they take. The order of one run's operations is never changed."""

    def __init__(self, *, total_bytes: int = limits.JOURNAL_TOTAL_BYTES) -> None:
        self._queues: dict[str, Queue] = {}
        self._turn: deque[Queue] = deque()
        self._aside: dict[str, list[Entry]] = {}
        self._held_back: dict[Sink, list[Entry]] = {}
        self._budget = ByteBudget(limits.JOURNAL_QUEUE_BYTES, total_bytes, limits.JOURNAL_SHARE_BYTES)

    def __bool__(self) -> bool:
        """Whether there is anything to gather now; what is set aside or held back does not count."""
        return bool(self._turn)

    @property
    def aside(self) -> bool:
        return bool(self._aside) or any(self._held_back.values())

    def full(self, namespace: str) -> bool:
        queue = self._queues.get(namespace)
        if queue is None:
            return False
        return queue.count >= limits.JOURNAL_QUEUE_OPERATIONS or self._budget.is_over(queue.bytes)

    def add(self, entry: Entry) -> None:
        queue = self._queue(entry[0].run.namespace)
        self._count(queue, 1, entry[1])
        queue.entries.append(entry)
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
        entries, aside, held_back = queue.entries, self._aside, self._held_back
        while share and entries:
            entry = entries[0]
            weight = entry[1]
            if held_back and (waiting := held_back.get(entry[2])) is not None:
                waiting.append(entries.popleft())
                continue
            if aside and (locked := aside.get(entry[0].run.run_id)) is not None:
                locked.append(entries.popleft())
                continue
            if weight > space and batch:
                return 0
            batch.append(entries.popleft())
            self._count(queue, -1, -weight)
            space -= weight
            share -= 1
        return max(space, 0)

    # --- what has to wait ----------------------------------------------------------------------------------------------

    def put_back(self, entries: Sequence[Entry]) -> None:
        """Of a batch that was gathered: to the heads of their queues, in order."""
        for entry in entries:
            self._count(self._queue(entry[0].run.namespace), 1, entry[1])
        self._put_first(entries)

    def hold_back(self, sink: Sink) -> None:
        """Gather nothing that is to be answered there, until `let_go`."""
        self._held_back.setdefault(sink, [])

    def let_go(self, sink: Sink) -> None:
        self._put_first(self._held_back.pop(sink, ()))

    def let_all_go(self) -> None:
        for sink in list(self._held_back):
            self.let_go(sink)

    def set_aside(self, run_id: str, entries: list[Entry]) -> None:
        """The run's row is locked: what it has to write, now and later, waits until `bring_back`."""
        for entry in entries:
            self._count(self._queue(entry[0].run.namespace), 1, entry[1])
        self._aside[run_id] = entries

    def bring_back(self, run_id: str) -> None:
        """To the head of the queue, in order."""
        self._put_first(self._aside.pop(run_id, ()))

    def _put_first(self, entries: Sequence[Entry]) -> None:
        for entry in reversed(entries):
            waiting = self._held_back.get(entry[2])
            if waiting is not None:  # what its run said later may be there already
                waiting.insert(0, entry)
                continue
            queue = self._queue(entry[0].run.namespace)
            queue.entries.appendleft(entry)
            if not queue.in_turn:
                queue.in_turn = True
                self._turn.appendleft(queue)

    def remove_run(self, namespace: str, run_id: str) -> list[Entry]:
        """Everything the run has waiting: aside, held back or in its queue."""
        removed = self._aside.pop(run_id, [])
        for sink, waiting in self._held_back.items():
            removed = removed + [entry for entry in waiting if entry[0].run.run_id == run_id]
            self._held_back[sink] = [entry for entry in waiting if entry[0].run.run_id != run_id]
        queue = self._queue(namespace)
        of_run = [entry for entry in queue.entries if entry[0].run.run_id == run_id]
        if of_run:
            queue.entries = deque(entry for entry in queue.entries if entry[0].run.run_id != run_id)
            removed = removed + of_run
        for entry in removed:
            self._count(queue, -1, -entry[1])
        return removed

    def remove_all(self) -> list[Entry]:
        removed = [entry for entries in (*self._aside.values(), *self._held_back.values()) for entry in entries]
        for queue in self._queues.values():
            removed.extend(queue.entries)
        self._aside.clear()
        self._held_back = {sink: [] for sink in self._held_back}
        self._queues.clear()
        self._turn.clear()
        self._budget.used_bytes = 0
        return removed

    def _count(self, queue: Queue, count: int, size: int) -> None:
        queue.count += count
        queue.bytes += size
        self._budget.used_bytes += size

    def _queue(self, namespace: str) -> Queue:
        queue = self._queues.get(namespace)
        if queue is None:
            queue = self._queues[namespace] = Queue(namespace)
        return queue

    def _leave(self, queue: Queue) -> None:
        queue.in_turn = False
        if len(self._queues) > _KEPT_QUEUES and not queue.count:
            self._queues.pop(queue.namespace, None)
