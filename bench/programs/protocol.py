"""Shared by the load generators in Python. Standard library only: it runs in the environment of any engine."""

import asyncio
import importlib.util
import json
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

LOAD = Path(__file__).resolve().parents[2] / "src" / "kagzi" / "cli" / "bench" / "load.py"


def _load() -> Any:
    """Load the module by its path: the environment of a peer has no Kagzi."""
    specification = importlib.util.spec_from_file_location("load", LOAD)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


load = _load()
COMMANDS = {
    "throughput": load.throughput,
    "steady": load.steady,
    "latency": load.latency,
    "starts": load.starts,
    "timers": load.timers,
    "lone_timers": load.lone_timers,
    "sleepers": load.sleepers,
    "begin_replay": load.begin_replay,
    "end_replay": load.end_replay,
}


async def serve(engine: Any) -> None:
    """Execute the requests on stdin, line by line, until it ends. Responses go to the original stdout; stdout is
    redirected to stderr, so that no library can print between them."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    print(json.dumps({"ready": True}), file=answers, flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        request: dict[str, Any] = json.loads(line)
        command = COMMANDS[request.pop("do")]
        try:
            answer = await command(engine, **request)
        except Exception as error:  # noqa: BLE001  the harness reports any error and continues
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def run(main: Coroutine[Any, Any, None]) -> None:
    """Use uvloop where it is installed."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        asyncio.run(main)
        return
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)
