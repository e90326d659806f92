"""The plan of a bench, and its measurements."""

from collections.abc import Mapping

import msgspec

WORKLOADS = ("W1", "W1r", "W2", "W3", "W4", "W5")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """`seconds` is the length of each throughput measurement; repetitions are of the latency ones."""

    workloads: tuple[str, ...] = WORKLOADS
    seconds: float = 10.0
    warm_up_seconds: float = 2.0
    in_flight: tuple[int, ...] = (100, 500)
    steps: int = 10
    mixed_steps: tuple[int, int] = (3, 17)
    latency_steps: int = 100
    latency_runs: int = 20
    pickups: int = 200
    pickup_pause_seconds: float = 0.02
    starts_in_flight: int = 50
    fan_out_steps: int = 100
    fan_out_runs: int = 20


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the result. `samples` are raw: runs finished per second for throughput, single times for latency."""

    workload: str
    what: str
    unit: str
    value: float
    higher_is_better: bool
    runs: int
    operations: int  # steps, or starts
    seconds: float
    samples: tuple[float, ...]
    p50: float | None = None
    p99: float | None = None
    in_flight: int = 1
    cpu_seconds_per_1000: Mapping[str, float] = {}


def percentile(samples: list[float], percent: float) -> float:
    """Nearest rank. `samples` need not be sorted and must not be empty."""
    ordered = sorted(samples)
    rank = max(1, -(-len(ordered) * percent // 100))
    return ordered[int(rank) - 1]
