"""The `kagzi` command. Subcommands live in modules of their own and are imported when they are called."""

import importlib
import os
import sys
from collections.abc import Sequence
from typing import cast

import click

from .exits import Exit, Stop, stop_of

# name: (module, attribute, help). The help is repeated from the command, so that `kagzi --help` need not import it; a test
# holds the two equal.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "dev": ("dev", "dev", "Run a server and a worker for FILE, with reload: all you need while writing workflows."),
    "server": ("server", "server", "Run a production server on PostgreSQL or SQLite."),
    "worker": ("worker", "worker", "Run a worker for the workflows of a module or file."),
    "start": ("start", "start", "Start a run of WORKFLOW."),
    "list": ("list_runs", "list_runs", "List runs, newest first."),
    "get": ("get", "get", "Show one run."),
    "explain": ("explain", "explain", "Say why a run is where it is."),
    "count": ("count", "count", "Count runs."),
    "tail": ("tail", "tail", "Show what happens, as it happens."),
    "signal": ("signals", "signal", "Send a signal to a run."),
    "cancel": ("cancel", "cancel", "Ask a run to stop, or all that match."),
    "terminate": ("terminate", "terminate", "End a run now, without cleanup, or all that match."),
    "pause": ("pause", "pause", "Let a run begin no more steps, until it is resumed."),
    "resume": ("pause", "resume", "Let a paused run go on, or all that match."),
    "retry": ("retry", "retry", "Reopen a failed run at the step that failed it, or all that match."),
    "delete": ("delete", "delete", "Forget runs that have ended, with their history."),
    "bulk": ("bulk", "bulk", "Look after operations on many runs: how far they are, and end them."),
    "export": ("export", "export", "Write runs with their history as lines of JSON."),
    "import": ("import_runs", "import_runs", "Bring in runs that were exported, perhaps from another store."),
    "fork": ("fork", "fork", "Start a new run from the middle of another one."),
    "schedule": ("schedule", "schedule", "Look after schedules: runs started by the clock."),
    "workers": ("workers", "workers", "Look after workers: who is there, what happened to them, send one home."),
    "workflows": (
        "workflows",
        "workflows",
        "Look after workflow types as queues: limits, rates, pause and resume, how many runs wait.",
    ),
    "versions": (
        "versions",
        "versions",
        "Look after versions of workflows: the default, and those that take no new runs.",
    ),
    "namespaces": (
        "namespaces",
        "namespaces",
        "Look after namespaces: who shares this server, what each may do, and their end.",
    ),
    "stats": (
        "stats",
        "stats",
        "Show what happened lately: runs started and ended, how long they took, and what is open.",
    ),
    "db": ("db", "db", "Look after the database."),
    "bench": ("bench", "bench", "Measure this machine: throughput, latency and CPU, as a table and as JSON."),
    "version": ("version", "version", "Show the versions of Kagzi, Python and what it stands on."),
}


class LazyGroup(click.Group):
    """A group that knows the names and the help of its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        return cast("click.Command", getattr(importlib.import_module(f"{__package__}.{module}"), attribute))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if (
            args and args[0] in COMMANDS
        ):  # before the first import of a command: its options take their defaults from it
            from .settings import default_map

            ctx.default_map = default_map()
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
def kagzi() -> None:
    """Durable execution for Python.

    \b
    kagzi dev hello.py                  server, worker and reload
    kagzi start hello world --wait      start a run and print its result
    kagzi get RUN --steps               see what it did
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit with its code. No traceback for anything but a bug."""
    # Before grpc is imported: its C core writes lines of its own to stderr, also about things that were handled.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    try:
        code: object = kagzi.main(args=arguments, prog_name="kagzi", standalone_mode=False, color=_color())
    except click.Abort:
        return Exit.INTERRUPTED
    except click.ClickException as refusal:
        return _report(refusal)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone (`| head`). The interpreter would complain when it flushes stdout at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    except Exception as error:
        stop = stop_of(error)
        if stop is None:
            raise
        return _report(stop)
    return code if isinstance(code, int) else Exit.OK


def _report(stop: click.ClickException) -> int:
    if not isinstance(stop, Stop):
        stop.show()
        return stop.exit_code
    click.echo(f"{click.style('error:', fg='red')} {stop.message}", err=True, color=_color())
    if stop.remedy:
        click.echo(f"{click.style('try:', fg='cyan')}   {stop.remedy}", err=True, color=_color())
    return stop.code


def _color() -> bool | None:
    return False if os.environ.get("NO_COLOR") else None
