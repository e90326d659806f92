"""Shows the log records that are made in the body of a step to the worker that executes it.

Records are seen as they are made, by a factory that calls the one before it and changes nothing: no handler is added,
so a program that has none, or that configures them later, logs as it would without a worker.
"""

import logging
from typing import Any

from ..workflow.current import StepInfo, place


class _Factory:
    """Makes records as the factory before it did."""

    def __init__(self, before: Any) -> None:
        self._before = before
        self.users = 0

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record: logging.LogRecord = self._before(*args, **kwargs)
        if self.users:
            where = place.get()
            if isinstance(where, StepInfo) and where.run is not None and where.run.services.step_logs is not None:
                where.run.services.step_logs.collect(where, record)
        return record

    def leave(self) -> None:
        """The last worker of the process has stopped. If somebody has put another factory before this one since, this
        one stays and does nothing."""
        if logging.getLogRecordFactory() is self:
            logging.setLogRecordFactory(self._before)


_factory: _Factory | None = None


def watch_records() -> None:
    """Until `unwatch_records` was called as often."""
    global _factory  # noqa: PLW0603  logging has one factory for the process
    if _factory is None:
        _factory = _Factory(logging.getLogRecordFactory())
        logging.setLogRecordFactory(_factory)
    _factory.users += 1


def unwatch_records() -> None:
    global _factory  # noqa: PLW0603  as above
    assert _factory is not None
    _factory.users -= 1
    if not _factory.users:
        _factory.leave()
        _factory = None
