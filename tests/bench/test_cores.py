"""What all cores do together is measured with as many processes as there are cores."""

import os

import pytest

from bench import cores
from bench.cores import cores_together


def test_every_core_has_a_process_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    pids: list[list[int]] = []

    def three(_pid: int) -> set[int]:
        return {0, 1, 2}

    def counted(counters: list[cores.Counter], _seconds: float) -> int:
        pids.append([counter.pid for counter in counters])
        return 10 * len(counters)

    monkeypatch.setattr(os, "sched_getaffinity", three)
    monkeypatch.setattr(cores, "_count", counted)
    assert cores_together(tries=2) == 3.0
    assert [len(set(each)) for each in pids] == [3, 1, 3, 1]


def test_processes_count_when_asked() -> None:
    """How much each counts depends on what else the machine does."""
    assert cores_together(seconds=0.1, tries=1) > 0
