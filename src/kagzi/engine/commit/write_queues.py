"""Operations that wait to be written: one bounded queue per namespace, served in turn. Operations of runs whose row is
locked are set aside; those of workers that do not read their responses are held back."""

from collections import Counter, deque
from collections.abc import Callable, Sequence, Set
from typing import TypeAlias

from ...core import limits
from ...core.budgets import ByteBudget
from ...core.run.commands import Command
from ...core.run.outcomes import Outcome
from .weights import PAYLOADS, ROW_BYTES

Sink: TypeAlias = Callable[[list[tuple[int, Outcome]]], None]
Entry: TypeAlias = tuple[Command, int, Sink, int]  # command, bytes, receiver of the outcome, token
"""A plain tuple: there is one per operation, and no other object is created for it."""

_KEPT_QUEUES = 100


class Line:
    """A part of a queue that is served in turn: small operations, or large ones."""

    __slots__ = ("entries", "in_turn", "is_large", "queue")

    def __init__(self, queue: "Queue", *, is_large: bool) -> None:
        self.queue = queue
        self.entries: deque[Entry] = deque()
        self.is_large = is_large
        self.in_turn = False


class Queue:
    """The operations of one namespace, in order of arrival. If a run has a large operation, all its operations are in
    the large line, so that it does not delay other runs.

    `count` and `bytes` cover everything that was not gathered yet, including what is set aside or held back.
    """

    __slots__ = ("bytes", "count", "large", "large_runs", "namespace", "small")

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.small = Line(self, is_large=False)
        self.large = Line(self, is_large=True)
        self.large_runs: Counter[str] = Counter()  # how many operations each run has in the large line
        self.count = 0
        self.bytes = 0

    def take_small(self, run_id: str) -> list[Entry]:
        """Removes and returns the run's operations in the small line."""
        taken = [entry for entry in self.small.entries if entry[0].run.run_id == run_id]
        if taken:
            self.small.entries = deque(entry for entry in self.small.entries if entry[0].run.run_id != run_id)
        return taken


