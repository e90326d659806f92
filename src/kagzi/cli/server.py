"""`kagzi server`."""

from typing import Any

import click

from .logs import log_options
from .server_setup import server_config

_TIMINGS = {
    "lease": "How long a worker may be silent before its runs go to others.  [default: 15s]",
    "heartbeat": "How often workers say that they live.  [default: 5s]",
    "reconnect-grace": "How long runs wait for a worker whose connection broke.  [default: 3s]",
    "look-interval": "How often due timers and waiting runs are re-read.  [default: 5s]",
    "resident-wait": "Waits up to this long keep their place in the worker.  [default: 1s]",
    "cleanup": "How long a cancelled run may clean up.  [default: 5m]",
    "schedule-late": "How late a time of a schedule may come before it counts as missed.  [default: 1m]",
    "retention": "How long runs are kept after they have ended.  [default: 30d]",
    "housekeeping": "How often servers look after what is not urgent.  [default: 1m]",
    "grace": "How long a stop may take.  [default: 10s]",
}


def _timing_options(command: Any) -> Any:
    for name, text in reversed(_TIMINGS.items()):
        command = click.option(f"--{name}", metavar="DURATION", help=text)(command)
    return command


@click.command()
@click.option(
    "--db", metavar="URL", help="postgresql://USER@HOST/DATABASE or sqlite:///FILE.  [default: sqlite:///kagzi.db]"
)
@click.option("--db-direct", metavar="URL", help="If --db is a pooler: the same PostgreSQL database without it.")
@click.option("--listen", metavar="HOST:PORT", help="gRPC; port 0 picks one.  [default: 127.0.0.1:50051]")
@click.option("--http", metavar="HOST:PORT", help="HTTP; port 0 picks one, off is none.  [default: 127.0.0.1:8420]")
@_timing_options
@click.option("--claim-cap", metavar="N", help="Workers a run may lose in a row before it is paused.  [default: 10]")
@click.option("--payload-bytes", metavar="N", help="Largest input or output.  [default: 2097152]")
@click.option(
    "--journal-total-bytes", metavar="N", help="Operations that wait to be written, all together.  [default: 134217728]"
)
@click.option(
    "--unread-total-bytes", metavar="N", help="Answers that wait for workers to read them.  [default: 67108864]"
)
@click.option("--strict-namespaces", is_flag=True, default=None, help="Refuse namespaces that were not made before.")
@click.option("--jitter/--no-jitter", default=None, help="Chance in retry delays.  [default: jitter]")
@click.option("--no-migrate", is_flag=True, default=None, help="Refuse to start on a database that needs migrating.")
@click.option("--insecure", is_flag=True, default=None, help="Listen where others can connect, without keys.")
@log_options
def server(*, log_level: str | None, log_format: str | None, **flags: object) -> int:
    """Run a production server on PostgreSQL or SQLite.

    Every option is also an environment variable (--no-migrate: KAGZI_NO_MIGRATE) and a key of kagzi.toml or of [tool.kagzi] in
    pyproject.toml; flags win over the environment, that over the file. SIGTERM and Ctrl-C stop it gracefully.
    """
    config = server_config(flags)
    from ..server.process import run_server
    from .logs import announce, show_logs
    from .loops import fast_runner

    show_logs(log_level, log_format, default="warning")
    with fast_runner() as runner:
        return runner.run(run_server(config, announce(log_format)))
