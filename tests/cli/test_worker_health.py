"""Health probes of workers: alive is one thing, ready another."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import click
import httpx
import pytest

from kagzi import Context, Worker, workflow
from kagzi.cli.exits import Stop
from kagzi.cli.operate.worker_processes import probes_at
from kagzi.cli.settings import default_map
from kagzi.cli.supervise import health
from kagzi.cli.supervise.health import health_probes
from kagzi.cli.supervise.supervisor import Plan, Supervisor, _Member
from kagzi.server.listen import ListenAddress
from kagzi.server.peers import ProcessState
from tests.support.kagzi_process import running
from tests.support.polling import until

ANY_PORT = ListenAddress("127.0.0.1", 0)
FLOW = """
from kagzi import Context, Worker, workflow

@workflow
async def greet(ctx: Context) -> None: ...

worker = Worker("sqlite:///greet.db", workflows=[greet])
"""


class Probed:
    def __init__(self) -> None:
        self.problem: str | None = None


@pytest.fixture
def probed() -> Probed:
    return Probed()


@pytest.fixture
async def http(probed: Probed) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        health_probes(ANY_PORT, lambda: probed.problem) as address,
        httpx.AsyncClient(base_url=f"http://{address}") as client,
    ):
        yield client


async def test_ready_says_why_not(http: httpx.AsyncClient, probed: Probed) -> None:
    ready = await http.get("/readyz?verbose")
    assert (ready.status_code, ready.text) == (200, "ready\n")
    probed.problem = "the worker is draining"
    busy = await http.get("/readyz")
    assert (busy.status_code, busy.text) == (503, "the worker is draining\n")
    assert (await http.get("/healthz")).text == "ok\n"
    assert (await http.head("/healthz")).status_code == 200
    assert (await http.get("/elsewhere")).status_code == 404
    assert (await http.post("/healthz")).status_code == 405


async def test_who_sends_nothing_or_too_much_is_cut_off(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "REQUEST_S", 0.05)
    for sent in (b"", b"GET /healthz HTTP/1.1\r\n", b"x" * 100_000, b"\r\n\r\n"):
        reader, writer = await asyncio.open_connection("127.0.0.1", http.base_url.port)
        writer.write(sent)
        answer = await _read(reader)
        assert not answer or b" 404 " in answer or b" 405 " in answer
        writer.close()
    assert (await http.get("/healthz")).status_code == 200


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await asyncio.wait_for(reader.read(), 30)
    except ConnectionResetError:
        return b""


async def test_a_worker_is_ready_from_its_welcome_to_its_drain() -> None:
    @workflow
    async def idle(ctx: Context) -> None: ...

    worker = Worker(":memory:", workflows=[idle])
    assert worker.problem == "the worker is not connected to a server"
    running_worker = asyncio.ensure_future(worker.run(handle_signals=False))
    await until(lambda: worker.problem is None)
    worker.stop()
    await running_worker
    assert worker.problem == "the worker is not connected to a server"


async def test_several_processes_are_ready_when_all_are() -> None:
    plan = Plan(count=2, command=(), grace_s=1.0, restart_after_success=False, kill_in_a_hurry=True)
    supervisor = Supervisor(plan, on_ready=lambda: None)
    assert supervisor.problem == "process 1 of 2: starting"
    for number in (1, 2):
        supervisor._current[number] = member = _Member(number, 1.0)
        member.state = ProcessState.READY
    assert supervisor.problem is None
    supervisor._current[2].problem = "the worker is not connected to a server"
    assert supervisor.problem == "process 2 of 2: the worker is not connected to a server"


@pytest.mark.parametrize("text", ["8421", "unix:/tmp/x", "host:port"])
async def test_what_is_not_an_address_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="HOST:PORT"):
        async with probes_at(text, lambda: None):
            pass


async def test_a_taken_port_is_named_with_its_option() -> None:
    async with health_probes(ANY_PORT, lambda: None) as taken:
        with pytest.raises(Stop, match="--health"):
            async with probes_at(str(taken), lambda: None):
                pass


def test_the_project_file_knows_it(tmp_path: Path) -> None:
    (tmp_path / "kagzi.toml").write_text('worker_health = "127.0.0.1:8421"\nworker_processes = 2\n')
    assert default_map(tmp_path)["worker"] == {"health": "127.0.0.1:8421", "processes": 2}


def test_the_command_answers_probes(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    with running("worker", "flow.py", "--health", "127.0.0.1:0", cwd=tmp_path) as command:
        url = command.says(r"health probes at (http://\S+)/healthz")[1]
        command.says("serves greet")
        assert httpx.get(f"{url}/readyz").status_code == 200
        assert command.interrupt() == 0
