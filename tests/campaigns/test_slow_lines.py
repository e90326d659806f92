"""A worker with 100 KB/s to its server, and the leases of a default server: four results, or inputs, of 1.9 MB, each of
which takes longer than a lease. All arrive, no lease is lost, and small runs beside them end."""

import logging
import time
from contextlib import AsyncExitStack

import pytest

from kagzi import Kagzi, Worker
from kagzi.core.limits import Settings
from kagzi.server.app import Server
from kagzi.server.config import ServerConfig
from tests.sdk.net import test_slow_lines as lines
from tests.support.slow_line import HOST, slow_line

from .figures import Figures, number

BYTES_PER_S = number("LINE_BYTES_PER_S", 100_000)
RESULTS = int(number("LINE_RESULTS", 4))
STEPS = 20


@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize("transport", ["websocket", "grpc"])
@pytest.mark.timeout(900)
async def test_slow_lines(
    transport: str, direction: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    figures = Figures("slow-lines")
    part = f"{direction} by {transport}"
    if figures.known(part):
        return
    caplog.set_level(logging.INFO)
    monkeypatch.setenv("KAGZI_WEBSOCKET", "on" if transport == "websocket" else "off")
    lines.bodies.clear()
    async with AsyncExitStack() as stack:
        server = Server(ServerConfig(db=":memory:", listen=lines.ANY_PORT, http=lines.ANY_PORT, settings=Settings()))
        await server.start()
        stack.push_async_callback(server.stop, 0)
        ports = [int(url.rstrip("/").rpartition(":")[2]) for url in (server.grpc_address, server.http_url)]
        rates = {f"{direction}_bytes_per_s": BYTES_PER_S}
        slow = await stack.enter_async_context(slow_line(*ports, **rates))
        client = await stack.enter_async_context(Kagzi.connect(server.grpc_address))
        workflows = [lines.returns_much, lines.takes_much, lines.small]
        await stack.enter_async_context(Worker(f"{HOST}:{ports[0]}", workflows=workflows))
        began_at = time.monotonic()
        large = [
            await (
                client.start(lines.returns_much, lines.LARGE)
                if direction == "up"
                else client.start(lines.takes_much, "x" * lines.LARGE)
            )
            for _ in range(RESULTS)
        ]
        small = [await client.start(lines.small, STEPS) for _ in range(lines.SMALL_RUNS)]
        for run in small:
            await run.result(timeout="10m")
        small_s = time.monotonic() - began_at
        for run in large:
            await run.result(timeout="10m")
        measured = {
            "bytes_per_s": BYTES_PER_S,
            "results": RESULTS,
            "seconds": round(time.monotonic() - began_at, 1),
            "small_runs_ended_after_s": round(small_s, 1),
            "bytes_sent": slow.up.passed if direction == "up" else slow.down.passed,
            "leases_lost": len(lines.logged(caplog, "lost its worker")),
            "reconnects": len(lines.logged(caplog, "interrupted")),
            "bodies_begun": len(lines.bodies),
        }
    figures.put(part, measured)
    assert measured["leases_lost"] == measured["reconnects"] == 0
    assert measured["bodies_begun"] == STEPS * lines.SMALL_RUNS
