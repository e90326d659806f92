"""How a command ends: one code for each thing a script may want to tell apart, and the words that go with it."""

import errno
from enum import IntEnum

import click


class Exit(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    CANNOT_CONNECT = 4
    REFUSED = 5
    TIMED_OUT = 124
    INTERRUPTED = 130


_WHERE_TO_LOOK = {"step": "kagzi get RUN --steps", "schedule": "kagzi schedule list"}


class Stop(click.ClickException):
    """End with `code`. `message` says what is wrong, `remedy` what to type next; both go to stderr."""

    def __init__(self, code: Exit, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.remedy = remedy


def stop_of(error: Exception) -> Stop | None:
    """What an exception means at the command line; None if it is a bug and deserves its traceback."""
    from ..core import errors

    exit_code = getattr(error, "exit_code", None)  # of what keeps a server from starting
    if isinstance(error, errors.KagziError) and exit_code is not None:
        return Stop(Exit(exit_code), str(error))
    match error:
        case errors.RunError():
            return Stop(Exit.FAILED, str(error), f"kagzi get {error.run_id} --error")
        case errors.NotFound():
            return Stop(Exit.NOT_FOUND, str(error), _WHERE_TO_LOOK.get(error.subject, "kagzi list"))
        case errors.Unavailable():
            return Stop(Exit.CANNOT_CONNECT, str(error))
        case errors.SchemaMismatch():
            return Stop(Exit.REFUSED, str(error), "kagzi db status")
        case errors.RequestError():
            return Stop(Exit.REFUSED, str(error))
        case errors.KagziError():
            return Stop(Exit.FAILED, str(error))
        case TimeoutError():
            return Stop(Exit.TIMED_OUT, str(error) or "timed out")
        case OSError():
            return Stop(Exit.FAILED, _os_error(error), _remedy_of_os_error(error))
        case _:
            return None


def _os_error(error: OSError) -> str:
    return str(error) if error.filename or not error.strerror else error.strerror


def _remedy_of_os_error(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE or "address already in use" in str(error).lower():
        return "choose another port (--listen HOST:PORT, --http HOST:PORT; port 0 picks a free one)"
    return ""
