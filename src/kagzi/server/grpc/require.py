"""Outcomes an operation can have are known to its caller; any other is a bug."""

from typing import TypeVar

from ...core.errors import InternalError
from ...core.run.outcomes import Outcome

Expected = TypeVar("Expected")


def expect(outcome: Outcome, kind: type[Expected]) -> Expected:
    if isinstance(outcome, kind):
        return outcome
    raise InternalError(f"expected {kind.__name__}, got {type(outcome).__name__}")
