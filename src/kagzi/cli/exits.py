"""Exit codes, one for each case that a script may need to distinguish, and the reporting of errors."""

import errno
from enum import IntEnum

import click

from ..core.text.commands import quoted


class Exit(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    CANNOT_CONNECT = 4
    REFUSED = 5
    TIMED_OUT = 124
    INTERRUPTED = 130


_LISTS = {
    "run": "kagzi list shows the existing runs",
    "step": "kagzi get RUN --steps shows the steps of a run",
    "schedule": "kagzi schedule list shows the existing schedules",
    "worker": "kagzi workers list shows the existing workers",
    "namespace": "kagzi namespaces list shows the existing namespaces",
    "workflow type": "kagzi workflows list shows the existing workflow types",
    "key": "kagzi keys list shows the existing keys",
    "version": "kagzi versions list shows the existing versions",
    "bulk operation": "kagzi bulk list shows the existing operations",
}


class Stop(click.ClickException):
    """Ends the command with `code`. `message` is the problem, `remedy` what to do about it; both go to stderr."""

    def __init__(self, code: Exit, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.remedy = remedy


def stop_of(error: Exception, command: click.Command | None = None) -> Stop | None:
    """Maps an exception to its exit code and message; None for a bug, which shows its traceback.

    `command`: the one that was called; refusals name its options.
    """
    from ..core import errors
    from .option_names import in_options, python_in_options

    exit_code = getattr(error, "exit_code", None)  # set on errors that keep a server from starting
    if isinstance(error, errors.KagziError) and exit_code is not None:
        return Stop(Exit(exit_code), str(error))
    match error:
        case errors.RunError():
            return Stop(Exit.FAILED, str(error), f"kagzi get {quoted(error.run_id)} --error shows the traceback")
        case errors.NotFound():
            return Stop(Exit.NOT_FOUND, str(error), _LISTS.get(error.subject, ""))
        case errors.Unavailable():
            return Stop(Exit.CANNOT_CONNECT, python_in_options(str(error)))
        case errors.SchemaMismatch():
            return Stop(Exit.REFUSED, str(error), "kagzi db status shows the schema version")
        case errors.RequestError():
            return Stop(Exit.REFUSED, in_options(str(error), command, error.field))
        case errors.KagziError():
            return Stop(Exit.FAILED, str(error))
        case TimeoutError():
            return Stop(Exit.TIMED_OUT, str(error) or "timed out")
        case OSError():
            return Stop(Exit.FAILED, _os_error(error), _remedy_of_os_error(error))
        case _:
            return None


# How click's messages begin; all others begin in lower case.
_CLICK_SENTENCES = ("Invalid ", "Missing ", "No such ", "Got unexpected ", "Option ", "Could not ")


def message_and_hint(stop: click.ClickException) -> tuple[str, str]:
    """What to print for an error that ends a command, from click or from us."""
    if isinstance(stop, Stop):
        return stop.message, stop.remedy
    message = stop.format_message()
    if message.startswith(_CLICK_SENTENCES):
        message = message[0].lower() + message[1:]
    context = stop.ctx if isinstance(stop, click.UsageError) else None
    if context is None:
        return message, ""
    if isinstance(stop, click.MissingParameter) and isinstance(stop.param, click.Option):
        option, choices = max(stop.param.opts, key=len), getattr(stop.param.type, "choices", ())
        value = stop.param.metavar or "|".join(choices) or stop.param.type.name.upper()
        return f"missing option {option}", f"add {option} {value}; see {context.command_path} --help"
    if isinstance(stop, click.MissingParameter) or message.startswith("got unexpected "):
        usage = " ".join(context.get_usage().removeprefix("Usage:").split())
        return message, f"write {usage}; see {context.command_path} --help"
    return message, f"see {context.command_path} --help"


def exit_code_of(stop: click.ClickException) -> int:
    return stop.code if isinstance(stop, Stop) else stop.exit_code


def _os_error(error: OSError) -> str:
    return str(error) if error.filename or not error.strerror else error.strerror


def _remedy_of_os_error(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE or "address already in use" in str(error).lower():
        return "choose another port (--listen HOST:PORT, --http HOST:PORT; port 0 picks a free one)"
    return ""
