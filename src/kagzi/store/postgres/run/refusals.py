"""Refusals that only PostgreSQL has to make; those that both stores make are in core/run/refusals.py."""

from ....core.error_details import ErrorCode
from ....core.run.outcomes import Refused
from ....core.run.refusals import refused


def invalid_argument(message: str, *, field: str) -> Refused:
    return refused(ErrorCode.INVALID_ARGUMENT, message, subject="field", subject_id=field)
