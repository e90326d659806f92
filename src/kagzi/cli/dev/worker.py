"""The worker half of `kagzi dev`: a process of its own, so that new code is loaded by starting it anew.

`python -m kagzi.cli.dev.worker TARGET NAMESPACE READ_FD WRITE_FD`. It loads the target, describes it on WRITE_FD, reads
the server's address from READ_FD, and serves, as `kagzi worker` would. It drains on SIGTERM, when READ_FD asks for a
reload, and when READ_FD ends: then `kagzi dev` is gone, however that happened.
"""

import asyncio
import json
import os
import signal
import sys
from typing import Any

import click

from ...core.errors import KagziError
from ...sdk.transport.connecting import checked_namespace
from ...sdk.worker.worker import Worker, WorkerOptions
from ..logs import show_inherited_logs
from ..operate.targets import LoadError, load, parse_target
from .child import RELOAD, RELOAD_GRACE
from .samples import sample_argument
from .supervised import serve_supervised


def main(arguments: list[str]) -> int:
    target, namespace, read_fd, write_fd = arguments
    # Ctrl-C reaches every process of the terminal: `kagzi dev` decides what follows from it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    reports = int(write_fd)
    try:
        loaded = load(parse_target(target))
        worker = loaded.worker_at(None, namespace or None, None)
    except (click.UsageError, KagziError) as error:
        _report(reports, event="broken", message=error.message)
        return 1
    except LoadError as error:
        _report(reports, event="broken", message=str(error))
        return 1
    _report(
        reports,
        event="loaded",
        workflows=[_describe(workflow) for workflow in loaded.workflows],
        namespace=checked_namespace(worker.options.namespace),
        shutdown_grace_s=worker.options.shutdown_grace_s,
        replaced=_replaced(worker.options),
    )
    address = _read_line(int(read_fd))
    if not address:
        return 0
    show_inherited_logs()
    return asyncio.run(_serve(worker.at(address, credentials=False), int(read_fd), reports))


async def _serve(worker: Worker, life_line: int, reports: int) -> int:
    loop = asyncio.get_running_loop()

    def on_input() -> None:
        loop.remove_reader(life_line)
        os.read(life_line, len(RELOAD))  # RELOAD, or nothing: then the server is gone, and nothing is left to wait for
        worker.stop(RELOAD_GRACE)

    loop.add_reader(life_line, on_input)
    try:
        await serve_supervised(worker, on_ready=lambda: _report(reports, event="ready"))
    except KagziError as error:
        _report(reports, event="broken", message=str(error))
        return 1
    return 0


def _replaced(options: WorkerOptions) -> list[str]:
    """The options of the Worker object that `kagzi dev` overrides with its own server."""
    return [name for name in ("address", "tls", "api_key") if getattr(options, name) is not None]


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
