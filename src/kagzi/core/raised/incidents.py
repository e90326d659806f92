"""Problems that clients get a number for, under which the server's log has the cause."""

from ..errors import InternalError

INCIDENT = "incident"
"""Metadata key of an InternalError whose cause is in the log: the incident number to search the log for."""


def incident_error(number: str) -> InternalError:
    """The error that clients get for a problem that was logged under this number."""
    return InternalError(
        f"internal error, incident {number}. Look for this number in the server's log.",
        metadata={INCIDENT: number},
    )
