"""The boundaries of a run: before, in and after each of its calls."""

from typing import Literal, NamedTuple

from ...sdk.execution.ledger import CHILD, FUNCTION, RACE, SIGNAL, SLEEP
from ...v1 import worker_pb2 as pb

Moment = Literal["before", "in", "after"]
NAMES: dict[int, str] = {FUNCTION: "step", SLEEP: "sleep", SIGNAL: "signal", CHILD: "child", RACE: "race"}


class Boundary(NamedTuple):
    """A moment in the life of a run, the same in every run of the workflow that is given the same.

    Before: nothing of the call has reached the server. In: its beginning is recorded, and the body of a step has run,
    but its result is lost. After: its result is recorded, and the workflow has not seen it.
    """

    run: str
    kind: str
    step_id: str
    moment: Moment

    def __str__(self) -> str:
        whose = f" of child {self.run}" if self.run else ""
        return f"{self.moment} {self.kind} {self.step_id!r}{whose}"


def kind_of(kind: "pb.StepKind | int") -> str | None:
    """None for a note that something changed, which has no boundaries."""
    return NAMES.get(kind)
