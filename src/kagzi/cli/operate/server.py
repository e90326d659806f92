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
    "keys-check": "Interval between checks whether keys in use were revoked.  [default: 3s]",
    "trace-max-age": "Begin a new trace when a worker takes a run that is older.  [default: 1h]",
    "grace": "Time for a graceful shutdown.  [default: 10s]",
}

_POSTGRESQL = (
    ("schema", "NAME", "Schema of the tables in PostgreSQL; created if missing.  [default: the role's search_path]"),
    ("pool-size", "N", "Maximum number of PostgreSQL connections per process, 8 to 200.  [default: 12]"),
    ("statement-timeout", "DURATION", "Longest time for a statement in PostgreSQL.  [default: 15s]"),
    ("lock-timeout", "DURATION", "Longest wait for a lock in PostgreSQL.  [default: 2s]"),
)


@click.command()
@click.option(
    "--db",
    metavar="URL",
    help="Database: postgresql://USER@HOST/DATABASE or sqlite:///FILE.  [default: sqlite:///kagzi.db]",
)
@click.option(
    "--db-direct", metavar="URL", help="Direct URL of the PostgreSQL database, if --db goes through a pooler."
)
@options(*(click.option(f"--db-{name}", metavar=metavar, help=text) for name, metavar, text in _POSTGRESQL))
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
@click.option(
    "--processes",
    metavar="N",
    help="Serve with this many processes on the same addresses; PostgreSQL and Linux only.  [default: 1]",
)
@click.option("--jitter/--no-jitter", default=None, help="Randomise retry delays.  [default: jitter]")
@click.option("--no-migrate", is_flag=True, default=None, help="Refuse to start if the database needs migrating.")
@click.option("--auth", metavar="keys|off", help="Whether callers need an API key; see kagzi keys.  [default: off]")
@click.option(
    "--http-hosts", metavar="NAMES", help="Host names, separated by commas, that browsers may use for the HTTP port."
)
@click.option("--http-base-path", metavar="PATH", help="Path below which a proxy serves the dashboard, such as /kagzi.")
@click.option(
    "--http-proxies",
    metavar="ADDRESSES",
    help="Proxies whose X-Forwarded-Prefix is trusted, separated by commas, or off.  [default: those on this machine]",
)
@click.option("--otlp", metavar="URL", help="Send spans of calls to this collector (OTLP over HTTP), http://host:4318.")
@click.option("--public-url", metavar="URL", help="Public address of the HTTP port, if it differs from --http.")
@click.option(
    "--trace-url",
    metavar="URL",
    help="Address of a trace in your tracing tool, with {trace_id} in it; the page of a run links to it.",
)
@click.option("--reflection", is_flag=True, default=None, help="Serve gRPC reflection, for tools such as grpcurl.")
@click.option(
    "--insecure", is_flag=True, default=None, help="Allow a public address without API keys. Not recommended."
)
@log_options
def server(*, log_level: str | None, log_format: str | None, **flags: object) -> int:
    """Run a production server on PostgreSQL or SQLite.

    You can also set every option with an environment variable (--no-migrate: KAGZI_NO_MIGRATE), in kagzi.toml, or in
    [tool.kagzi] of pyproject.toml. Options take precedence over the environment, which takes precedence over the file.
    SIGTERM and Ctrl-C stop the server gracefully.

    With --processes, a process that ends is started again, and SIGHUP replaces the processes one after another.
    """
    from ..supervise.supervision import Supervision

    supervision = Supervision.from_environment()
    if supervision is not None:
        supervision.watch()
    process = 0 if supervision is None else supervision.number
    config = server_config(flags)
    from ..logs import announce, show_logs
    from ..processes import fast_runner

    show_logs(log_level, log_format, default="warning", process=process, executes_runs=False)
    say = announce(log_format, process=process)
    if supervision is None and config.processes > 1:
        from .server_processes import supervise_servers

        return supervise_servers(config, say)
    # Before the runner: objects imported by then are excluded from garbage collection.
    from ...server.process import run_server

    with fast_runner() as runner:
        if supervision is not None:
            from .server_processes import run_process

            return runner.run(run_process(config, supervision, say))
        return runner.run(run_server(config, say))
