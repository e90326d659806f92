"""A tiny `kagzi bench` on both stores: every workload runs, and the document has its form. No figure is judged."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.embedded import WORKLOADS as EMBEDDED_WORKLOADS
from bench.embedded import measure
from kagzi.cli.bench.cpu import cpu_seconds
from kagzi.cli.bench.load import percentile
from kagzi.cli.bench.plan import WORKLOADS, Plan
from kagzi.embedded import EmbeddedServer
from tests.support.kagzi_process import kagzi

TINY = ("--quick", "--duration", "2s", "--warm-up", "1s", "--in-flight", "5")
RESULT_KEYS = {
    "workload", "what", "unit", "value", "higher_is_better", "runs", "operations", "seconds", "samples", "p50", "p99",
    "in_flight", "cpu_seconds_per_1000", "memory_mb", "details",
}  # fmt: skip


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> list[str]:
    return [] if request.param == "sqlite" else ["--db", request.getfixturevalue("postgres_url")]


def test_every_workload_is_measured_and_written_down(database: list[str], tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    # A killed worker's lease takes seconds: once is enough.
    workloads = [name for name in WORKLOADS if name != "W7"] if database else list(WORKLOADS)
    only = [option for name in workloads for option in ("--only", name)]
    done = kagzi("bench", *database, *only, *TINY, "--json", str(file), cwd=tmp_path, timeout_s=100)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(file.read_text())
    assert document["format"] == 1
    assert {"cores", "platform", "processor"} <= set(document["machine"])
    assert {"kagzi", "commit", "python", "grpcio"} <= set(document["versions"])
    assert document["database"]["kind"] == ("postgresql" if database else "sqlite")
    assert [result["workload"] for result in document["results"]] == workloads
    for result in document["results"]:
        assert set(result) == RESULT_KEYS
        assert result["value"] > 0 or result["workload"] in ("W7", "W8")  # of a hundred steps, at rest
        assert result["samples"] or result["workload"] in ("W7", "W8")
        assert {"server", "worker", "client"} <= set(result["cpu_seconds_per_1000"]) or result["workload"] == "W8"
        assert {"server", "worker", "client"} <= set(result["memory_mb"])
        assert result["workload"] in done.stdout
    assert list(tmp_path.iterdir()) == [file]  # nothing else is left behind


@pytest.mark.parametrize("transport", ["grpc", "in_process"])
async def test_an_embedded_address_is_measured_over_each_transport(
    transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EmbeddedServer, "open_call", EmbeddedServer.open_call)  # put back afterwards
    plan = Plan(
        workloads=EMBEDDED_WORKLOADS,
        seconds=0.1,
        warm_up_seconds=0.1,
        in_flight=(5,),
        latency_steps=2,
        latency_runs=1,
        pickups=1,
        fan_out_steps=1,
    )
    results = await measure(transport, plan, ":memory:")
    assert [result.workload for result in results] == list(EMBEDDED_WORKLOADS)
    assert all(result.value > 0 and result.cpu_seconds_per_1000 for result in results)


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_percentiles_are_samples(samples: list[float]) -> None:
    assert percentile(samples, 50) in samples
    assert percentile(samples, 100) == max(samples)
    assert percentile(samples, 0) == min(samples)


def test_the_cpu_of_a_process_that_is_gone_is_unknown() -> None:
    assert cpu_seconds(2**22 + 1) is None
