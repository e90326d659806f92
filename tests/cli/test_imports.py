"""What a process loads before it is asked for anything: modules that a feature needs are loaded with its first use."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.kagzi_process import clean_environment

WEB = ("starlette", "uvicorn", "h11", "html")
CRON = ("zoneinfo", "cronsim", "kagzi.core.schedules.cron")
FILES = ("tomllib", "zipfile", "tempfile", "importlib.resources")

IMPORT = "import kagzi"
USE = "from kagzi import Context, Kagzi, Retry, Worker, current_step, step, workflow"
WORK = "from kagzi import Context, Worker, workflow; Worker(workflows=[])"
WORK_AS_COMMAND = """
from kagzi.cli.operate import targets, worker
from kagzi.cli.operate.targets import load, parse_target
from kagzi.cli.options import NO_TLS_OPTIONS, Server
loaded = load(parse_target("kagzi.cli.bench.flows")).worker_at("127.0.0.1:1", None, None)
worker._connected_as(Server("127.0.0.1:1", None, NO_TLS_OPTIONS, None), loaded)
"""
HELP = "from kagzi.cli.main import run; run(['--help'])"
SERVE = """
import asyncio
from pathlib import Path
from kagzi.cli.logs import show_logs
from kagzi.cli.operate import server as command
from kagzi.server.app import Server
from kagzi.server.config import load_config

show_logs(None, None, executes_runs=False)

async def serve():
    flags = {"db": "sqlite:///kagzi.db", "listen": "127.0.0.1:0", "http": "127.0.0.1:0"}
    server = Server(load_config(flags, environment={}, directory=Path.cwd()))
    await server.start()
    await server.stop(0)

asyncio.run(serve())
"""

CASES = {
    "import kagzi": (IMPORT, ("asyncio", "grpc", "google", "msgspec", "kagzi.sdk", "kagzi.v1")),
    "the names of a program": (
        USE,
        (*WEB, *CRON, *FILES, "kagzi.sdk.worker.build_id", "kagzi.sdk.client.watching"),
    ),
    "a worker": (
        WORK,
        ("kagzi.sdk.client.start", "kagzi.sdk.client.run", "kagzi.sdk.client.client", "kagzi.v1.namespace_pb2"),
    ),
    "kagzi worker": (
        WORK_AS_COMMAND,
        ("kagzi.sdk.client.start", "kagzi.sdk.client.client", "kagzi.server.app", "kagzi.store", "kagzi.engine", *WEB),
    ),
    "kagzi --help": (HELP, ("asyncio", "grpc", "google", "msgspec", "rich", "kagzi.sdk", "kagzi.server")),
    "a server on SQLite": (
        SERVE,
        (*WEB, *CRON, *FILES, "asyncpg", "pydantic", "rich", "watchfiles", "kagzi.sdk", "kagzi.store.postgres"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_does_not_load(case: str, tmp_path: Path) -> None:
    program, unwanted = CASES[case]
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys\nprint([name for name in {unwanted} if name in sys.modules])"],
        env=clean_environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.splitlines()[-1] == "[]"
