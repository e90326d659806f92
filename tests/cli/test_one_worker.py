"""`kagzi dev`, `kagzi worker` and code make a worker in one way: what a Worker object says holds wherever it is run."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from kagzi.cli.dev import worker as dev_worker
from kagzi.cli.operate.worker import worker as worker_command
from kagzi.cli.supervise.supervision import VARIABLE
from kagzi.core.errors import Unavailable
from kagzi.sdk.worker.registry import WorkerOptions
from kagzi.sdk.worker.worker import Worker

MODULE = """
from kagzi import Context, Retry, Worker, schedule, workflow
from kagzi.sdk.transport.credentials import Tls

class Reversed:
    def encode(self, data): return data[::-1], {"encoding": "reversed"}
    def decode(self, data, metadata): return data[::-1]
    def __eq__(self, other): return type(other).__name__ == "Reversed"

@workflow
async def ask(ctx: Context) -> None: ...

@workflow
async def other(ctx: Context) -> None: ...

worker = Worker(
    "https://kagzi.example.com",
    workflows=[ask],
    namespace="special",
    max_concurrent=7,
    retry=Retry.attempts(9),
    labels={"team": "a"},
    hostname="rack-7",
    build_id="b-12",
    shutdown_grace="77s",
    threads=3,
    api_key="kgz_secret",
    tls=Tls(ca="ca.pem"),
    codec=Reversed(),
    record_inputs="always",
    schedules=[schedule("nightly", workflow=ask, cron="0 3 * * *")],
    schedules_owner="asking",
    apply_limits=True,
)
"""
OF_THE_SERVER = {"address", "api_key", "tls"}  # `kagzi dev` has a server of its own


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "one_worker_flows.py"
    path.write_text(MODULE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("KAGZI_NAMESPACE", raising=False)
    monkeypatch.delenv("KAGZI_ADDRESS", raising=False)
    yield path
    sys.modules.pop(path.stem, None)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Worker]:
    """The workers that would have begun to serve."""
    workers: list[Worker] = []

    async def enter(self: Worker) -> None:
        workers.append(self)
        raise Unavailable("this is a test")

    monkeypatch.setattr(Worker, "_enter", enter)
    return workers


def by_worker(target: str, begun: list[Worker], *options: str) -> WorkerOptions:
    result = CliRunner().invoke(worker_command, [target, *options])
    assert isinstance(result.exception, Unavailable), result.output
    return begun[-1].options


def by_dev(target: str, begun: list[Worker], namespace: str = "") -> tuple[WorkerOptions, list[dict[str, Any]]]:
    """What `kagzi dev`'s worker process would serve, and what it reports."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)}
    read_fd, address_fd = os.pipe()
    reports_fd, write_fd = os.pipe()
    try:
        os.write(address_fd, b"127.0.0.1:4711\n")
        os.environ[VARIABLE] = json.dumps({"number": 1, "control": read_fd, "reports": write_fd})
        assert dev_worker.main([target, namespace]) == 1
        reports = [msgspec.json.decode(line, type=dict[str, Any]) for line in os.read(reports_fd, 65_536).splitlines()]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for fd in (read_fd, address_fd, reports_fd, write_fd):
            os.close(fd)
    return begun[-1].options, reports


def test_every_field_of_a_worker_object_is_kept(module: Path, begun: list[Worker]) -> None:
    plain, meant = Worker().options, by_worker(str(module), begun)
    fields = set(WorkerOptions.__struct_fields__)
    unsaid = {field for field in fields if getattr(meant, field) == getattr(plain, field)}
    assert not unsaid, "say something about them in MODULE, so that losing it is noticed"
    options, reports = by_dev(str(module), begun)
    # The module is loaded once for each: functions and what is made of them are other objects of the same name.
    assert [workflow.name for workflow in begun[0].registered] == [workflow.name for workflow in begun[1].registered]
    same = fields - OF_THE_SERVER - {"workflows", "schedules"}
    assert {field: getattr(options, field) for field in same} == {field: getattr(meant, field) for field in same}
    assert [each.id for each in options.schedules] == [each.id for each in meant.schedules] == ["nightly"]
    assert (options.address, options.api_key, options.tls) == ("127.0.0.1:4711", None, None)
    assert reports[0]["replaced"] == ["address", "tls", "api_key"]
    assert (reports[0]["namespace"], reports[0]["shutdown_grace_s"]) == ("special", 77.0)


def test_what_the_command_says_wins(module: Path, begun: list[Worker]) -> None:
    options, reports = by_dev(str(module), begun, namespace="elsewhere")
    assert options.namespace == reports[0]["namespace"] == "elsewhere"
    chosen = by_worker(str(module), begun, "--namespace", "elsewhere", "--max-concurrent", "3", "--address", "a:1")
    assert (chosen.namespace, chosen.max_concurrent, chosen.address, chosen.hostname) == (
        "elsewhere",
        3,
        "a:1",
        "rack-7",
    )


def test_workflows_alone_get_the_same_worker_too(module: Path, begun: list[Worker]) -> None:
    module.write_text(MODULE.partition("worker = ")[0])
    meant = by_worker(str(module), begun)
    options, reports = by_dev(str(module), begun)
    assert reports[0]["replaced"] == []
    assert [workflow["name"] for workflow in reports[0]["workflows"]] == ["ask", "other"]
    same = set(WorkerOptions.__struct_fields__) - OF_THE_SERVER - {"workflows"}
    assert {field: getattr(options, field) for field in same} == {field: getattr(meant, field) for field in same}
