"""A client and a worker made from the protos of the first contract, as processes of their own. They name no leases."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path

import msgspec
import pytest
from grpc_tools import protoc

from kagzi.server.app import Server
from tests.server.conftest import QUICK, StartServer
from tests.support.timeouts import LOADED_MACHINE_S

PROTOS = Path(__file__).with_name("first_contract")
SCRIPT = Path(__file__).with_name("first_contract_worker.py")


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("first_contract")
    includes = str(resources.files("grpc_tools") / "_proto")
    options = [f"-I{PROTOS}", f"-I{includes}", f"--python_out={directory}", f"--grpc_python_out={directory}"]
    assert protoc.main(["protoc", *options, *sorted(map(str, PROTOS.glob("*.proto")))]) == 0
    return directory


@pytest.fixture
def lease_ms() -> int:
    return 3_000


@asynccontextmanager
async def started(generated: Path, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(SCRIPT),
        *arguments,
        env={**os.environ, "PYTHONPATH": str(generated)},
        cwd=generated,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def runs(generated: Path, *arguments: str) -> str:
    async with started(generated, *arguments) as process, asyncio.timeout(LOADED_MACHINE_S):
        output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return output.decode()


@pytest.mark.parametrize(
    "function",
    ["works", "a_sleep_of_no_time_leaves_the_run", "other_connections_are_refused", "uses_the_rest"],
)
async def test_a_worker_of_the_first_contract(server: Server, generated: Path, function: str) -> None:
    assert await runs(generated, server.grpc_address, function) == "kept\n"


async def test_its_heartbeats_keep_what_it_polled(server: Server, generated: Path, lease_ms: int) -> None:
    assert await runs(generated, server.grpc_address, "heartbeats_keep_the_lease", str(lease_ms)) == "kept\n"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
async def test_another_one_takes_over(server: Server, generated: Path, how: signal.Signals) -> None:
    """From one that is killed, and from one that stands still and comes back as a ghost."""
    async with started(generated, server.grpc_address, "holds") as holder, asyncio.timeout(LOADED_MACHINE_S):
        run_id = (await runs(generated, server.grpc_address, "starts")).split()[0]
        assert holder.stdout is not None
        assert (await holder.stdout.readline()).decode() == f"holds {run_id}\n"
        holder.send_signal(how)
        assert await runs(generated, server.grpc_address, "takes_over") == "kept\n"
        if how is signal.SIGSTOP:
            holder.send_signal(signal.SIGCONT)
            output, errors = await holder.communicate(b"go on\n")
            assert holder.returncode == 0, errors.decode()
            assert output.decode().count("is lost") == 2


async def test_polled_at_one_server_and_completed_at_another(
    start_server: StartServer, migrated_postgres_url: str, generated: Path
) -> None:
    one, other = [
        await start_server(migrated_postgres_url, settings=msgspec.structs.replace(QUICK, lease_ms=6_000))
        for _ in range(2)
    ]
    assert await runs(generated, one.grpc_address, "elsewhere", other.grpc_address) == "kept\n"
