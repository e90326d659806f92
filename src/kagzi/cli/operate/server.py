"""`kagzi server`."""

import click

from ..logs import log_options
from ..options import options
from .server_setup import listen_options, server_config

_TIMINGS = {
    "lease": "Time without heartbeats after which other workers take over a worker's runs.  [default: 15s]",
    "heartbeat": "Interval between heartbeats of a worker.  [default: 5s]",
    "reconnect-grace": "Time for a worker to reconnect before other workers take over its runs.  [default: 3s]",
    "poll-interval": "Interval between polls for due timers and pending runs.  [default: 5s]",
    "resident-wait": "Waits up to this long keep their slot on the worker.  [default: 1s]",
    "cleanup": "Time for a cancelled run to clean up.  [default: 5m]",
    "schedule-late": "Scheduled times later than this count as missed.  [default: 1m]",
    "retention": "Keep runs this long after they have ended.  [default: 30d]",
    "housekeeping": "Interval between rounds of background maintenance.  [default: 1m]",
    "grace": "Time for a graceful shutdown.  [default: 10s]",
}


@click.command()
@click.option(
    "--db",
    metavar="URL",
    help="Database: postgresql://USER@HOST/DATABASE or sqlite:///FILE.  [default: sqlite:///kagzi.db]",
)
@click.option(
    "--db-direct", metavar="URL", help="Direct URL of the PostgreSQL database, if --db goes through a pooler."
)
@listen_options
@options(*(click.option(f"--{name}", metavar="DURATION", help=text) for name, text in _TIMINGS.items()))
@click.option(
    "--claim-cap", metavar="N", help="Pause a run after it has lost this many workers in a row.  [default: 10]"
)
@click.option("--payload-bytes", metavar="N", help="Maximum size of an input or output in bytes.  [default: 2097152]")
@click.option(
    "--journal-total-bytes",
    metavar="N",
    help="Maximum size in bytes of all operations waiting to be written.  [default: 134217728]",
)
@click.option(
    "--unread-total-bytes",
    metavar="N",
    help="Maximum size in bytes of all unread responses.  [default: 67108864]",
)
@click.option(
    "--strict-namespaces", is_flag=True, default=None, help="Refuse namespaces that were not created explicitly."
)
@click.option("--jitter/--no-jitter", default=None, help="Randomize retry delays.  [default: jitter]")
@click.option("--no-migrate", is_flag=True, default=None, help="Refuse to start if the database needs migrating.")
@click.option("--insecure", is_flag=True, default=None, help="Allow a public address without authentication.")
@log_options
def server(*, log_level: str | None, log_format: str | None, **flags: object) -> int:
    """Run a production server on PostgreSQL or SQLite.

    You can also set every option with an environment variable (--no-migrate: KAGZI_NO_MIGRATE), in kagzi.toml, or in
    [tool.kagzi] of pyproject.toml. Options take precedence over the environment, which takes precedence over the file.
    SIGTERM and Ctrl-C stop the server gracefully.
    """
    config = server_config(flags)
    from ...server.process import run_server
    from ..logs import announce, show_logs
    from ..processes import fast_runner

    show_logs(log_level, log_format, default="warning")
    with fast_runner() as runner:
        return runner.run(run_server(config, announce(log_format)))
