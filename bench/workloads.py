"""The workloads: the request to the load generator, and the figure in its response."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from kagzi.cli.bench.load import percentile

Answer = Mapping[str, Any]
Figures = dict[str, float]

_KILOBYTE = 1_000


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Durations and amounts. `BRIEF` has less of everything."""

    seconds: float = 10.0
    warm_up_seconds: float = 3.0
    latency_runs: int = 20
    pickups: int = 200
    fan_out_runs: int = 20
    timers: int = 10_000
    lone_timers: int = 50
    timer_margin_seconds: float = 3.0
    replayed_steps: int = 10_000
    sleepers: int = 100_000
    idle_seconds: float = 10.0
    settle_seconds: float = 1.0
    long_steps: int = 10_000
    wide_steps: int = 10_000


BRIEF = Plan(
    seconds=2.5,
    warm_up_seconds=1.5,
    latency_runs=10,
    pickups=50,
    fan_out_runs=10,
    timers=2_000,
    lone_timers=10,
    replayed_steps=2_000,
    sleepers=20_000,
    idle_seconds=3.0,
    long_steps=2_000,
    wide_steps=2_000,
)
TINY = Plan(
    seconds=0.2,
    warm_up_seconds=0.1,
    latency_runs=1,
    pickups=2,
    fan_out_runs=1,
    timers=10,
    lone_timers=1,
    timer_margin_seconds=0.2,
    settle_seconds=0.01,
    replayed_steps=20,
    sleepers=20,
    idle_seconds=0.1,
    long_steps=20,
    wide_steps=20,
)


@dataclass(frozen=True, kw_only=True)
class Workload:
    """`what`: the description, with names of the plan in braces. `request`: the command of the load generator and its
    arguments. `figures`: `value`, and possibly more."""

    name: str
    what: str
    unit: str
    higher_is_better: bool = False
    has_ratio: bool = True  # ratios of figures close to zero mean nothing
    request: Callable[[Plan], tuple[str, dict[str, Any]]] = field(repr=False)
    figures: Callable[[Answer], Figures] = field(repr=False)

    @property
    def group(self) -> str:
        """`W1` for `W1@100`."""
        return self.name.partition("@")[0]


def _rate(answer: Answer) -> Figures:
    return {"value": answer["operations"] / answer["seconds"]}


def _times(answer: Answer) -> Figures:
    samples = answer["samples"]
    return {"value": median(samples), "p50": median(samples), "p99": percentile(list(samples), 99)}


def _times_per_step(answer: Answer) -> Figures:
    steps = answer["operations"] / answer["runs"]
    return {name: figure / steps for name, figure in _times(answer).items()}


def _lateness(answer: Answer) -> Figures:
    samples = list(answer["samples"])
    return {"value": max(samples), "p50": percentile(samples, 50), "p99": percentile(samples, 99)}


def _throughput(name: str, what: str, in_flight: int, **arguments: Any) -> Workload:
    def request(plan: Plan) -> tuple[str, dict[str, Any]]:
        return "throughput", {"in_flight": in_flight, "seconds": plan.seconds, **arguments}

    return Workload(name=name, what=what, unit="steps/s", higher_is_better=True, request=request, figures=_rate)


