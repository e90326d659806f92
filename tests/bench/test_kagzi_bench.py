"""What people see of `kagzi bench`: its progress, a result to share, errors before the work, and a clean end."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from kagzi.cli.bench import load
from kagzi.cli.bench.plan import Measurement
from kagzi.cli.bench.progress import Bar
from kagzi.cli.bench.share import details, shared
from tests.support.kagzi_process import kagzi, running

RESULT = Measurement(
    workload="W6",
    what="timers",
    unit="ms late",
    value=12.345,
    higher_is_better=False,
    runs=1,
    operations=1,
    seconds=1.0,
    samples=(1.0,),
    p99=20.0,
    cpu_seconds_per_1000={"server": 0.05, "worker": 0.02},
    details={"lone_timer_p99_ms": 3.5},
)
DOCUMENT = {
    "versions": {"kagzi": "1.2.3", "commit": "abc", "python": "3.11.7", "grpcio": "1.80", "sqlite": "3.40"},
    "machine": {
        "platform": "Linux-6", "processor": "P", "usable_cores": 2, "memory_mb": 4096, "python_optimised": False,
        "load_average_before": [0.5, 0.1, 0.1],
    },
    "database": {"kind": "sqlite"},
    "event_loop": "uvloop",
    "results": [RESULT],
}  # fmt: skip


class Instant:
    """An engine whose runs are over at once."""

    def __init__(self, result: Any = None) -> None:
        self._result = result

    async def run(self, _flow: str, value: Any) -> Any:
        return self._result or (value if isinstance(value, int) else value["steps"])

    async def start(self, _flow: str, _value: Any) -> str:
        return "the same"

    async def result(self, _flow: str, _run: str) -> Any:
        return self._result


def children_of(pid: int) -> list[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it ended meanwhile
    return [child for child, parent in parents.items() if parent == pid]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_bench_that_is_stopped_leaves_no_process_behind(number: signal.Signals, tmp_path: Path) -> None:
    with running("bench", "--only", "W1", "--duration", "10m", "--warm-up", "100ms", cwd=tmp_path) as bench:
        bench.says(r"W1$")
        children = children_of(bench.process.pid)
        assert len(children) == 2
        os.kill(bench.process.pid, number)
        assert bench.process.wait(60) == 130
        assert not any(Path(f"/proc/{child}").exists() for child in children)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    done = kagzi("bench", "--json", str(tmp_path / "absent" / "result.json"))
    assert done.returncode == 1
    assert f"the folder {tmp_path}/absent does not exist" in done.stderr


def test_a_database_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    done = kagzi("bench", "--quick", "--db", "mysql://host", cwd=tmp_path)
    assert done.returncode == 1
    assert "db='mysql://host' is not a database URL" in done.stderr


def test_the_block_to_share_has_figures_machine_and_versions() -> None:
    text = shared(DOCUMENT)
    assert text.startswith("### kagzi bench: Kagzi 1.2.3 (abc) on SQLite 3.40\n")
    assert "| W6 | timers | 12.35 ms late | 20.00 | 0.070 |" in text
    assert "P, 2 cores, 4 GiB, Linux-6" in text
    assert "Python 3.11.7 (not optimised), uvloop" in text
    assert details([RESULT]) == ["W6: lone_timer_p99_ms 3.5"]


def test_a_bar_is_drawn_on_a_terminal_and_lines_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    Bar(("start", "W1"), is_terminal=False).part("W1")(0.5)
    assert capsys.readouterr().err == "2/2 W1\n"
    bar = Bar(("start", "W1"), is_terminal=True)
    bar.part("W1")(0.5)
    drawn = capsys.readouterr().err
    assert "\r[" in drawn
    assert " 50%  W1  0:00" in drawn
    bar.close()
    assert capsys.readouterr().err.strip(" \r") == ""


async def test_a_wrong_result_ends_a_measurement() -> None:
    assert (await load.throughput(Instant(), in_flight=2, seconds=0.01))["operations"] % 10 == 0
    with pytest.raises(load.WrongResultError, match="returned -1 instead of 10"):
        await load.throughput(Instant(-1), in_flight=2, seconds=0.01)
    with pytest.raises(load.WrongResultError, match="returned -1 instead of 3"):
        await load.latency(Instant(-1), runs=1, steps=3, pause_seconds=0)
    with pytest.raises(load.WrongResultError, match="returned 1 instead of"):
        await load.starts(Instant(), in_flight=2, seconds=0.01)  # one id for all of them
    with pytest.raises(load.WrongResultError, match="went on at 1"):
        await load.lone_timers(Instant(1), runs=1)


async def test_sizes_of_runs_follow_out_of_order_and_are_the_same_every_time() -> None:
    sizes: list[int] = []

    class Recorded(Instant):
        async def run(self, _flow: str, value: Any) -> Any:
            sizes.append(value)
            return value if len(sizes) < 15 else "enough"

    with pytest.raises(load.WrongResultError, match="enough"):
        await load.throughput(Recorded(), in_flight=1, seconds=60, steps=(3, 17))
    assert sizes[:4] == [3, 10, 17, 9]
    assert sorted(sizes) == list(range(3, 18))
