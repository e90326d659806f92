"""`kagzi dev`: a server in this process, a worker in a child process that is restarted when a file changes."""

import asyncio
import os
import shutil
import sys
from pathlib import Path
from time import perf_counter

import click

from ..exits import Exit
from ..logs import hand_on, log_options, show_logs
from ..operate.server_setup import listen_options, server_config

SAMPLE = "kagzi.cli.dev.sample"
DATABASE = "kagzi.db"


@click.command()
@click.argument("target", metavar="[FILE|MODULE]", default=SAMPLE, required=False)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".kagzi"),
    show_default=True,
    help="Keep state in this directory.",
)
@listen_options
@click.option(
    "--namespace",
    "-n",
    envvar="KAGZI_NAMESPACE",
    metavar="NAMESPACE",
    help="Namespace to use.  [env: KAGZI_NAMESPACE; default: that of the Worker object, or default]",
)
@click.option("--retention", metavar="DURATION", help="Keep runs this long after they have ended.  [default: 30d]")
@click.option("--reload/--no-reload", default=True, show_default=True, help="Restart the worker when a file changes.")
@log_options
def dev(
    *,
    target: str,
    data: Path,
    namespace: str | None,
    reload: bool,
    log_level: str | None,
    log_format: str | None,
    **flags: object,
) -> int:
    """Run a server and a worker for development, and reload FILE when it changes.

    State is kept in the directory --data; the next start continues from there. A Worker object in FILE is used as it
    is, except for its address. Without FILE, a sample workflow is served. Ctrl-C lets the worker finish its runs.
    """
    began = perf_counter()
    hand_on(log_level, log_format)  # to the worker's process
    show_logs(log_level, log_format, default="warning")
    from .setup import DevSetup
    from .supervisor import Supervisor

    is_sample = target == SAMPLE
    setup = DevSetup(
        target=target,
        source=_source(target),
        data=data,
        namespace=namespace,
        reload=reload and not is_sample,
        command=command_name(),
        began=began,
    )
    data.mkdir(parents=True, exist_ok=True)
    config = server_config({"db": f"sqlite:///{data / DATABASE}", "reflection": True, **flags})
    if config.tls_cert:
        from ...sdk.transport.credentials import CERTIFICATE_VARIABLE, KEY_FILE_VARIABLE

        # The worker process trusts the certificate of the server, unless one is configured.
        os.environ.setdefault(CERTIFICATE_VARIABLE, config.tls_cert)
        os.environ.setdefault(KEY_FILE_VARIABLE, config.tls_key)

    async def run() -> None:
        await Supervisor(setup, config).run()

    asyncio.run(run())
    return Exit.OK


def _source(target: str) -> Path | None:
    """The file to serve, if the target is a file. Raises UsageError if it does not exist."""
    where = target.partition(":")[0]
    if not where.endswith(".py") and "/" not in where:
        return None
    path = Path(where)
    if not path.is_file():
        raise click.UsageError(f"{where} does not exist. Give a Python file, or a module as in app.flows.")
    return path.resolve()


def command_name() -> str:
    """How to call this program from the user's shell: `kagzi` if that is on the PATH, otherwise its path."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        return "python -m kagzi"
    on_path = shutil.which("kagzi")
    return "kagzi" if on_path and Path(on_path).resolve() == program.resolve() else str(program)
