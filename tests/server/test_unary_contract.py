"""The first contract's calls, one each, as a worker of another language makes them."""

import asyncio
import os
import sys
from importlib import resources
from pathlib import Path

import pytest
from grpc_tools import protoc

from kagzi.server.app import Server

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("unary_contract.py")


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python stubs made from the protos alone."""
    directory = tmp_path_factory.mktemp("stubs")
    includes = str(resources.files("grpc_tools") / "_proto")
    protos = sorted(str(path) for path in (ROOT / "proto").rglob("*.proto"))
    options = [f"-I{ROOT / 'proto'}", f"-I{includes}", f"--python_out={directory}", f"--grpc_python_out={directory}"]
    assert protoc.main(["protoc", *options, *protos]) == 0
    for package in ("kagzi", "kagzi/v1"):
        (directory / package / "__init__.py").touch()
    return directory


async def test_a_foreign_worker_is_served(server: Server, generated: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(SCRIPT),
        server.grpc_address,
        env={**os.environ, "PYTHONPATH": str(generated)},
        cwd=generated,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        output, errors = await process.communicate()
    assert (process.returncode, output.decode()) == (0, "kept\n"), errors.decode()
