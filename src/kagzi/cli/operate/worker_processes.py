"""`kagzi worker --processes N`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ...sdk.worker.worker import Worker
    from ..supervise.supervision import Supervision

HEALTH_INTERVAL_S = 1.0
DEFAULT_GRACE_S = 30.0  # until a process reports that of its Worker object


def refuse_reload(*, reload: bool) -> None:
    """Raises click.UsageError."""
    if reload:
        raise click.UsageError("--reload runs one process, for development. Leave out --reload or --processes.")


def refuse_embedded(address: str | None) -> None:
    """Raises click.BadParameter for an address that embeds a server in the worker process."""
    if address is not None and address.strip().startswith(("sqlite:", ":memory:")):
        raise click.BadParameter(
            f"the embedded address {address} is for one process, which owns the database. "
            "Run `kagzi server` (on PostgreSQL for more than one server process) and give its address with --address, "
            "or run one process.",
            param_hint="'--processes'",
        )


def supervise_workers(count: int, log_level: str | None, log_format: str | None, health: str | None = None) -> int:
    """Returns the exit code. `health`: the address of the health probes for all processes together."""
    from ..logs import show_logs
    from ..supervise.supervisor import Plan, Supervisor, logger, same_command

    show_logs(log_level, log_format)
    plan = Plan(
        count=count,
        command=same_command(),
        grace_s=DEFAULT_GRACE_S,
        restart_after_success=False,
        kill_in_a_hurry=True,
    )

    async def run() -> int:
        supervisor = Supervisor(plan, on_ready=lambda: logger.info("%d worker processes are ready", count))
        async with probes_at(health, lambda: supervisor.problem):
            return await supervisor.run()

    return asyncio.run(run())


@asynccontextmanager
async def probes_at(health: str | None, problem: Callable[[], str | None]) -> AsyncGenerator[None]:
    """Serves health probes inside the block; `health` None: none. Raises click.BadParameter, Stop."""
    if health is None:
        yield
        return
    from ...core.errors import InvalidArgument
    from ...server.listen import parse_listen
    from ...server.startup import CannotStart
    from ..exits import Exit, Stop
    from ..supervise.health import health_probes

    try:
        address = parse_listen(health, field="health")
        if address.unix_path:
            raise InvalidArgument(f"health={health!r} is not HOST:PORT.", field="health")
    except InvalidArgument as error:
        raise click.BadParameter(error.message, param_hint="'--health'") from error
    async with AsyncExitStack() as stack:
        try:
            at = await stack.enter_async_context(health_probes(address, problem))
        except CannotStart as error:
            raise Stop(Exit.FAILED, f"kagzi worker: {error.message}") from error
        logging.getLogger("kagzi.worker").info("health probes at http://%s/healthz and /readyz", at)
        yield


async def run_alone(worker: Worker, health: str | None) -> None:
    """Runs a single process until it is drained."""
    async with probes_at(health, lambda: worker.problem):
        await worker.run()


async def run_process(worker: Worker, supervision: Supervision, *, probed: bool = False) -> None:
    """Runs one of several processes: serves until the supervisor stops it, or is gone. `probed`: report its health to
    the supervisor."""
    from ..supervise.child import INSIST_AFTER_S
    from ..supervise.serving import serve_supervised
    from ..supervise.supervision import GONE

    grace_s = worker.options.shutdown_grace_s

    def on_line(line: str) -> None:
        if line == GONE:
            logging.getLogger("kagzi.worker").warning("the supervisor is gone: this process stops")
            os.kill(os.getpid(), signal.SIGTERM)

    supervision.attach(on_line, end_within_s=grace_s + INSIST_AFTER_S)
    reporting: list[asyncio.Task[None]] = []

    def on_ready() -> None:
        supervision.report("ready", grace_s=grace_s)
        if probed:
            reporting.append(asyncio.create_task(_report_health(worker, supervision)))

    try:
        await serve_supervised(worker, on_ready=on_ready)
    finally:
        for task in reporting:
            task.cancel()


async def _report_health(worker: Worker, supervision: Supervision) -> None:
    """Reports changes."""
    reported: str | None = None
    while True:
        problem = worker.problem
        if problem != reported:
            supervision.report("health", problem=problem or "")
            reported = problem
        await asyncio.sleep(HEALTH_INTERVAL_S)
