"""The recorded steps of a run, by step id: replay reads results from here instead of executing steps."""

from collections.abc import Collection, Iterable
from heapq import nsmallest

from ...core.error_details import ErrorDetail, ErrorKind
from ...core.errors import Diverged, StepError
from ...v1 import worker_pb2 as pb
from ...wire.common import read_error
from ...wire.enums import STEP_KIND_FROM_WIRE
from .scopes import Scope

FUNCTION = pb.STEP_KIND_FUNCTION
SLEEP = pb.STEP_KIND_SLEEP
SIGNAL = pb.STEP_KIND_SIGNAL
CHILD = pb.STEP_KIND_CHILD
RACE = pb.STEP_KIND_RACE
PATCH = pb.STEP_KIND_PATCH
ABANDONED = pb.STEP_STATUS_ABANDONED
COMPLETED = pb.STEP_STATUS_COMPLETED
WITHDRAWN = "/withdrawn"  # suffix of the id of the record that closes a withdrawn wait


class SignalWait:
    """A wait for a signal that the code has begun, and whose value it has not received. `seq`: that of the value, once
    it is known."""

    __slots__ = ("name", "seq")

    def __init__(self, name: str, seq: int) -> None:
        self.name = name
        self.seq = seq


class Ledger:
    """The recorded steps that the code has not reached, the steps that it has begun, and a fingerprint of all known
    results.

    The fingerprint tells whether a history is the one that this ledger knows. It does not depend on the order in which
    results arrived. Steps closed by a race have no result, whatever their seq.
    """

    __slots__ = (
        "_recorded", "closed", "fingerprint", "known_seq", "open", "outstanding", "refused_steps", "replaying",
        "signals", "steps_count", "unreached",
    )  # fmt: skip

    def __init__(self, steps: Iterable[pb.HistoryStep] = ()) -> None:
        self._recorded: dict[str, pb.HistoryStep] = {}
        self.open: dict[str, Scope] = {}  # begun and without a result, with the scope that waits for each
        self.closed: set[str] = set()  # abandoned by a race or because a branch failed
        self.signals: dict[str, SignalWait] = {}  # by step, until the server knows that the code gave it up
        self.fingerprint = 0
        self.known_seq = 0
        self.steps_count = 0
        self.refused_steps = 0  # for which there was no room
        self.unreached = 0  # recorded results that have not been delivered yet
        self.outstanding = 0  # recorded calls that matching code still has to make
        self.replaying = False  # the code repeats what it did before
        self.add(steps)

    def add(self, steps: Iterable[pb.HistoryStep]) -> None:
        for step in steps:
            self._recorded[step.step_id] = step
            self.steps_count += 1
            self.outstanding += _is_binding(step)
            if step.status == ABANDONED:
                step.seq = step.seq or 1  # it counts as settled
            elif step.seq:
                self.unreached += step.kind != PATCH
                self.know(step.step_id, step.seq)
        self.replaying = self.unreached > 0

    def know(self, step_id: str, seq: int) -> None:
        """A result was recorded with this seq."""
        self.fingerprint ^= hash((step_id, seq))
        self.known_seq = max(self.known_seq, seq)

    def know_signal(self, step_id: str, seq: int) -> None:
        """A wait got its signal, with this seq. If the code has given up the wait, the server takes the signal back."""
        if step_id in self.closed:
            return
        self.know(step_id, seq)
        if (wait := self.signals.get(step_id)) is not None:
            wait.seq = seq

    def give_up(self, step_ids: Iterable[str]) -> set[str]:
        """The server is about to be told that the code no longer waits for these steps: no signal is their result.
        Returns the names of the signals that other waits may get now."""
        names: set[str] = set()
        for step_id in step_ids:
            wait = self.signals.pop(step_id, None)
            if wait is not None:
                names.add(wait.name)
                if wait.seq:
                    self.fingerprint ^= hash((step_id, wait.seq))
        return names

    def waits_for(self, names: Collection[str]) -> list[SignalWait]:
        """The waits for signals of these names."""
        return [wait for wait in self.signals.values() if wait.name in names] if names else []

    def take(self, step_id: str, kind: pb.StepKind) -> pb.HistoryStep | None:
        """The record with this id. Each can be taken once. Raises Diverged if it is of another kind."""
        step = self._recorded.pop(step_id, None)
        if step is not None and step.kind != kind:
            raise Diverged(
                f"{step_id!r} is a {STEP_KIND_FROM_WIRE[kind]} in the code, but this run recorded it as a "
                f"{STEP_KIND_FROM_WIRE.get(step.kind, 'step of an unknown kind')}. "
                f"Give the changed call another name, or deploy the code that began the run.",
                metadata={"step_id": step_id},
            )
        if step is not None:
            self.outstanding -= _is_binding(step)
        return step

    @property
    def is_empty(self) -> bool:
        """Whether the code has asked for all records."""
        return not self._recorded

    def has_more_in(self, prefix: str) -> bool:
        """Whether this scope, or one inside it, has records that the code has not asked for."""
        return any(step_id.startswith(prefix) for step_id in self._recorded)

    def first_result(self) -> pb.HistoryStep | None:
        """The first result that the code has not asked for."""
        results = (step for step in self._recorded.values() if step.seq and _is_binding(step))
        return min(results, key=lambda step: step.seq, default=None)

    def first_outstanding(self, count: int = 3) -> list[pb.HistoryStep]:
        """The first recorded calls that the code has not made, in the order in which they began."""
        return nsmallest(count, filter(_is_binding, self._recorded.values()), key=lambda step: step.begun_seq)

    def close_scopes(self, scopes: Collection[Scope], decided_seq: int) -> list[str]:
        """Close these branches: nothing will wait for their open steps. Returns the open steps, which a record has to
        close."""
        open_steps = [step_id for step_id, scope in self.open.items() if scope.is_within(scopes)]
        self.closed.update(open_steps)
        for scope in scopes:
            self._close(scope.prefix, decided_seq)
        return open_steps

    def _close(self, prefix: str, decided_seq: int) -> None:
        """Drop the records of the scope: the code will not ask for them. Steps begun after its end was recorded
        (`decided_seq`, 0: not yet) belong to its cleanup and are kept."""
        for step_id in [step_id for step_id in self._recorded if step_id.startswith(prefix)]:
            if 0 < decided_seq < self._recorded[step_id].begun_seq:
                continue
            step = self._recorded.pop(step_id)
            self.outstanding -= _is_binding(step)
            if step.seq and step.status != ABANDONED and step.kind != PATCH:
                self.unreached -= 1

    def fits(self, steps: Iterable[pb.HistoryStep]) -> bool:
        """Whether a history has exactly the results that this ledger knows, up to the last of them."""
        fingerprint = 0
        for step in steps:
            if 0 < step.seq <= self.known_seq and step.status != ABANDONED:
                fingerprint ^= hash((step.step_id, step.seq))
        return fingerprint == self.fingerprint


