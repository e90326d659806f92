"""Passes the log records made in the body of a step to the worker that executes it.

A record factory sees the records as they are made; it calls the previous factory and changes nothing. No handler is
added, so a program without handlers, or one that configures them later, logs as it would without a worker.
"""

import logging
from typing import Any

from ..workflow.current import StepInfo, place


class _Factory:
    """Makes records as the previous factory did."""

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
        """The last worker of the process has stopped. If another factory was installed on top of this one meanwhile,
        this one stays and does nothing."""
        if logging.getLogRecordFactory() is self:
            logging.setLogRecordFactory(self._before)


_factory: _Factory | None = None


def watch_records() -> None:
    """Watches until `unwatch_records` has been called as often."""
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
