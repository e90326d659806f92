"""Nothing that comes from outside can begin a line of the server's log, hide one or fill it."""

import ast
import io
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

import kagzi
from kagzi.core import limits
from kagzi.core.text.printable import escape
from kagzi.server.log_guard import GUARDED, guard_logs
from kagzi.v1 import worker_pb2
from tests.server.stubs import TIMEOUT_S, Stubs

SOURCES = Path(kagzi.__file__).parent
SERVER_SIDE = ("server", "engine", "store", "embedded.py")
EVIL = "x\n12:00:00 ERROR   kagzi.engine: forged\r\x1b[2J\x9b1m\u2028\u202e\0\x85"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What a handler prints that knows nothing of us."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("LINE %(name)s %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    yield stream
    root.removeHandler(handler)


def lines_of(stream: io.StringIO) -> list[str]:
    """By line feeds; whatever else could end a line, or move a cursor, must not be in there."""
    text = stream.getvalue()
    assert all(char.isprintable() or char == "\n" for char in text)
    return text.splitlines()


def loggers_used() -> set[str]:
    names: set[str] = set()
    paths = [
        path
        for part in SERVER_SIDE
        for path in ([SOURCES / part] if part.endswith(".py") else (SOURCES / part).rglob("*.py"))
    ]
    for path in paths:
        module = "kagzi." + ".".join(path.relative_to(SOURCES).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("getLogger") and node.args:
                [name] = node.args
                if isinstance(name, ast.Constant):
                    names.add(str(name.value))
                elif isinstance(name, ast.Name) and name.id == "__name__":
                    names.add(module)
    return names


def test_every_logger_of_the_server_is_guarded() -> None:
    assert loggers_used() >= {"kagzi.engine", "kagzi.store", "kagzi.server.grpc.incidents"}
    assert loggers_used() <= set(GUARDED), "name the new logger in GUARDED"


@pytest.mark.parametrize("name", GUARDED)
def test_nothing_that_is_logged_makes_a_line_of_its_own(name: str, log: io.StringIO) -> None:
    guard_logs()
    logger = logging.getLogger(name)
    logger.error("run %s of %s: %d", EVIL, ValueError(EVIL), 7)
    logger.error("%(who)s left", {"who": EVIL})
    logger.error(EVIL)
    try:
        raise ValueError(EVIL)
    except ValueError:
        logger.exception("incident %s", EVIL)
    lines = lines_of(log)
    assert len([line for line in lines if line.startswith("LINE ")]) == 4
    assert all(line.startswith(("LINE ", "  | ")) for line in lines)
    assert "ValueError" in lines[-2] + lines[-1]


def test_plain_text_is_left_alone() -> None:
    assert escape("grüße 你好 \\n 100%") == "grüße 你好 \\n 100%"
    assert escape("a\nb\x1b") == "a\\nb\\x1b"


async def test_a_worker_can_neither_forge_nor_fill_the_log(memory_stubs: Stubs, log: io.StringIO) -> None:
    worker_id = await memory_stubs.register()
    diagnostics = [worker_pb2.WorkerDiagnostic(kind=EVIL, detail=EVIL)] * limits.DIAGNOSTICS
    for _ in range(20):
        request = worker_pb2.HeartbeatRequest(worker_id=worker_id, diagnostics=diagnostics)
        assert (await memory_stubs.workers.Heartbeat(request, timeout=TIMEOUT_S)).accepted
    lines = lines_of(log)
    assert all(line.startswith("LINE ") for line in lines)
    logged = [line for line in lines if worker_id in line]
    assert len(logged) == limits.DIAGNOSTICS_LOGGED + 1
    assert "more diagnostics than are logged" in logged[-1]


async def test_many_workers_together_cannot_fill_the_log_either(memory_stubs: Stubs, log: io.StringIO) -> None:
    for _ in range(limits.DIAGNOSTICS_LOGGED_TOTAL // limits.DIAGNOSTICS + 3):
        worker_id = await memory_stubs.register()
        diagnostics = [worker_pb2.WorkerDiagnostic(kind="k", detail="d")] * limits.DIAGNOSTICS
        request = worker_pb2.HeartbeatRequest(worker_id=worker_id, diagnostics=diagnostics)
        await memory_stubs.workers.Heartbeat(request, timeout=TIMEOUT_S)
    logged = [line for line in lines_of(log) if "a problem" in line or "more diagnostics" in line]
    assert len(logged) == limits.DIAGNOSTICS_LOGGED_TOTAL + 1
