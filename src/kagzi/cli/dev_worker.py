"""The worker half of `kagzi dev`: a process of its own, so that new code is loaded by starting it anew.

`python -m kagzi.cli.dev_worker TARGET NAMESPACE READ_FD WRITE_FD`. It loads the target, writes what it found to WRITE_FD, reads
the server's address from READ_FD, serves, and stops when it is told to (SIGTERM) or when READ_FD ends: then `kagzi dev` is gone,
however that happened.
"""

import asyncio
import json
import os
import signal
import sys
from typing import Any

import click

from .logs import show_inherited_logs
from .samples import sample_argument
from .targets import LoadError, load, parse_target

SHUTDOWN_GRACE = "2s"


def main(arguments: list[str]) -> int:
    target, namespace, read_fd, write_fd = arguments
    # Ctrl-C reaches every process of the terminal: `kagzi dev` decides what follows from it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    reports = int(write_fd)
    try:
        found = load(parse_target(target))
    except click.UsageError as error:
        _report(reports, event="broken", message=error.message)
        return 1
    except LoadError as error:
        _report(reports, event="broken", message=str(error))
        return 1
    _report(reports, event="loaded", workflows=[_describe(workflow) for workflow in found.workflows])
    address = _read_line(int(read_fd))
    if not address:
        return 0
    show_inherited_logs()
    return asyncio.run(_serve(found.workflows, address, namespace, int(read_fd), reports))


async def _serve(workflows: tuple[Any, ...], address: str, namespace: str, life_line: int, reports: int) -> int:
    from ..core.errors import KagziError
    from ..sdk.worker import Worker

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set if number == signal.SIGTERM else _ignore)
    loop.add_reader(life_line, stop.set)  # nothing more is written there, so readable means ended
    try:
        worker = Worker(address, workflows=workflows, namespace=namespace, shutdown_grace=SHUTDOWN_GRACE)
        async with worker:
            _report(reports, event="ready")
            await stop.wait()
            loop.remove_reader(life_line)
    except KagziError as error:
        _report(reports, event="broken", message=str(error))
        return 1
    return 0


def _describe(workflow: Any) -> dict[str, str]:
    return {"name": workflow.name, "input": sample_argument(workflow.input_type) if workflow.has_input else ""}


def _report(reports: int, **event: Any) -> None:
    os.write(reports, (json.dumps(event) + "\n").encode())


def _read_line(fd: int) -> str:
    data = b""
    while not data.endswith(b"\n"):
        piece = os.read(fd, 1)
        if not piece:
            return ""
        data += piece
    return data.decode().strip()


def _ignore() -> None:
    """Ctrl-C, see above."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
