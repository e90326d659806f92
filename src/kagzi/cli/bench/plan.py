"""The plan of a bench, and its measurements."""

from collections.abc import Mapping

import msgspec

WORKLOADS = ("W1", "W1r", "W1b", "W2", "W3", "W4", "W5", "W6", "W7", "W8")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """`seconds`: the length of each throughput measurement; repetitions apply to the latency ones."""

    workloads: tuple[str, ...] = WORKLOADS
    seconds: float = 10.0
    warm_up_seconds: float = 2.0
    in_flight: tuple[int, ...] = (100, 500)
    steps: int = 10
    mixed_steps: tuple[int, int] = (3, 17)
    body_ms: int = 20
    bodies_in_flight: int = 500
    latency_steps: int = 100
    latency_runs: int = 20
    pickups: int = 200
    pickup_pause_seconds: float = 0.02
    starts_in_flight: int = 50
    fan_out_steps: int = 100
    fan_out_runs: int = 20
    timers: int = 10_000
    lone_timers: int = 50
    timer_margin_seconds: float = 3.0
    replayed_steps: int = 10_000
    sleepers: int = 100_000
    idle_seconds: float = 10.0

    @property
    def slots(self) -> int:
        """The slots of the worker, enough for it not to be the limit."""
        return max(*self.in_flight, self.bodies_in_flight)


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the result. `samples` are raw: operations finished per second for throughput, single durations for
    latency. `details` are further figures, by name and unit. `memory_mb` is the peak of each process so far."""

    workload: str
    what: str
    unit: str
    value: float
    higher_is_better: bool
    runs: int
    operations: int  # steps, starts or timers
    seconds: float
    samples: tuple[float, ...]
    p50: float | None = None
    p99: float | None = None
    in_flight: int = 1
    cpu_seconds_per_1000: Mapping[str, float] = {}
    memory_mb: Mapping[str, float] = {}
    details: Mapping[str, float] = {}
