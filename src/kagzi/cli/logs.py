"""Logs of long-running commands: on stderr, one line or one JSON object per record.

No content of a record (external values, tracebacks) can look like another record: in text, further lines have a margin;
in JSON, a record is always one line.
"""

import json
import logging
import os
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click

from ..core.text.printable import escape, with_margin
from .options import options

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")
LEVEL_VARIABLE = "KAGZI_LOG_LEVEL"
FORMAT_VARIABLE = "KAGZI_LOG_FORMAT"

_NAME_THEIR_RUN = ("kagzi.worker", "kagzi.engine")  # loggers whose lines begin with their run
_PLAIN = (str, int, float, bool, type(None))
_OF_EVERY_RECORD = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"})


log_options = options(
    click.option(
        "--log-level",
        type=click.Choice(LEVELS, case_sensitive=False),
        envvar=LEVEL_VARIABLE,
        help=f"Log messages of this level and above.  [env: {LEVEL_VARIABLE}; default: info; server: warning]",
    ),
    click.option(
        "--log-format",
        type=click.Choice(FORMATS, case_sensitive=False),
        envvar=FORMAT_VARIABLE,
        help=f"Log as text, or as JSON with one object per line.  [env: {FORMAT_VARIABLE}; default: text]",
    ),
)
"""Options of long-running commands."""


def show_logs(
    level: str | None, form: str | None, *, default: str = "info", process: int = 0, executes_runs: bool = True
) -> None:
    """Logs to stderr. A program that has configured logging itself keeps it, unless a level or a form is set.
    `process`: its number among processes that log to the same place. `executes_runs`: records may come from runs."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(process) if form == "json" else TextLines(process))
    if executes_runs:
        from ..sdk.worker.log_context import RunContextFilter

        handler.addFilter(RunContextFilter())
    force = level is not None or form is not None
    logging.basicConfig(handlers=[handler], level=(level or default).upper(), force=force)


def show_inherited_logs() -> None:
    """For a child process of another command: logs with the options of that command."""
    show_logs(os.environ.get(LEVEL_VARIABLE), os.environ.get(FORMAT_VARIABLE))


def hand_on(level: str | None, form: str | None) -> None:
    """Passes the options on to child processes."""
    for variable, value in ((LEVEL_VARIABLE, level), (FORMAT_VARIABLE, form)):
        if value is not None:
            os.environ[variable] = value


def announce(form: str | None, *, process: int = 0) -> Callable[[str], None]:
    """Prints a line beside the log, such as that a server is ready, in the format of the log."""

    def say(line: str) -> None:
        record = logging.LogRecord("kagzi.server", logging.INFO, "", 0, line, None, None)
        text = f"process {process}: {line}" if process else line
        print(JsonLines(process).format(record) if form == "json" else text, file=sys.stderr, flush=True)

    return say


class TextLines(logging.Formatter):
    """`2026-11-16 01:40:12+0000 WARNING kagzi.worker: ...`; further lines and tracebacks have a margin. With `process`:
    `kagzi.worker[2]: ...`. Warnings and errors about a run end with the URL of its page."""

    def __init__(self, process: int = 0) -> None:
        super().__init__()
        self._process = f"[{process}]" if process else ""

    def format(self, record: logging.LogRecord) -> str:
        first, _, more = record.getMessage().rstrip("\n").partition("\n")
        at = self.formatTime(record, "%Y-%m-%d %H:%M:%S%z")
        line = f"{at} {record.levelname:<7} {escape(record.name)}{self._process}: {escape(first)}{_where(record)}"
        if page := _page(record):
            line = f"{line} {page}"
        if more:
            line = f"{line}\n{with_margin(more)}"
        if exception := exception_text(record):
            line = f"{line}\n{with_margin(exception)}"
        return line


class JsonLines(logging.Formatter):
    """One object per line: time, level, logger, message; process, namespace, run_id, workflow_id, workflow_type, step,
    attempt, trace_id, run_url and exception where known; and the caller's `extra`."""

    def __init__(self, process: int = 0) -> None:
        super().__init__()
        self._process: dict[str, Any] = {"process": process} if process else {}

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **self._process,
        }
        for name, value in vars(record).items():
            if name not in _OF_EVERY_RECORD and name not in line:
                line[name] = value if isinstance(value, _PLAIN) else str(value)
        if exception := exception_text(record):
            line["exception"] = exception
        return json.dumps(line)


def exception_text(record: logging.LogRecord) -> str:
    """The exception of a record; shortened if it comes from a run. Empty if there is none."""
    from ..sdk.worker.log_context import is_about_run
    from ..sdk.worker.tracebacks import shortened_exception

    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        text = record.exc_text or ""
    else:
        text = shortened_exception(error) if is_about_run(record) else "".join(traceback.format_exception(error))
    if record.stack_info:
        text = f"{text}\n{record.stack_info}" if text else record.stack_info
    return text.rstrip("\n")


def _page(record: logging.LogRecord) -> str:
    """The URL of the run, for warnings and errors."""
    return escape(str(vars(record).get("run_url", ""))) if record.levelno >= logging.WARNING else ""


def _where(record: logging.LogRecord) -> str:
    """The run, step, attempt and trace, for lines that do not name them."""
    from ..core.records import DEFAULT_NAMESPACE

    facts = vars(record)
    if record.name in _NAME_THEIR_RUN or "run_id" not in facts:
        return ""
    run_id, own_id = facts["run_id"], facts.get("workflow_id", "")
    names = (facts.get("workflow_type", ""), repr(own_id) if own_id not in ("", run_id) else "")
    namespace = facts.get("namespace", "")
    where = f" of namespace {namespace}" if namespace not in ("", DEFAULT_NAMESPACE) else ""
    named = ", ".join(filter(None, (" ".join(filter(None, names)), f"run {run_id}{where}")))
    step = f", step {facts['step']!r}, attempt {facts['attempt']}" if "step" in facts and "attempt" in facts else ""
    trace = f", trace {facts['trace_id']}" if facts.get("trace_id") else ""
    return escape(f" [{named}{step}{trace}]")
