"""Escapes what comes from outside in the server's log: nobody but the server begins a line of it, and no terminal obeys
it.

A filter on each logger of the server, not on a handler: it holds for every call site, and for servers that are embedded
in a program with handlers of its own.
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
"""Filters of a logger are not those of its children, so each is named. A test compares this with the loggers that are
used."""


def guard_logs() -> None:
    """Any number of times."""
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
            # What handlers print instead of formatting it themselves. An exception's message may be of many lines: with
            # the margin none of them looks like a line of the log.
            record.exc_text = with_margin("".join(traceback.format_exception(*record.exc_info)))
        return True


def _escaped(value: Any) -> Any:
    """Numbers stay what they are, for %d; so does whatever prints as one plain line."""
    if isinstance(value, int | float):
        return value
    text = str(value)
    return value if text.isprintable() else escape(text)


_GUARD = _Guard()
