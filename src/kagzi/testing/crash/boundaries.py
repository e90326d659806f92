"""The boundaries of a run: before, in and after each of its calls."""

from typing import Literal, NamedTuple

from ...sdk.execution.ledger import CHILD, FUNCTION, RACE, SIGNAL, SLEEP
from ...v1 import worker_pb2 as pb

Moment = Literal["before", "in", "after"]
NAMES: dict[int, str] = {FUNCTION: "step", SLEEP: "sleep", SIGNAL: "signal", CHILD: "child", RACE: "race"}


class Boundary(NamedTuple):
    """A moment of a run. Runs of the workflow with the same input have the same boundaries.

    Before: nothing of the call has reached the server. In: the call is recorded as begun, and the body of a step has
    run, but its result is lost. After: the result is recorded, but the workflow has not seen it.
    """

    run: str
    kind: str
    step_id: str
    moment: Moment

    def __str__(self) -> str:
        whose = f" of child {self.run}" if self.run else ""
        return f"{self.moment} {self.kind} {self.step_id!r}{whose}"


def kind_of(kind: "pb.StepKind | int") -> str | None:
    """None for a patch marker, which has no boundaries."""
    return NAMES.get(kind)
