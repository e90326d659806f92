"""The `kagzi` command. Subcommands are in separate modules, which are imported when they are called."""

import gc
import importlib
import os
import sys
from collections.abc import Sequence
from typing import cast

import click

from ..core.version import __version__
from .console import colour, fail
from .exits import Exit, exit_code_of, message_and_hint, stop_of
from .groups import Commands

# name: (module, attribute, help). The help is duplicated from the command, so that `kagzi --help` need not import it; a
# test compares the two.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "dev": ("dev.command", "dev", "Run a server and a worker for development, and reload FILE when it changes."),
    "demo": ("demo.command", "demo", "Run a sample shop, to explore in the dashboard."),
    "server": ("operate.server", "server", "Run a production server on PostgreSQL or SQLite."),
    "worker": ("operate.worker", "worker", "Run a worker that serves the workflows of a module or file."),
    "lint": ("develop.lint", "lint", "Find code in workflows that a replay would not survive."),
    "start": ("runs.start", "start", "Start a run of WORKFLOW."),
    "list": ("runs.list_runs", "list_runs", "List runs, newest first."),
    "get": ("runs.get", "get", "Show one run."),
    "open": ("runs.open_page", "open_page", "Open the page of a run, or the dashboard, in your browser."),
    "explain": ("runs.explain", "explain", "Explain why a run is in its current state."),
    "count": ("runs.list_runs", "count", "Count runs."),
    "tail": ("runs.tail", "tail", "Follow a run, or all runs, as they change."),
    "logs": ("runs.logs", "logs", "Show what the steps of a run logged."),
    "trace": ("runs.trace", "trace", "Show what a run did as a trace, or send it to a tracing backend."),
    "signal": ("runs.signals", "signal", "Send a signal to a run."),
    "cancel": ("runs.control", "cancel", "Cancel a run, or all that match. A cancelled run may clean up first."),
    "terminate": ("runs.control", "terminate", "End a run, or all that match, at once and without cleanup."),
    "pause": ("runs.control", "pause", "Pause a run: no more steps begin until it is resumed."),
    "resume": ("runs.control", "resume", "Resume a paused run, or all that match."),
    "wake": ("runs.wake", "wake", "Wake a run: a retry, a sleep or a delayed start is due now."),
    "retry": ("runs.control", "retry", "Reopen a failed run, or all that match, at the step that failed."),
    "delete": ("runs.control", "delete", "Delete runs that have ended, with their history."),
    "bulk": ("runs.bulk", "bulk", "List, show and stop operations on many runs."),
    "export": ("runs.transfers", "export", "Export runs with their history, as lines of JSON."),
    "import": ("runs.transfers", "import_runs", "Import runs from a file that kagzi export wrote."),
    "fork": ("runs.fork", "fork", "Start a new run with the recorded results of another one."),
    "replay": ("develop.replay", "replay", "Run the code of a workflow with the recorded results of a run."),
    "diff": ("develop.diff", "diff", "Compare two runs: the first step that differs, with values and times."),
    "check": ("develop.check", "check", "Check that open runs fit the code that you are about to deploy."),
    "adopt": ("develop.adopt", "adopt", "Let one stuck run continue with repaired code."),
    "schedule": ("operate.schedule", "schedule", "Create and manage schedules, which start runs at set times."),
    "workers": ("operate.workers", "workers", "List workers, show what happened to them, and drain them."),
    "workflows": ("operate.workflows", "workflows", "Show, limit, pause and resume workflow types and their queues."),
    "versions": ("operate.versions", "versions", "List, deprecate and choose versions of workflows."),
    "namespaces": ("operate.namespaces", "namespaces", "Create, limit, disable and delete namespaces."),
    "keys": ("operate.keys", "keys", "Create, list, rotate and revoke API keys."),
    "audit": ("operate.audit", "audit", "List administrative changes, latest first, with the key that made them."),
    "stats": ("operate.stats", "stats", "Show how many runs started, ended and are open, and how long they took."),
    "effects": (
        "transactions.effects",
        "effects",
        "Show how to create the table that kagzi.effect uses in your database.",
    ),
    "outbox": (
        "transactions.outbox",
        "outbox",
        "List, retry and drop starts by client.start_in that a server refused.",
    ),
    "db": ("operate.db", "db", "Migrate and inspect the database."),
    "bench": ("bench.command", "bench", "Measure the throughput, latency and CPU use of Kagzi on this machine."),
    "version": ("operate.version", "version", "Show the versions of Kagzi, Python and the libraries in use."),
}


# As `kagzi --help` shows them; each command is in one.
GROUPS: dict[str, tuple[str, ...]] = {
    "Develop": ("dev", "demo", "lint", "replay", "diff", "bench", "version"),
    "Runs": (
        *("start", "list", "get", "open", "explain", "count", "tail", "logs", "trace", "signal", "cancel", "terminate"),
        *("pause", "resume", "wake", "retry", "fork", "delete", "bulk", "export", "import"),
    ),
    "Deploy": ("server", "worker", "check", "adopt", "versions", "db", "effects", "outbox"),
    "Operate": ("schedule", "workers", "workflows", "namespaces", "keys", "audit", "stats"),
}

_COLLECT_AFTER = 200_000
"""In objects: more than imports create. Imported objects are never garbage, and a single collection of them takes 5 %
of the startup. Processes that serve collect sooner, but exclude imported objects (`processes.py`)."""


class LazyGroup(Commands):
    """A group that lists the names and help of its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        return cast("click.Command", getattr(importlib.import_module(f"{__package__}.{module}"), attribute))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group, names in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name, COMMANDS[name][2]) for name in names])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in COMMANDS:  # before the first import of a command, whose options read their defaults from it
            from .settings import default_map

            ctx.default_map = default_map()
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, message="%(prog)s %(version)s", help="Show the version and exit.")
def kagzi() -> None:
    """Durable execution for Python.

    \b
    kagzi dev hello.py                  run a server and a worker, and reload on changes
    kagzi start hello world --wait      start a run and print its result
    kagzi get RUN --steps               show what the run did
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and exits with its code. Shows a traceback only for a bug."""
    # Before grpc is imported: its C core writes to stderr, even about errors that were handled.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    gc.set_threshold(_COLLECT_AFTER)
    code = run(arguments)
    gc.freeze()  # or the interpreter's final collections would traverse all modules: a fifth of a short command
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    try:
        code: object = kagzi.main(args=arguments, prog_name="kagzi", standalone_mode=False, color=colour())
    except click.Abort:
        return Exit.INTERRUPTED
    except click.ClickException as refusal:
        return _report(refusal)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output is gone (`| head`). The interpreter would fail to flush stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    except Exception as error:
        stop = stop_of(error)
        if stop is None:
            raise
        return _report(stop)
    return code if isinstance(code, int) else Exit.OK


def _report(stop: click.ClickException) -> int:
    fail(*message_and_hint(stop))
    return exit_code_of(stop)
