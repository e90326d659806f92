"""`kagzi worker`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..console import say
from ..exits import Exit, Stop
from ..logs import log_options
from ..options import Server, server_options
from ..processes import collect_rarely, end_process, fast_runner, on_hangup
from .worker_processes import probes_at, refuse_embedded, refuse_reload, run_alone, run_process, supervise_workers

if TYPE_CHECKING:
    from ...sdk.worker.worker import Worker

STOP_TIMEOUT_S = 60.0
RELOADED = "_KAGZI_RELOADED"  # set for the child process of --reload


@click.command()
@click.argument("target", metavar="MODULE[:ATTR]|FILE[:ATTR]")
@click.option(
    "--max-concurrent",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Maximum number of runs at a time, in each process.  [default: that of the Worker object, or 100]",
)
@click.option(
    "--processes",
    type=click.IntRange(1, 256),
    envvar="KAGZI_WORKER_PROCESSES",
    default=1,
    metavar="N",
    help="Run this many worker processes.  [env: KAGZI_WORKER_PROCESSES; default: 1]",
)
@click.option(
    "--health",
    metavar="HOST:PORT",
    envvar="KAGZI_WORKER_HEALTH",
    help="Answer health probes there: /healthz while the worker lives, /readyz while it is connected and takes work; "
    "with --processes, of all of them.  [env: KAGZI_WORKER_HEALTH]",
)
@click.option(
    "--apply-limits",
    is_flag=True,
    envvar="KAGZI_WORKER_APPLY_LIMITS",
    help="Apply the limits that its workflows declare; without it, what differs is logged.  "
    "[env: KAGZI_WORKER_APPLY_LIMITS]",
)
@click.option("--reload", is_flag=True, help="Restart when a Python file changes.")
@log_options
@server_options
def worker(
    *,
    target: str,
    max_concurrent: int | None,
    processes: int,
    health: str | None,
    apply_limits: bool,
    reload: bool,
    log_level: str | None,
    log_format: str | None,
    server: Server,
) -> int:
    """Run a worker that serves the workflows of a module or file.

    A Worker object in it is used as it is (the one named `worker`, if there are several); otherwise the worker serves
    all workflows in it. SIGTERM and Ctrl-C let it finish its runs; other workers take over the rest.

    With --processes, a process that crashes is started again, and SIGHUP replaces the processes, with new code, one
    after another.
    """
    from ..supervise.supervision import Supervision

    supervision = Supervision.from_environment()
    if supervision is not None:
        supervision.watch()
    elif processes > 1:
        refuse_reload(reload=reload)
        refuse_embedded(server.address or os.environ.get("KAGZI_ADDRESS"))
        return supervise_workers(processes, log_level, log_format, health)
    if reload:
        path = Path(target.partition(":")[0])
        return asyncio.run(_reloading(path.resolve() if path.is_file() else None))
    from ...core.errors import InvalidArgument
    from ..logs import show_logs
    from .targets import LoadError, load, parse_target

    try:
        loaded = load(parse_target(target))
    except LoadError as error:
        raise Stop(Exit.FAILED, f"{target} cannot be loaded:\n{error}") from error
    try:
        chosen = loaded.worker_at(server.address, server.namespace, max_concurrent)
        chosen = _connected_as(server, chosen.apply_limits() if apply_limits else chosen)
    except InvalidArgument as error:
        raise click.UsageError(error.message) from error
    collect_rarely()
    if supervision is not None:
        refuse_embedded(chosen.address)
        show_logs(log_level, log_format, process=supervision.number)
        with fast_runner() as runner:
            runner.run(run_process(chosen, supervision, probed=health is not None))
        return Exit.OK
    show_logs(log_level, log_format)
    if os.environ.get(RELOADED) or health is not None:
        with fast_runner() as runner:
            runner.run(_serve_reloaded(chosen, health) if os.environ.get(RELOADED) else run_alone(chosen, health))
    else:
        chosen.serve()
    return Exit.OK


def _connected_as(server: Server, worker: Worker) -> Worker:
    """The worker with the TLS files and the codec of the command, where the Worker object has none. Raises
    InvalidArgument."""
    from ..codecs import codec_of
    from ..connection import tls_for

    if server.tls.typed or worker.options.tls is None:
        tls = tls_for(worker.address, server.tls)
        worker = worker if tls is None else worker.tls(tls)
    codec = None if worker.options.codec is not None else codec_of(server.codec).codec
    return worker if codec is None else worker.codec(codec)


async def _serve_reloaded(worker: Worker, health: str | None) -> None:
    from ..supervise.serving import serve_supervised

    async with probes_at(health, lambda: worker.problem):
        await serve_supervised(worker)


async def _reloading(source: Path | None) -> int:
    """Runs this command, without --reload, in a child process that is restarted after every change."""
    from ..dev.reload import Watched

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    on_hangup(stop.set)
    arguments = [argument for argument in sys.argv[1:] if argument != "--reload"]
    watched = Watched(source)
    child = await _spawn(arguments)
    try:
        async for names in watched.changes(stop):
            say(f"changed: {', '.join(names)}")
            await _end(child)
            child = await _spawn(arguments)
    finally:
        await _end(child)
    return Exit.OK


async def _spawn(arguments: list[str]) -> asyncio.subprocess.Process:
    # -B: cached bytecode is compared by second and size only, and an edit may have the size of what it replaces.
    command = (sys.executable, "-B", "-m", "kagzi", *arguments)
    return await asyncio.create_subprocess_exec(*command, env={**os.environ, RELOADED: "1"})


async def _end(child: asyncio.subprocess.Process) -> None:
    if child.returncode is None:
        child.terminate()
        await end_process(child, STOP_TIMEOUT_S)
