"""`kagzi server --processes N`: the processes share the addresses and PostgreSQL, like separate servers."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
import msgspec

from ...server.config import ServerConfig
from ...server.database import PostgresDatabase, mask
from ...server.listen import ListenAddress, bind, reserve
from ...server.peers import PeerProcess, Peers
from ...server.startup import CannotStart, ready_line
from ...system import SystemClock, SystemIds
from ...wire.calls.path import PATH
from ..supervise.child import INSIST_AFTER_S
from ..supervise.supervision import GONE, HURRY, Supervision
from ..supervise.supervisor import Plan, Supervisor, same_command

if TYPE_CHECKING:
    from ...server.app import Server

INHERITED = ("http",)
"""Addresses whose sockets the supervisor binds: all processes accept from one queue, so that an idle one takes the
connection. gRPC binds its own sockets with SO_REUSEPORT, and the kernel chooses a process for each connection."""
HEALTH_INTERVAL_S = 1.0

_Say = Callable[[str], None]


def supervise_servers(config: ServerConfig, say: _Say) -> int:
    """Returns the exit code. Raises click.BadParameter if `config` does not allow several processes."""
    _refuse(config)
    with ExitStack() as stack:
        try:
            config.refuse_unprotected()
            config.load_tls(SystemClock())
            plan, line = _prepared(config, stack)
        except CannotStart as error:
            say(f"kagzi server: {error.message}")
            return error.exit_code

        async def run() -> int:
            return await Supervisor(plan, on_ready=lambda: say(line)).run()

        return asyncio.run(run())


def _refuse(config: ServerConfig) -> None:
    if not isinstance(config.database, PostgresDatabase):
        problem = (
            f"{config.processes} processes cannot serve {mask(config.db)}: a SQLite database has one process that owns "
            "it. Use PostgreSQL (--db postgresql://USER@HOST/DATABASE), or one process."
        )
    elif sys.platform != "linux":
        problem = (
            f"{config.processes} processes cannot share an address on this system: only Linux distributes connections "
            "among them. Start several servers on different ports, and name all of them in the address of clients."
        )
    elif config.listen.unix_path:
        problem = f"{config.processes} processes cannot share --listen {config.listen}. Use HOST:PORT, or one process."
    else:
        return
    raise click.BadParameter(problem, param_hint="'--processes'")


def _prepared(config: ServerConfig, stack: ExitStack) -> tuple[Plan, str]:
    """Binds the addresses here, so that a port in use is reported once, and port 0 is the same for all."""
    listen = stack.enter_context(reserve(config.listen, field="listen"))
    addresses = {"listen": _address_of(listen, config.listen.host, shared=True)}
    sockets: list[socket.socket] = []
    for field in INHERITED:
        address: ListenAddress | None = getattr(config, field)
        if address is not None:
            bound = stack.enter_context(bind(address, field=field))
            sockets.append(bound)
            addresses[field] = _address_of(bound, address.host, fd=bound.fileno())
    plan = Plan(
        count=config.processes,
        command=same_command(),
        grace_s=config.grace_ms / 1_000,
        # One listener id for all: a client may open a WebSocket to one process with the id from another.
        setup={
            "addresses": msgspec.to_builtins(addresses),
            "listener_id": SystemIds().token(),
            "metrics": stack.enter_context(TemporaryDirectory(prefix="kagzi-metrics-")),
        },
        pass_fds=[each.fileno() for each in sockets],
        restart_after_success=True,
        kill_in_a_hurry=False,
    )
    grpc_scheme, http_scheme = ("https://", "https://") if config.tls_cert else ("", "http://")
    http_url = f"{http_scheme}{addresses['http']}{config.http_base_path}" if "http" in addresses else ""
    line = ready_line(
        f"{grpc_scheme}{addresses['listen']}",
        http_url,
        mask(config.db),
        config.processes,
        websocket_url=_websocket_url(config, addresses.get("http")),
    )
    return plan, line


def _websocket_url(config: ServerConfig, http: ListenAddress | None) -> str:
    """The URL that each process offers; empty if they offer none."""
    if http is None or config.websocket is False or find_spec("picows") is None:
        return ""
    return f"{'wss' if config.tls_cert else 'ws'}://{http}{PATH}"


def _address_of(bound: socket.socket, host: str, *, shared: bool = False, fd: int = -1) -> ListenAddress:
    return ListenAddress(host, bound.getsockname()[1], shared=shared, fd=fd)


async def run_process(config: ServerConfig, supervision: Supervision, say: _Say) -> int:
    """Runs one process: serves until the supervisor stops it, or is gone. Returns the exit code."""
    from ...server.metrics.siblings import Siblings
    from ...server.process import StopSignals, run_server

    addresses = msgspec.convert(supervision.setup["addresses"], dict[str, ListenAddress])
    grace_s = config.grace_ms / 1_000
    peers = Peers(supervision.number)
    signals = StopSignals(supervised=True)
    tasks: list[asyncio.Task[None]] = []

    def on_line(line: str) -> None:
        if line == GONE:
            logging.getLogger("kagzi.server").warning("the supervisor is gone: this process stops")
            signals.first.set()
        elif line == HURRY:
            signals.second.set()
        else:
            peers.processes = msgspec.json.decode(line, type=tuple[PeerProcess, ...])

    def on_ready(server: Server) -> None:
        supervision.report("ready", grace_s=grace_s)
        siblings = Siblings(Path(supervision.setup["metrics"]), peers, server.samples)
        peers.samples = siblings.ask
        tasks.append(asyncio.create_task(_report_health(server, supervision)))
        tasks.append(asyncio.create_task(siblings.serve(), name="kagzi metrics"))

    supervision.attach(on_line, end_within_s=grace_s + INSIST_AFTER_S)
    shared = msgspec.structs.replace(config, **addresses, listener_id=supervision.setup["listener_id"])
    return await run_server(shared, say, signals=signals, on_ready=on_ready, peers=peers)


async def _report_health(server: Server, supervision: Supervision) -> None:
    """Reports changes to the supervisor, which passes them on to the other processes."""
    reported: str | None = None
    while True:
        problem = server.problem
        if problem != reported:
            supervision.report("health", problem=problem or "")
            reported = problem
        await asyncio.sleep(HEALTH_INTERVAL_S)
