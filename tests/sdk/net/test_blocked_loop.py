"""A step that blocks the event loop for several leases: the worker keeps its runs, and nothing is executed twice."""

import asyncio
import sys
import time
from asyncio.subprocess import PIPE

import pytest

from kagzi import Context, Kagzi, Worker, workflow
from tests.sdk.net.test_real_server import WAIT_S

LEASE_S = 2.5  # a loaded machine may keep a process from its processor for seconds
SERVER = """
import asyncio
from kagzi.core.limits import Settings
from kagzi.server.app import Server
from kagzi.server.config import ServerConfig
from kagzi.server.listen import ListenAddress

async def main():
    settings = Settings(lease_ms=2_500, heartbeat_ms=300, reconnect_grace_ms=1_500, poll_interval_ms=200)
    server = Server(ServerConfig(db=":memory:", listen=ListenAddress("127.0.0.1", 0), http=None, settings=settings))
    await server.start()
    print(server.grpc_address, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, input)

asyncio.run(main())
"""

executions: list[str] = []


@workflow
async def stubborn(ctx: Context, name: str) -> str:
    async def block() -> str:
        executions.append(name)
        time.sleep(2 * LEASE_S)  # noqa: ASYNC251  blocking the loop is the subject
        return name

    return await ctx.step("block").run(block)


@workflow
async def patient(ctx: Context, name: str) -> str:
    async def wait() -> str:
        executions.append(name)
        await asyncio.sleep(0.1)
        return name

    return await ctx.step("wait").run(wait)


async def test_leases_outlive_a_blocked_loop(caplog: pytest.LogCaptureFixture) -> None:
    executions.clear()
    server = await asyncio.create_subprocess_exec(sys.executable, "-c", SERVER, stdin=PIPE, stdout=PIPE)
    assert server.stdout is not None
    try:
        async with asyncio.timeout(WAIT_S):
            address = (await server.stdout.readline()).decode().strip()
            async with Worker(address, workflows=[stubborn, patient]), Kagzi.connect(address) as client:
                results = await asyncio.gather(
                    client.run(patient, "a"), client.run(stubborn, "b"), client.run(patient, "c")
                )
        assert results == ["a", "b", "c"]
        assert sorted(executions) == ["a", "b", "c"]
        assert "time.sleep(2 * LEASE_S)" in caplog.text
    finally:
        server.kill()
        await server.wait()
