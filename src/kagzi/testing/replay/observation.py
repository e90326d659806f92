"""Records a replay: the calls of the code with their lines, and the values that the context returned."""

import sys
from collections.abc import Callable
from datetime import datetime
from types import FrameType
from typing import Any, NamedTuple
from uuid import UUID

from ...sdk.execution.divergence import is_user_code
from ...sdk.workflow.context import Context
from ...v1 import worker_pb2 as pb


class CallPlace(NamedTuple):
    """The place of a call in the user's source."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class TimeoutChange(NamedTuple):
    """The timeout of a wait under way, as recorded and as the code has it; None: it has none."""

    before_us: int | None
    after_us: int | None


class Observation:
    """The record of one replay."""

    def __init__(self) -> None:
        self.places: dict[str, CallPlace] = {}  # of the calls, by step id
        self.taken: list[str] = []  # recorded steps that the code has reached
        self.timeouts: dict[str, TimeoutChange] = {}  # of waits whose timeout the code has changed, by step id
        self.now_values: list[datetime] = []
        self.uuid_values: list[UUID] = []
        self.random_values: list[float] = []
        self.events = 0  # shows whether the code makes progress

    def allotted(self, step_id: str) -> None:
        """The current call was given this id."""
        self.events += 1
        place = _place(sys._getframe(2))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  the caller of allot
        if place is not None:
            self.places[step_id] = place

    def took(self, step: pb.HistoryStep) -> None:
        self.events += 1
        self.taken.append(step.step_id)

    def place_of(self, step_id: str) -> CallPlace | None:
        """Items of a map have the place of the map call."""
        return self.places.get(step_id) or self.places.get(step_id.rpartition("[")[0])


def _place(frame: FrameType | None) -> CallPlace | None:
    while frame is not None and not is_user_code(frame):
        frame = frame.f_back
    return None if frame is None else CallPlace(frame.f_code.co_filename, frame.f_lineno)


def definition_of(fn: Callable[..., Any]) -> CallPlace:
    code = getattr(fn, "__code__", None)
    return CallPlace("?", 0) if code is None else CallPlace(code.co_filename, code.co_firstlineno)


class ObservedContext(Context):
    """The context of a replayed run: it records the values that it returns."""

    def now(self) -> datetime:
        value = super().now()
        self._observation.now_values.append(value)
        return value

    def uuid(self) -> UUID:
        value = super().uuid()
        self._observation.uuid_values.append(value)
        return value

    def random(self) -> float:
        value = super().random()
        self._observation.random_values.append(value)
        return value

    @property
    def _observation(self) -> Observation:
        observation: Observation = getattr(self._run, "observation")  # noqa: B009  its declared type is that of any run
        return observation