def _is_binding(step: pb.HistoryStep) -> bool:
    """Whether matching code must make this call again. Not markers, which may be removed from the code, and not
    abandoned steps, for which nothing waits any more."""
    if step.status == ABANDONED or step.kind == PATCH:
        return False
    return step.kind != RACE or not step.step_id.endswith(WITHDRAWN)


def as_claimed(steps: Iterable[pb.HistoryStep], last_seq: int) -> bool:
    """Reopen the steps that others ended after the claim, whose last seq is `last_seq`. Returns whether there were any.

    Pages are read one after the other: a result that arrived meanwhile may be in a later page, while one with a lower
    seq, of an earlier page, is missing. The run fetches both and gets them in order.
    """
    came = False
    for step in steps:
        if step.seq > last_seq and step.kind in (SIGNAL, CHILD) and step.status != ABANDONED:
            came = True
            step.seq = step.at_us = 0
            step.status = pb.STEP_STATUS_RUNNING
            step.ClearField("output")
            step.ClearField("error")
    return came


def error_of(step: pb.HistoryStep) -> StepError | None:
    """The recorded failure of a step; None if it completed."""
    if step.status == pb.STEP_STATUS_COMPLETED:
        return None
    if step.HasField("error"):
        error = read_error(step.error)
    else:
        error = ErrorDetail(kind=ErrorKind.CANCELLED, message="the step was abandoned")
    return StepError.of(step.step_id, error, attempts=step.attempt)
