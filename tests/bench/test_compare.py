"""The harness of the comparison, with an engine that only pretends and with Kagzi. No figure is judged."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from bench.compare import Record, compare, measure, summary_of
from bench.engines import ENGINES, PEERS
from bench.engines.base import Engine
from bench.engines.before import engines_before
from bench.engines.kagzi import KagziSqlite
from bench.launch import EngineError
from bench.machine_speed import MachineSpeed
from bench.metering import TreeMeter
from bench.workloads import COMPARED, TINY, WORKLOADS, Plan, Workload, chosen
from tests.support.timeouts import LOADED_MACHINE_S

DRIVER = Path(__file__).parent / "fake_driver.py"
ALL = chosen((), everything=True)


class Fake(Engine):
    name = "fake"
    title = "Fake"
    store = "own"
    mode = "one process"
    fault: ClassVar[str] = ""
    pids: ClassVar[list[int]] = []

    @classmethod
    def versions(cls) -> dict[str, str]:
        return {"fake": "1"}

    def start(self) -> None:
        self.driver = self.launcher.driver("process", [sys.executable, DRIVER, self.fault])
        self.pids.append(self.driver.launched.pid)

    def replace_worker(self) -> None:
        self.launcher.kill(self.driver.launched)
        self.start()

    @contextmanager
    def flood(self) -> Iterator[None]:
        yield


class Limited(Fake):
    name = "limited"
    cannot: ClassVar[dict[str, str]] = {"W1": "it is a test", "W6@1": "it is a test"}


class Wrong(Fake):
    name = "wrong"
    fault = "wrong"


class Dies(Fake):
    name = "dies"
    fault = "dies"


class Slowed(MachineSpeed):
    """One measurement after the other is slowed down by these."""

    def __init__(self, *slowdowns: float) -> None:
        super().__init__()
        self._slowdowns = iter(slowdowns)

    def slowdown_since(self, mark: int) -> float:
        return next(self._slowdowns)

    def wait_for_calm(self, most_s: float) -> None:
        return


def measured(engine: type[Engine], workloads: Sequence[Workload], plan: Plan) -> Iterator[Record]:
    """On a machine whose speed nobody watches."""
    return measure(engine, workloads, plan, MachineSpeed())


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_every_workload_has_a_figure_and_nothing_is_left_behind() -> None:
    records = list(measured(Fake, ALL, TINY))
    assert [record["workload"] for record in records] == list(WORKLOADS)
    for record in records:
        assert record["error"] is None
        assert record["value"] >= 0
        assert record["peak_memory_mb"]["all"] > 0
        assert record["workload"] in summary_of(record)
    assert not any(map(is_alive, Fake.pids))


def test_what_an_engine_cannot_express_is_not_asked_of_it() -> None:
    workloads = chosen(("W1", "W1r", "W6"), everything=False)
    assert [record["workload"] for record in measured(Limited, workloads, TINY)] == ["W1r", "W6"]


def test_a_wrong_result_is_an_error_and_the_others_are_measured() -> None:
    records = {record["workload"]: record for record in measured(Wrong, chosen(("W1", "W3"), everything=False), TINY)}
    assert "returned -1 instead of 1" in records["W3"]["error"]
    assert "value" not in records["W3"]
    assert records["W1@100"]["error"] is None
    assert "FAILED" in summary_of(records["W3"])


def test_an_engine_that_dies_is_reported_and_leaves_nothing_behind() -> None:
    records = {record["workload"]: record for record in measured(Dies, chosen(("wide", "W4"), everything=False), TINY)}
    assert "ended with 3" in records["wide"]["error"]
    assert records["W4"]["error"]
    assert not any(map(is_alive, Fake.pids))


def test_rounds_are_interleaved_and_workloads_of_scale_come_once() -> None:
    workloads = chosen(("W3", "W6@1"), everything=False)
    records = list(
        compare([Fake, Limited], workloads, TINY, rounds=2, scale_rounds=1, always=False, say=lambda _line: None)
    )
    order = [(record["round"], record["engine"], record["workload"]) for record in records]
    assert order == [
        (0, "fake", "W3"),
        (0, "fake", "W6@1"),
        (0, "limited", "W3"),
        (1, "limited", "W3"),
        (1, "fake", "W3"),
    ]


def test_what_was_disturbed_is_measured_again_and_the_calmest_counts() -> None:
    speed = Slowed(1.5, 1.2, 1.4, 1.6, 1.01)
    records = list(measure(Fake, chosen(("W3", "W4"), everything=False), TINY, speed, repeats=2))
    assert [(record["workload"], record["slowdown"], "left_out" in record) for record in records] == [
        ("W3", 1.5, True),
        ("W3", 1.2, False),
        ("W3", 1.4, True),
        ("W4", 1.6, True),
        ("W4", 1.01, False),
    ]
    assert "slowed down 1.50  left out" in summary_of(records[0])
    assert "slowed" not in summary_of(records[-1])


def test_workloads_of_scale_are_measured_once() -> None:
    records = list(measure(Fake, chosen(("W6@1",), everything=False), TINY, Slowed(1.5), repeats=2))
    assert [record["slowdown"] for record in records] == [1.5]


def test_a_slower_machine_is_noticed() -> None:
    samples = iter([100] * 40 + [150] * 40)
    taken = threading.Event()

    def sample() -> int:
        try:
            return next(samples)
        except StopIteration:
            taken.set()
            return 150

    with MachineSpeed(sample, interval_s=0.001) as speed:
        assert speed.slowdown_since(speed.mark()) == 1.0
        assert taken.wait(LOADED_MACHINE_S)
    assert speed.slowdown_since(40) == 1.5
    began = time.monotonic()
    speed.wait_for_calm(60.0)  # no samples any more: nothing is slow
    assert time.monotonic() - began < 60.0
    assert speed.slowdown_since(0) > 1.2


def test_kagzi_is_measured_with_real_processes() -> None:
    records = {
        record["workload"]: record for record in measured(KagziSqlite, chosen(("W3", "W4"), everything=False), TINY)
    }
    for record in records.values():
        assert record["error"] is None
        assert record["value"] > 0
        assert set(record["peak_memory_mb"]) == {"server", "worker", "client", "all"}


def test_a_comparison_knows_why_a_peer_has_no_figure() -> None:
    groups = {name.partition("@")[0] for name in WORKLOADS}
    for engine in ENGINES.values():
        assert set(engine.cannot) <= {*WORKLOADS, *groups}
        assert all(engine.cannot.values())
    assert not any(set(COMPARED) & set(engine.cannot) for engine in PEERS)


def test_the_cpu_of_a_tree_has_that_of_children_that_ended() -> None:
    meter = TreeMeter({"tree": os.getpid()})
    before = meter.cpu()
    child = os.fork()
    if child == 0:
        sum(range(3_000_000))
        os._exit(0)
    os.waitpid(child, 0)
    assert meter.cpu_since(before)["tree"] > 0
    assert meter.memory_mb()["tree"] > 1


@pytest.mark.parametrize("name", ["W1", "W1@100"])
def test_a_workload_is_chosen_by_its_name_or_its_group(name: str) -> None:
    assert "W1@100" in [workload.name for workload in chosen((name,), everything=False)]
    assert ("W1@500" in [workload.name for workload in chosen((name,), everything=False)]) == (name == "W1")


def test_another_checkout_runs_with_its_own_python(tmp_path: Path) -> None:
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    for command in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "--message", "before"]):
        identity = ("-c", "user.name=test", "-c", "user.email=test@localhost")
        subprocess.run(["git", "-C", tmp_path, *identity, *command], check=True)
    _postgres, sqlite, _embedded = engines_before(tmp_path)
    assert sqlite.name == "before-kagzi-sqlite"
    records = list(measured(sqlite, chosen(("W3",), everything=False), TINY))
    assert [record["error"] for record in records] == [None]
    python.write_text("#!/bin/sh\nexit 3\n")
    assert "ended with 3" in next(measured(sqlite, chosen(("W3",), everything=False), TINY))["error"]


def test_a_checkout_without_an_environment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"make \.venv/\.installed-dev"):
        engines_before(tmp_path)
