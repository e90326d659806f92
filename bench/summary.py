"""Medians, ranges and ratios of a document."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from bench.document import Document

KAGZI = "kagzi-"
LEVEL = 0.05
"""Figures that differ by less than this are level: a machine drifts by more within hours."""


@dataclass(frozen=True)
class Figure:
    """The figure of one engine in one workload: the median of its rounds, and their range."""

    median: float
    low: float
    high: float
    rounds: int
    p99: float | None = None
    cpu_seconds_per_1000: float | None = None
    peak_memory_mb: float | None = None


@dataclass(frozen=True)
class Comparison:
    """Kagzi's best set-up, and each set-up, against the best peer of a workload. Above 1, Kagzi is ahead."""

    workload: str
    best_peer: str
    best_kagzi: str
    ratios: Mapping[str, float]  # by set-up of Kagzi, against the best peer

    @property
    def best_ratio(self) -> float:
        return self.ratios[self.best_kagzi]


def figures(document: Document) -> dict[str, dict[str, Figure]]:
    """By workload, then by engine; those that failed in every round are absent."""
    by_workload: dict[str, dict[str, Figure]] = {}
    for workload in document["workloads"]:
        for engine in document["engines"]:
            records = [
                record
                for record in document["results"]
                if (record["workload"], record["engine"]) == (workload, engine)
                and not record["error"]
                and not record.get("left_out")
            ]
            if records:
                by_workload.setdefault(workload, {})[engine] = _figure(records)
    return by_workload


def slowdowns(document: Document) -> tuple[list[float], int]:
    """How much others slowed each measurement that counts down, and how many were left out."""
    known = [record for record in document["results"] if "slowdown" in record]
    return [record["slowdown"] for record in known if not record.get("left_out")], sum(
        1 for record in known if record.get("left_out")
    )


def failures(document: Document) -> list[tuple[str, str, str]]:
    """Engine, workload, and the first line of the error."""
    return [
        (record["engine"], record["workload"], record["error"].splitlines()[0])
        for record in document["results"]
        if record["error"]
    ]


def advantage(ours: float, theirs: float, *, higher_is_better: bool) -> float:
    """How many times better ours is; 0.5 means half as good."""
    better, worse = (ours, theirs) if higher_is_better else (theirs, ours)
    return better / worse if worse else float("inf")


def is_kagzi(engine: str) -> bool:
    return engine.startswith(KAGZI)


def comparisons(document: Document) -> dict[str, Comparison]:
    """For every workload that has a ratio and that both Kagzi and a peer have finished."""
    compared: dict[str, Comparison] = {}
    for workload, by_engine in figures(document).items():
        if not document["workloads"][workload]["has_ratio"]:
            continue
        higher = document["workloads"][workload]["higher_is_better"]
        order = sorted(by_engine, key=lambda engine: by_engine[engine].median, reverse=higher)
        ours = [engine for engine in order if is_kagzi(engine) and "-servers" not in engine]
        peers = [engine for engine in order if not is_kagzi(engine)]
        if ours and peers:
            best = by_engine[peers[0]].median
            ratios = {
                engine: advantage(by_engine[engine].median, best, higher_is_better=higher)
                for engine in document["engines"]
                if engine in ours
            }
            compared[workload] = Comparison(workload, peers[0], ours[0], ratios)
    return compared


def verdict(ratio: float) -> str:
    if ratio >= 1 + LEVEL:
        return "ahead"
    return "level" if ratio >= 1 - LEVEL else "behind"


def _figure(records: list[Mapping[str, object]]) -> Figure:
    values = [_number(record["value"]) for record in records]
    p99s = [_number(record["p99"]) for record in records if "p99" in record]
    cpus = [sum(cpu.values()) for record in records if (cpu := _numbers(record["cpu_seconds_per_1000"]))]
    peaks = [_numbers(record["peak_memory_mb"]).get("all", 0.0) for record in records]
    return Figure(
        median=median(values),
        low=min(values),
        high=max(values),
        rounds=len(values),
        p99=median(p99s) if p99s else None,
        cpu_seconds_per_1000=median(cpus) if cpus else None,
        peak_memory_mb=median(peaks) if any(peaks) else None,
    )


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)


def _numbers(value: object) -> dict[str, float]:
    assert isinstance(value, dict)
    return {str(name): _number(number) for name, number in value.items()}
