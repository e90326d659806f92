"""Decides what the server is told on a stream of waits, and who gets its answers: without tasks, time, or a stream.

A run is wanted while a caller awaits its end, or a start has announced the wait. It is requested while the server owes
an answer on the open stream. The next message says the difference between the two, however it came about. What was
requested on a stream ends with it: the next stream starts with everything that is wanted.
"""

from collections.abc import Callable
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from ...core import limits
from ...core.records import RunEnd

Waiter = TypeVar("Waiter")

IDS_PER_MESSAGE = 1_000


class Message(NamedTuple):
    """`stream_id`: "" unless it is the first of its stream."""

    run_ids: list[str]
    forget: list[str]
    stream_id: str


class WaitTable(Generic[Waiter]):
    """The waits that share a stream. `on_change`: called when there may be a message to send."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._wanted: dict[str, list[Waiter]] = {}
        self._requested: dict[str, bool] = {}  # whether by a message, or else by the start of the run
        self._changed: dict[str, None] = {}  # for which the next message may have to say something
        self._early: dict[str, RunEnd] = {}  # of runs whose starts are in flight, or that nobody awaits yet
        self._settled: set[str] = set()  # requested by a message, and no longer, while starts were in flight
        self.starts_under_way = 0
        self.stream_id = ""  # set while the server knows the stream by it
        self._new_stream_id = ""

    # --- callers ------------------------------------------------------------------------------------------------------

    @property
    def is_wanted(self) -> bool:
        return bool(self._wanted)

    @property
    def is_idle(self) -> bool:
        """Whether nothing would be missed without a stream."""
        return not self._wanted and not self.starts_under_way

    def can_add(self, run_id: str) -> bool:
        return run_id in self._wanted or len(self._wanted) < limits.WAITS_PER_STREAM

    def want(self, run_id: str, waiter: Waiter) -> RunEnd | None:
        """Returns the end if it is known already; otherwise the waiter is returned with it later."""
        end = self._early.get(run_id)
        if end is not None:
            if run_id in self._wanted:  # for the start that was promised it; a start in flight may want it too
                del self._wanted[run_id], self._early[run_id]
            return end
        waiters = self._wanted.get(run_id)
        if waiters is None:
            self._wanted[run_id] = [waiter]
            self._change(run_id)
        else:
            waiters.append(waiter)
        return None

    def give_up(self, run_id: str, waiter: Waiter) -> None:
        waiters = self._wanted.get(run_id)
        if waiters is not None and waiter in waiters:
            waiters.remove(waiter)
            if not waiters:
                self._forget(run_id)

    def _forget(self, run_id: str) -> None:
        del self._wanted[run_id]
        self._early.pop(run_id, None)
        if run_id in self._requested:
            self._change(run_id)

    def _change(self, run_id: str) -> None:
        self._changed[run_id] = None
        self._on_change()

    # --- starts that named the stream ---------------------------------------------------------------------------------

    @property
    def can_be_named(self) -> bool:
        is_full = len(self._wanted) + IDS_PER_MESSAGE > limits.WAITS_PER_STREAM
        return bool(self.stream_id) and not is_full and len(self._early) + len(self._settled) < IDS_PER_MESSAGE

    def end_start(self) -> None:
        """A message of starts was answered or failed. After the last one, the ends that none of them wants are
        dropped."""
        self.starts_under_way -= 1
        if not self.starts_under_way:
            self._settled.clear()
            if self._early:
                self._early = {run_id: end for run_id, end in self._early.items() if run_id in self._wanted}

    def started(self, run_id: str, stream_id: str, *, is_new: bool) -> None:
        """The start of this run has announced the wait on the stream of that name. The run is asked for nevertheless if
        its answer may have gone to others: if the stream broke, or others knew the run before."""
        if run_id in self._wanted:
            return
        self._wanted[run_id] = []
        if run_id in self._early:
            return
        self._requested[run_id] = False
        if stream_id != self.stream_id or not is_new or run_id in self._settled:
            self._change(run_id)

    def forget_start(self, run_id: str) -> None:
        if self._wanted.get(run_id) == []:
            self._forget(run_id)

    # --- the stream ---------------------------------------------------------------------------------------------------

    def open_stream(self, stream_id: str) -> None:
        """The server knows nothing of this stream yet."""
        self.close_stream()
        self._new_stream_id = stream_id
        self._changed = dict.fromkeys(run_id for run_id in self._wanted if run_id not in self._early)

    def close_stream(self) -> None:
        self.stream_id = self._new_stream_id = ""
        self._requested.clear()
        self._changed.clear()

    def next_message(self) -> Message | None:
        """What the server has to be told, which counts as told from now on; None if nothing."""
        while self._changed:
            run_ids: list[str] = []
            forget: list[str] = []
            for run_id in list(islice(self._changed, IDS_PER_MESSAGE)):
                del self._changed[run_id]
                if run_id in self._wanted:
                    if run_id not in self._early and not self._requested.get(run_id):
                        self._requested[run_id] = True
                        run_ids.append(run_id)
                elif run_id in self._requested:
                    self._settle(run_id)
                    forget.append(run_id)
            if run_ids or forget:
                return Message(run_ids, forget, "" if self.stream_id else self._new_stream_id)
        return None

    def sent(self) -> None:
        """A message is on its way: starts may name the stream."""
        self.stream_id = self._new_stream_id

    def ended(self, run_id: str, end: RunEnd) -> list[Waiter]:
        """The server's answer. Returns who waits for it."""
        self._settle(run_id)
        waiters = self._wanted.get(run_id)
        if waiters:
            del self._wanted[run_id]
            return waiters
        if waiters is not None or self.starts_under_way:
            self._early[run_id] = end
        return []

    def missing(self, run_id: str) -> list[Waiter]:
        """The server's answer: there is no such run. Returns who waits for it."""
        self._settle(run_id)
        return self._wanted.pop(run_id, [])

    def _settle(self, run_id: str) -> None:
        """The server owes no answer any more."""
        if self._requested.pop(run_id, False) and self.starts_under_way:
            self._settled.add(run_id)

    def fail(self) -> list[Waiter]:
        """Nothing more will be answered. Returns all who wait."""
        waiters = [waiter for waiting in self._wanted.values() for waiter in waiting]
        self._wanted.clear()
        self._early.clear()
        self._changed.clear()
        return waiters
