"""`kagzi demo`: server, worker and customers of a shop in one process."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..console import put
from ..exits import Exit
from ..logs import log_options, show_logs
from ..operate.server_setup import listen_options, server_config
from ..processes import on_hangup

if TYPE_CHECKING:
    from ...server.config import ServerConfig

DATABASE = "demo.db"
SERVER_GRACE_S = 1.0


@click.command()
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".kagzi"),
    show_default=True,
    help="Keep state in this directory.",
)
@listen_options
@click.option(
    "--every",
    type=click.FloatRange(0.05, 3_600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Mean time between two orders.",
)
@log_options
def demo(*, data: Path, every: float, log_level: str | None, log_format: str | None, **flags: object) -> int:
    """Run a sample shop, to explore in the dashboard.

    Orders are placed all the time. Some payments fail, shipments are children of orders, expensive orders wait for a
    person, schedules fire, and a catalogue is indexed by a slow fan-out. State is kept in the directory --data, apart
    from that of kagzi dev.
    """
    show_logs(log_level, log_format, default="critical")  # payments fail on purpose
    data.mkdir(parents=True, exist_ok=True)
    config = server_config({"db": f"sqlite:///{data / DATABASE}", "reflection": True, "retention": "1d", **flags})
    asyncio.run(_run(config, every))
    return Exit.OK


async def _run(config: ServerConfig, every_s: float) -> None:
    from ...sdk.client.client import Kagzi
    from ...sdk.worker.worker import Worker
    from ...server.app import Server
    from .customers import Customers
    from .shop import WORKFLOWS

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    on_hangup(stop.set)
    server = Server(config)
    await server.start()
    try:
        address = server.client_address
        async with Worker(address, workflows=WORKFLOWS, shutdown_grace="2s"), Kagzi.connect(address) as client:
            customers = Customers(client, every_s=every_s)
            await customers.open()
            put(click.style("The shop is open", bold=True, fg="green"))
            put(f"  look       {server.http_url or 'nowhere: --http is off'}")
            put(f"  server     {address}")
            put(f"  data       {config.db}")
            put("")
            put("Try: answer an order in the inbox, open a failed order and rerun it, pause process-order.")
            put("Press Ctrl-C to stop. Unfinished runs continue at the next start.")
            coming = asyncio.ensure_future(customers.keep_ordering())
            failed = asyncio.ensure_future(server.wait_failed())
            stopped = asyncio.ensure_future(stop.wait())
            try:
                await asyncio.wait((coming, failed, stopped), return_when=asyncio.FIRST_COMPLETED)
                if coming.done():
                    coming.result()
                if failed.done():
                    raise failed.result()
            finally:
                for task in (coming, failed, stopped):
                    task.cancel()
                await asyncio.gather(coming, failed, stopped, return_exceptions=True)
    finally:
        await server.stop(SERVER_GRACE_S)
