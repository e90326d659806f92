"""Turns internal errors, whose text clients must not see, into incident numbers, and logs them."""

import logging

from ...core.errors import KagziError
from ...core.providers import Ids
from ...core.raised.incidents import INCIDENT
from ...engine.measurements.measurements import Measurements
from ...wire.status import is_incident, is_outage, public_error

LOGGER = logging.getLogger(__name__)


class Incidents:
    """The only conversion from exceptions to errors for clients. Each incident number is also in the log."""

    def __init__(self, ids: Ids, measurements: Measurements | None = None) -> None:
        self._ids = ids
        self._measurements = measurements or Measurements()

    def public_error(self, where: str, error: Exception) -> KagziError:
        """`where`: the operation, for the log. Kagzi's own refusals are returned unchanged."""
        if is_incident(error):
            number = error.metadata.get(INCIDENT, "") if isinstance(error, KagziError) else ""
            if not number:  # otherwise it was already logged
                number = self._ids.token()
                self._measurements.incidents += 1
                LOGGER.error("incident %s in %s", number, where, exc_info=error)
            return public_error(error, incident=number)
        if is_outage(error):
            LOGGER.warning("%s failed: %s", where, error)
        return public_error(error)
