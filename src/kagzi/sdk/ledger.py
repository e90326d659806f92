"""What is recorded of a run, by step id: replay reads from here instead of executing."""

from collections.abc import Iterable

from ..core.errors import Diverged, ErrorDetail, ErrorKind, StepError
from ..v1 import worker_pb2 as pb
from ..wire.common import read_error
from ..wire.enums import STEP_KIND_FROM_WIRE

FUNCTION = pb.STEP_KIND_FUNCTION
SLEEP = pb.STEP_KIND_SLEEP


class Ledger:
    """The recorded steps that the code has not reached yet, and a fingerprint of all results known.

    The fingerprint tells whether a history is the one this ledger knows: it does not depend on the order in which results came.
    """

    __slots__ = ("_open", "fingerprint", "known_seq", "steps_count", "unreached")

    def __init__(self, steps: Iterable[pb.HistoryStep] = ()) -> None:
        self._open: dict[str, pb.HistoryStep] = {}
        self.fingerprint = 0
        self.known_seq = 0
        self.steps_count = 0
        self.unreached = 0  # recorded results that were not delivered yet
        self.add(steps)

    def add(self, steps: Iterable[pb.HistoryStep]) -> None:
        for step in steps:
            self._open[step.step_id] = step
            self.steps_count += 1
            if step.seq:
                self.unreached += 1
                self.know(step.step_id, step.seq)

    def know(self, step_id: str, seq: int) -> None:
        """A result was recorded with this number."""
        self.fingerprint ^= hash((step_id, seq))
        self.known_seq = max(self.known_seq, seq)

    def take(self, step_id: str, kind: pb.StepKind) -> pb.HistoryStep | None:
        """What is recorded under this id. Each is taken once. Raises Diverged if it is of another kind."""
        step = self._open.pop(step_id, None)
        if step is not None and step.kind != kind:
            raise Diverged(
                f"{step_id!r} is a {STEP_KIND_FROM_WIRE[kind]} in the code, but this run recorded it as a "
                f"{STEP_KIND_FROM_WIRE.get(step.kind, 'step of an unknown kind')}. "
                f"Give the changed call another name, or deploy the code that began the run.",
                metadata={"step_id": step_id},
            )
        return step

    def fits(self, steps: Iterable[pb.HistoryStep]) -> bool:
        """Whether a history has just the results that this ledger knows, up to the last of them."""
        fingerprint = 0
        for step in steps:
            if 0 < step.seq <= self.known_seq:
                fingerprint ^= hash((step.step_id, step.seq))
        return fingerprint == self.fingerprint


def error_of(step: pb.HistoryStep) -> StepError | None:
    """The failure a step is recorded with; None if it completed."""
    if step.status == pb.STEP_STATUS_COMPLETED:
        return None
    if step.HasField("error"):
        error = read_error(step.error)
    else:
        error = ErrorDetail(kind=ErrorKind.CANCELLED, message="the step was abandoned")
    return StepError.of(step.step_id, error, attempts=step.attempt)
