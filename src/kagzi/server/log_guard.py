"""Escapes external text in the server's log, so that it cannot forge log lines or send control codes to a terminal.

It is a filter on each logger of the server, not on a handler: so it covers every call site, and servers that are
embedded in a program with its own handlers.
"""

import logging
import traceback
from typing import Any

from ..core.text.printable import escape, with_margin

GUARDED = (
    "kagzi.engine",
    "kagzi.store",
    "kagzi.store.postgres.connection.bus",
    "kagzi.server",
    "kagzi.server.grpc.incidents",
    "kagzi.embedded",
    "uvicorn.error",
)
"""A logger's filters do not apply to its children, so each logger is listed. A test compares the list with the loggers
in use."""


def guard_logs() -> None:
    """Installs the filters; safe to call repeatedly."""
    for name in GUARDED:
        logging.getLogger(name).addFilter(_GUARD)


class _Guard(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if not record.args:
            record.msg = escape(str(record.msg).rstrip("\n"))
        elif isinstance(record.args, tuple):
            record.args = tuple(map(_escaped, record.args))
        else:
            record.args = {key: _escaped(value) for key, value in record.args.items()}
        if record.exc_info and record.exc_info[0] is not None and not record.exc_text:
            # Handlers print this text instead of formatting the exception. An exception's message may have many lines:
            # the margin keeps them from looking like lines of the log.
            record.exc_text = with_margin("".join(traceback.format_exception(*record.exc_info)))
        return True


def _escaped(value: Any) -> Any:
    """Leaves numbers as they are, for %d, and any value that prints as one plain line."""
    if isinstance(value, int | float):
        return value
    text = str(value)
    return value if text.isprintable() else escape(text)


_GUARD = _Guard()
