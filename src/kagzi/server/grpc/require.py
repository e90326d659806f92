"""Checks that an operation had the outcome its caller expects; any other is a bug."""

from typing import TypeVar

from ...core.errors import InternalError
from ...core.run.outcomes import Outcome

Required = TypeVar("Required")


def require(outcome: Outcome, kind: type[Required]) -> Required:
    if isinstance(outcome, kind):
        return outcome
    raise InternalError(f"expected {kind.__name__}, got {type(outcome).__name__}")
