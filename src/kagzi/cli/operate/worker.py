"""`kagzi worker`."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import click

from ..console import say
from ..exits import Exit, Stop
from ..logs import log_options
from ..options import Server, server_options
from ..processes import end_process, fast_runner

STOP_TIMEOUT_S = 60.0
RELOADED = "_KAGZI_RELOADED"  # set for the child process of --reload


@click.command()
@click.argument("target", metavar="MODULE[:ATTR]|FILE[:ATTR]")
@click.option(
    "--max-concurrent",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Maximum number of runs at a time.  [default: that of the Worker object, or 100]",
)
@click.option("--reload", is_flag=True, help="Restart when a Python file changes.")
@log_options
@server_options
def worker(
    *,
    target: str,
    max_concurrent: int | None,
    reload: bool,
    log_level: str | None,
    log_format: str | None,
    server: Server,
) -> int:
    """Run a worker that serves the workflows of a module or file.

    A Worker object in it is used as it is (the one named `worker`, if there are several); otherwise the worker serves
    all workflows in it. SIGTERM and Ctrl-C let it finish its runs; other workers take over the rest.
    """
    if reload:
        path = Path(target.partition(":")[0])
        return asyncio.run(_reloading(path.resolve() if path.is_file() else None))
    from ...core.errors import InvalidArgument
    from ..dev.supervised import serve_supervised
    from ..logs import show_logs
    from .targets import LoadError, load, parse_target

    try:
        loaded = load(parse_target(target))
    except LoadError as error:
        raise Stop(Exit.FAILED, f"{target} cannot be loaded:\n{error}") from error
    try:
        chosen = loaded.worker_at(server.address, server.namespace, max_concurrent)
    except InvalidArgument as error:
        raise click.UsageError(error.message) from error
    show_logs(log_level, log_format)
    if os.environ.get(RELOADED):
        with fast_runner() as runner:
            runner.run(serve_supervised(chosen))
    else:
        chosen.serve()
    return Exit.OK


async def _reloading(source: Path | None) -> int:
    """This command again, without --reload, in a child process that is replaced at every change."""
    from ..dev.reload import Watched

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
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
    # -B: bytecode is told apart by second and size only, and an edit may be as long as what it replaces.
    command = (sys.executable, "-B", "-m", "kagzi", *arguments)
    return await asyncio.create_subprocess_exec(*command, env={**os.environ, RELOADED: "1"})


async def _end(child: asyncio.subprocess.Process) -> None:
    if child.returncode is None:
        child.terminate()
        await end_process(child, STOP_TIMEOUT_S)
