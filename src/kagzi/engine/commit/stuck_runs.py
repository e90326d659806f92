"""Runs on whose operations alone the store fails: a damaged page, a bug in a statement.

This is not the fault of the run, so it never ends the run. Its worker is told to hand it back, and it is offered again;
after several rounds it is paused with a problem, whose incident number is in the log with the store's error.
"""

import logging

from ...core.error_details import ErrorCode, ErrorDetail, ErrorKind
from ...core.errors import InternalError
from ...core.providers import Ids
from ...core.raised.incidents import INCIDENT, incident_error
from ...core.run.commands import Command, PauseDiverged, StartRun
from ...core.text.commands import quoted
from ..measurements.measurements import Measurements

logger = logging.getLogger("kagzi.engine")

_REMEMBERED = 10_000


class StuckRuns:
    """`rounds`: how often the operations of one run are given up before it is paused. Counted by this server since its
    start."""

    def __init__(self, ids: Ids, *, rounds: int, measurements: Measurements | None = None) -> None:
        self._ids = ids
        self._measurements = measurements or Measurements()
        self._rounds = rounds
        self._abandoned: dict[str, int] = {}

    def give_up(self, command: Command, reason: str) -> tuple[InternalError, PauseDiverged | None]:
        """The error for the worker, and the command that pauses the run, if it is to be paused."""
        number = self._ids.token()
        self._measurements.incidents += 1
        run_id = command.run.run_id
        logger.error("incident %s: the store fails on %s of run %s: %s", number, type(command).__name__, run_id, reason)
        if isinstance(command, (StartRun, PauseDiverged)):
            return incident_error(number), None
        times = self._abandoned.pop(run_id, 0) + 1
        if times < self._rounds:
            if len(self._abandoned) >= _REMEMBERED:
                del self._abandoned[next(iter(self._abandoned))]
            self._abandoned[run_id] = times  # the latest is last
            return incident_error(number), None
        problem = _problem(run_id, number, times)
        logger.error("run %s of namespace %s is paused: %s", run_id, command.run.namespace, problem.message)
        return incident_error(number), PauseDiverged(run=command.run, lease=command.lease, problem=problem)


def _problem(run_id: str, number: str, times: int) -> ErrorDetail:
    return ErrorDetail(
        code=ErrorCode.INTERNAL,
        kind=ErrorKind.TRANSIENT,
        message=f"the server could not record what this run does, {times} times: incident {number}; see the "
        f"server's log. When the cause is fixed, resume the run: kagzi resume {quoted(run_id)}",
        subject="run",
        subject_id=run_id,
        metadata={INCIDENT: number},
    )