_ALL = (
    _throughput("W1@100", "runs of 10 no-op steps, 100 at a time", 100, steps=(10, 10)),
    _throughput("W1@500", "runs of 10 no-op steps, 500 at a time", 500, steps=(10, 10)),
    _throughput("W1r", "runs of 3 to 17 no-op steps, 100 at a time", 100, steps=(3, 17)),
    _throughput("W1b", "runs of 10 steps of 20 ms each, 500 at a time", 500, steps=(10, 10), body_ms=20),
    Workload(
        name="W2",
        what="one run at a time, 100 no-op steps, by the clock of the workflow",
        unit="ms/step",
        request=lambda plan: ("latency", {"flow": "timed", "steps": 100, "runs": plan.latency_runs}),
        figures=_times_per_step,
    ),
    Workload(
        name="W2@caller",
        what="the same by the clock of the caller, with start and result",
        unit="ms/step",
        request=lambda plan: ("latency", {"flow": "sequence", "steps": 100, "runs": plan.latency_runs}),
        figures=_times_per_step,
    ),
    Workload(
        name="W3",
        what="idle: start a run of 1 step, await its result",
        unit="ms",
        request=lambda plan: ("latency", {"flow": "sequence", "steps": 1, "runs": plan.pickups}),
        figures=_times,
    ),
    Workload(
        name="W5",
        what="one run of 100 concurrent no-op steps",
        unit="ms",
        request=lambda plan: ("latency", {"flow": "fan_out", "steps": 100, "runs": plan.fan_out_runs}),
        figures=_times,
    ),
    _throughput("payload", "runs of 10 steps that return 100 KB each, 10 at a time", 10, payload_bytes=100 * _KILOBYTE),
    Workload(
        name="long",
        what="one run of {long_steps:,} no-op steps",
        unit="ms/step",
        request=lambda plan: ("latency", {"flow": "sequence", "steps": plan.long_steps, "runs": 1}),
        figures=_times_per_step,
    ),
    Workload(
        name="wide",
        what="one run of {wide_steps:,} concurrent no-op steps",
        unit="ms/step",
        request=lambda plan: ("latency", {"flow": "fan_out", "steps": plan.wide_steps, "runs": 1}),
        figures=_times_per_step,
    ),
    Workload(
        name="W6",
        what="{timers:,} runs asleep, due at once: how late the last goes on",
        unit="ms",
        request=lambda plan: ("timers", {"count": plan.timers, "margin_seconds": plan.timer_margin_seconds}),
        figures=_lateness,
    ),
    Workload(
        name="W6@1",
        what="a lone timer: how late it is",
        unit="ms",
        request=lambda plan: ("lone_timers", {"runs": plan.lone_timers}),
        figures=_times,
    ),
    Workload(
        name="W7",
        what="a run of {replayed_steps:,} steps, killed and replayed: the replay",
        unit="s",
        request=lambda plan: ("replay", {"steps": plan.replayed_steps}),
        figures=lambda answer: {
            "value": answer["seconds"],
            "until_result_seconds": answer["until_result_seconds"],
        },
    ),
    Workload(
        name="W8",
        what="CPU at rest, all processes",
        unit="% of a core",
        has_ratio=False,
        request=lambda plan: ("idle", {"seconds": plan.idle_seconds, "pickups": min(plan.pickups, 20)}),
        figures=lambda answer: {"value": answer["percent"]},
    ),
    Workload(
        name="W8@sleeping",
        what="CPU at rest, all processes, with {sleepers:,} runs asleep",
        unit="% of a core",
        has_ratio=False,
        request=lambda plan: (
            "idle",
            {"seconds": plan.idle_seconds, "pickups": min(plan.pickups, 20), "sleepers": plan.sleepers},
        ),
        figures=lambda answer: {"value": answer["percent"], "pickup_ratio": answer["pickup_ratio"]},
    ),
    Workload(
        name="W10",
        what="share of W1 that a namespace keeps while another floods",
        unit="of W1 alone",
        has_ratio=False,
        higher_is_better=True,
        request=lambda plan: ("beside_a_flood", {"seconds": plan.seconds}),
        figures=lambda answer: {"value": answer["share"]},
    ),
    # Last, because the runs that it starts stay in the store.
    Workload(
        name="W4",
        what="durable starts, 50 in flight, no worker",
        unit="starts/s",
        higher_is_better=True,
        request=lambda plan: ("starts", {"in_flight": 50, "seconds": plan.seconds}),
        figures=_rate,
    ),
)
WORKLOADS: dict[str, Workload] = {workload.name: workload for workload in _ALL}
GROUPS = tuple(dict.fromkeys(workload.group for workload in _ALL))
COMPARED = ("W1@100", "W1@500", "W1r", "W2", "W2@caller", "W3", "W5", "W8", "W4")
"""The workloads of a brief comparison."""


def chosen(names: tuple[str, ...], *, everything: bool) -> list[Workload]:
    """Workloads in their order. `names`: workloads or groups; if empty, those of a comparison, or all."""
    if not names:
        return [workload for workload in _ALL if everything or workload.name in COMPARED]
    return [workload for workload in _ALL if workload.name in names or workload.group in names]