class WriteQueues:
    """All queues, and the order in which they are served. The order of one run's operations never changes."""

    def __init__(self, *, total_bytes: int = limits.JOURNAL_TOTAL_BYTES) -> None:
        self._queues: dict[str, Queue] = {}
        self._turn: deque[Line] = deque()
        self._aside: dict[str, list[Entry]] = {}
        self._unread: dict[Sink, list[Entry]] = {}
        self._budget = ByteBudget(limits.JOURNAL_QUEUE_BYTES, total_bytes, limits.JOURNAL_SHARE_BYTES)

    def __bool__(self) -> bool:
        """Whether there is anything to gather now; what is set aside or held back does not count."""
        return bool(self._turn)

    @property
    def operations(self) -> int:
        return sum(queue.count for queue in self._queues.values())

    @property
    def bytes(self) -> int:
        return self._budget.used_bytes

    @property
    def aside(self) -> bool:
        return bool(self._aside) or any(self._unread.values())

    def full(self, namespace: str) -> bool:
        queue = self._queues.get(namespace)
        if queue is None:
            return False
        return queue.count >= limits.JOURNAL_QUEUE_OPERATIONS or self._budget.is_over(queue.bytes)

    def add_all(self, operations: Sequence[tuple[int, Command]], sink: Sink) -> None:
        """As `add` for each (token, command), in order. Shared work is done once: this is a hot path, executed for
        every step."""
        namespace = operations[0][1].run.namespace
        queue = self._queue(namespace)
        line, large_runs = queue.small, queue.large_runs
        count = size = 0
        for token, command in operations:
            payloads = PAYLOADS.get(command.__class__)
            weight = ROW_BYTES if payloads is None else ROW_BYTES + payloads(command)
            if weight > limits.PAYLOAD_WARN_BYTES or large_runs or command.run.namespace != namespace:
                self.add((command, weight, sink, token))
                continue
            line.entries.append((command, weight, sink, token))
            count += 1
            size += weight
            if not line.in_turn:
                line.in_turn = True
                self._turn.append(line)
        self._count(queue, count, size)

    def add(self, entry: Entry) -> None:
        queue = self._queue(entry[0].run.namespace)
        self._count(queue, 1, entry[1])
        line = queue.small
        if entry[1] > limits.PAYLOAD_WARN_BYTES or (queue.large_runs and entry[0].run.run_id in queue.large_runs):
            line = queue.large
            run_id = entry[0].run.run_id
            earlier = queue.take_small(run_id) if run_id not in queue.large_runs else []
            line.entries.extend(earlier)
            queue.large_runs[run_id] += len(earlier) + 1
        line.entries.append(entry)
        if not line.in_turn:
            line.in_turn = True
            self._turn.append(line)

    @property
    def has_large(self) -> bool:
        return any(line.is_large for line in self._turn)

    def gather(self, *, large: bool = True) -> list[Entry]:
        """The next batch: equal shares for all lines, and the rest to those that have more. While small operations
        wait, large ones get half of its bytes, or one operation. A line whose next operation does not fit comes first
        in the next batch if it got nothing in this one; otherwise last. `large` False: small ones only."""
        batch: list[Entry] = []
        turn = self._turn
        if not turn:
            return batch
        if not large:
            resting = [line for line in turn if line.is_large]
            turn = self._turn = deque(line for line in turn if not line.is_large)
            batch = self.gather() if turn else []
            self._turn.extendleft(reversed(resting))
            return batch
        space = limits.BATCH_BYTES
        large_space = space if turn[0].is_large and all(line.is_large for line in turn) else space // 2
        large_taken = False
        passed_over: list[Line] = []
        served: list[Line] = []
        while turn and len(batch) < limits.BATCH_OPERATIONS:
            share = max(1, (limits.BATCH_OPERATIONS - len(batch)) // len(turn))
            for _ in range(min(len(turn), limits.BATCH_OPERATIONS - len(batch))):
                line = turn.popleft()
                before = len(batch)
                if line.is_large:
                    fits, taken = self._take(line, batch, share, min(space, large_space), always_one=not large_taken)
                    large_space -= taken
                    large_taken = large_taken or len(batch) > before
                else:
                    fits, taken = self._take(line, batch, share, space, always_one=not batch)
                space -= taken
                if not line.entries:
                    self._leave(line)
                elif fits:
                    turn.append(line)
                else:
                    (passed_over if len(batch) == before else served).append(line)
        turn.extend(served)
        turn.extendleft(reversed(passed_over))
        return batch

    def _take(self, line: Line, batch: list[Entry], share: int, space: int, *, always_one: bool) -> tuple[bool, int]:
        """Moves up to `share` entries into the batch. Returns whether the next one would fit, and the bytes moved."""
        entries, aside, unread = line.entries, self._aside, self._unread
        fits, before, space_before = True, len(batch), space
        while share and entries:
            entry = entries[0]
            weight = entry[1]
            if unread and (waiting := unread.get(entry[2])) is not None:
                waiting.append(self._out(line))
                continue
            if aside and (locked := aside.get(entry[0].run.run_id)) is not None:
                locked.append(self._out(line))
                continue
            if weight > space and not always_one:
                fits = False
                break
            always_one = False
            batch.append(self._out(line) if line.is_large else entries.popleft())
            space -= weight
            share -= 1
        taken = space_before - space
        self._count(line.queue, before - len(batch), -taken)
        return fits, taken

    @staticmethod
    def _out(line: Line) -> Entry:
        entry = line.entries.popleft()
        if line.is_large:
            large_runs, run_id = line.queue.large_runs, entry[0].run.run_id
            large_runs[run_id] -= 1
            if not large_runs[run_id]:
                del large_runs[run_id]
        return entry

    # --- operations that have to wait ---------------------------------------------------------------------------------

    def put_back(self, entries: Sequence[Entry]) -> None:
        """Returns gathered entries whose responses are large to the heads of the large lines, in order."""
        for entry in entries:
            self._count(self._queue(entry[0].run.namespace), 1, entry[1])
        self._put_first(entries, {entry[0].run.run_id for entry in entries})

    def hold_back(self, sink: Sink) -> None:
        """Gather no operation of this sink until `unblock`."""
        self._unread.setdefault(sink, [])

    def unblock(self, sink: Sink) -> None:
        self._put_first(self._unread.pop(sink, ()))

    def unblock_all(self) -> None:
        for sink in list(self._unread):
            self.unblock(sink)

    def set_aside(self, run_id: str, entries: list[Entry]) -> None:
        """The run's row is locked: its operations, including later ones, wait until `bring_back`."""
        for entry in entries:
            self._count(self._queue(entry[0].run.namespace), 1, entry[1])
        self._aside[run_id] = entries

    def bring_back(self, run_id: str) -> None:
        """Moves its operations to the head of the queue, in order."""
        self._put_first(self._aside.pop(run_id, ()))

    def _put_first(self, entries: Sequence[Entry], large: Set[str] = frozenset()) -> None:
        large = large | {entry[0].run.run_id for entry in entries if entry[1] > limits.PAYLOAD_WARN_BYTES}
        for entry in reversed(entries):
            waiting = self._unread.get(entry[2])
            if waiting is not None:  # later operations of its run may be there already
                waiting.insert(0, entry)
                continue
            queue, run_id = self._queue(entry[0].run.namespace), entry[0].run.run_id
            line = queue.small
            if run_id in large or run_id in queue.large_runs:
                line = queue.large
                later = queue.take_small(run_id) if run_id not in queue.large_runs else []
                line.entries.extendleft(reversed(later))
                queue.large_runs[run_id] += len(later) + 1
            line.entries.appendleft(entry)
            if not line.in_turn:
                line.in_turn = True
                self._turn.appendleft(line)

    def remove_run(self, namespace: str, run_id: str) -> list[Entry]:
        """Removes all waiting operations of the run: set aside, held back or queued."""
        removed = self._aside.pop(run_id, [])
        for sink, waiting in self._unread.items():
            removed = removed + [entry for entry in waiting if entry[0].run.run_id == run_id]
            self._unread[sink] = [entry for entry in waiting if entry[0].run.run_id != run_id]
        queue = self._queue(namespace)
        removed = removed + queue.take_small(run_id)
        if queue.large_runs.pop(run_id, 0):
            removed = removed + [entry for entry in queue.large.entries if entry[0].run.run_id == run_id]
            queue.large.entries = deque(entry for entry in queue.large.entries if entry[0].run.run_id != run_id)
        for entry in removed:
            self._count(queue, -1, -entry[1])
        return removed

    def remove_all(self) -> list[Entry]:
        removed = [entry for entries in (*self._aside.values(), *self._unread.values()) for entry in entries]
        for queue in self._queues.values():
            removed += [*queue.small.entries, *queue.large.entries]
        self._aside.clear()
        self._unread = {sink: [] for sink in self._unread}
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

    def _leave(self, line: Line) -> None:
        line.in_turn = False
        queue = line.queue
        if len(self._queues) > _KEPT_QUEUES and not queue.count:
            self._queues.pop(queue.namespace, None)
