"""On a slow line, what moves is a sign of life: large results and inputs arrive, nothing is lost, and small runs beside
them go on. All is five times as quick as by default: leases, heartbeats, pings, and the line."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from kagzi import Context, Kagzi, Worker, workflow
from kagzi.core.limits import Settings
from kagzi.sdk.transport import channel
from kagzi.server.app import Server
from kagzi.server.config import ServerConfig
from kagzi.server.listen import ListenAddress
from kagzi.wire.calls import websocket
from tests.support.lateness import measured_lateness
from tests.support.polling import until
from tests.support.slow_line import HOST, SlowLine, slow_line
from tests.support.timeouts import LOADED_MACHINE, LOADED_MACHINE_S

QUICKER = 5
LEASES = Settings(
    lease_ms=15_000 // QUICKER,
    heartbeat_ms=5_000 // QUICKER,
    reconnect_grace_ms=3_000 // QUICKER,
    poll_interval_ms=5_000 // QUICKER,
)
PING_S = websocket.CLIENT_PING_S / QUICKER
PONG_S = websocket.CLIENT_PONG_S / QUICKER
LINE_BYTES_PER_S = 100_000 * QUICKER
LARGE = 1_900_000  # 19 s of a line of 100 KB/s, and 15 s are a lease
SMALL_RUNS = 5
ANY_PORT = ListenAddress("127.0.0.1", 0)

bodies: list[tuple[str, int]] = []


@workflow
async def returns_much(ctx: Context, size: int) -> str:
    return "x" * size


@workflow
async def takes_much(ctx: Context, text: str) -> int:
    return len(text)


async def note(run_id: str, number: int) -> None:
    bodies.append((run_id, number))


@workflow
async def small(ctx: Context, steps: int) -> None:
    for number in range(steps):
        await ctx.step(f"step-{number}").run(note, ctx.run_id, number)


@pytest.fixture(params=["websocket", "grpc"])
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("KAGZI_WEBSOCKET", "on" if request.param == "websocket" else "off")
    monkeypatch.setattr(websocket, "CLIENT_PING_S", PING_S)
    monkeypatch.setattr(websocket, "CLIENT_PONG_S", PONG_S)
    timed = ("grpc.keepalive_time_ms", "grpc.keepalive_timeout_ms", "grpc.http2.ping_timeout_ms")
    options = tuple((name, value // QUICKER if name in timed else value) for name, value in channel._OPTIONS)
    monkeypatch.setattr(channel, "_OPTIONS", options)
    return request.param


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    served = Server(ServerConfig(db=":memory:", listen=ANY_PORT, http=ANY_PORT, settings=LEASES))
    await served.start()
    yield served
    await served.stop(0)


@asynccontextmanager
async def far_worker(server: Server, up: float = 1e9, down: float = 1e9) -> AsyncIterator[SlowLine]:
    """A worker at the other end of a slow line."""
    ports = [int(url.rstrip("/").rpartition(":")[2]) for url in (server.grpc_address, server.http_url)]
    async with AsyncExitStack() as stack:
        line = await stack.enter_async_context(slow_line(*ports, up_bytes_per_s=up, down_bytes_per_s=down))
        worker = Worker(f"{HOST}:{ports[0]}", workflows=[returns_much, takes_much, small], shutdown_grace="1s")
        await stack.enter_async_context(worker)
        yield line


def logged(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if words in record.getMessage()]


@pytest.mark.parametrize("direction", ["results", "inputs"])
async def test_what_takes_longer_than_a_lease_arrives(
    server: Server, transport: str, direction: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bodies.clear()
    line = {"up" if direction == "results" else "down": LINE_BYTES_PER_S}
    async with Kagzi.connect(server.grpc_address) as client, far_worker(server, **line) as slow:
        if direction == "results":
            runs = [await client.start(returns_much, LARGE) for _ in range(2)]
        else:
            runs = [await client.start(takes_much, "x" * LARGE) for _ in range(2)]
        small_runs = [await client.start(small, 5) for _ in range(SMALL_RUNS)]
        for run in small_runs:
            await run.result(timeout=LOADED_MACHINE)
        for run in runs:
            result = await run.result(timeout=LOADED_MACHINE)
            assert len(result) == LARGE if isinstance(result, str) else result == LARGE
    assert not logged(caplog, "lost its worker")
    assert not logged(caplog, "interrupted")
    assert len(bodies) == len(set(bodies)) == 5 * SMALL_RUNS
    carried = slow.up if direction == "results" else slow.down
    assert carried.passed < 2 * LARGE * 1.05, "something was sent twice"


async def test_small_runs_do_not_wait_for_a_large_result(server: Server, transport: str) -> None:
    async with Kagzi.connect(server.grpc_address) as client, far_worker(server, up=LINE_BYTES_PER_S) as slow:
        await client.start(returns_much, LARGE)
        await until(lambda: slow.up.passed > LARGE / 10)
        run = await client.start(small, 1)
        await run.result(timeout=LOADED_MACHINE)
        assert slow.up.passed < LARGE


@pytest.mark.parametrize("moving", [True, False], ids=["moving", "idle"])
async def test_a_dead_line_is_noticed_as_fast_as_ever(
    server: Server, transport: str, moving: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    time = asyncio.get_running_loop().time
    async with (
        measured_lateness() as lateness,
        Kagzi.connect(server.grpc_address) as client,
        far_worker(server, up=LINE_BYTES_PER_S) as slow,
    ):
        if moving:
            await client.start(returns_much, LARGE)
            await until(lambda: slow.up.passed > LARGE / 10)
        slow.stall()
        stalled_at = time()
        await until(lambda: logged(caplog, "interrupted") or logged(caplog, "trying again"), timeout_s=LOADED_MACHINE_S)
        seconds = time() - stalled_at
        slow.mend()
    assert seconds < PING_S + PONG_S + 1.0 + 2 * lateness.worst_s


async def test_a_large_request_of_a_client_arrives(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By WebSocket: gRPC's pings stand behind a large request of one call, and nobody else can see that it moves."""
    monkeypatch.setattr(websocket, "CLIENT_PING_S", PING_S)
    monkeypatch.setattr(websocket, "CLIENT_PONG_S", PONG_S)
    ports = [int(url.rstrip("/").rpartition(":")[2]) for url in (server.grpc_address, server.http_url)]
    async with (
        slow_line(*ports, up_bytes_per_s=LINE_BYTES_PER_S) as slow,
        Kagzi.connect(f"{HOST}:{ports[0]}", call_timeout=LOADED_MACHINE) as client,
    ):
        await client.start(takes_much, "x" * LARGE)
    assert slow.up.passed < LARGE * 1.05, "it was sent twice"


async def test_what_was_sent_in_part_is_sent_again_after_a_break(
    server: Server, transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with Kagzi.connect(server.grpc_address) as client, far_worker(server, up=LINE_BYTES_PER_S) as slow:
        large = await client.start(returns_much, LARGE)
        await until(lambda: slow.up.passed > LARGE / 10)
        run = await client.start(small, 3)
        slow.break_all()
        await until(lambda: logged(caplog, "the session is open again"))
        assert len(await large.result(timeout=LOADED_MACHINE)) == LARGE
        await run.result(timeout=LOADED_MACHINE)
    assert not logged(caplog, "lost its worker")
