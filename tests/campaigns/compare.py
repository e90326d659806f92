"""Interleaved measurements: the same query on a small store and on a large one, in turn, so that both share the
machine's load."""

import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, Generic, NamedTuple, TypeVar

from .figures import Figures, number, spread

RUNS = int(number("RUNS", 1_100_000))
SMALL_RUNS = 4_400
"""Just enough for lists to be as long as in the large one."""
SAMPLES = int(number("SAMPLES", 300))
WARM_UP = 30
MOST_RATIO = 1.5
PAGE = 50

Subject = TypeVar("Subject")


class Sized(NamedTuple, Generic[Subject]):
    """Whom to ask, and how many runs he has."""

    subject: Subject
    runs: int


Ask = Callable[[Subject, int], Awaitable[object]]
"""What is measured; the number is that of a run in the store, drawn anew each time."""


async def compare(
    figures: Figures, part: str, questions: dict[str, Ask[Subject]], small: Sized[Subject], large: Sized[Subject]
) -> dict[str, Any]:
    measured = {name: await _measure(ask, small, large) for name, ask in questions.items()}
    figures.put(part, {"runs": large.runs, "samples": SAMPLES, **measured})
    return measured


async def _measure(ask: Ask[Subject], small: Sized[Subject], large: Sized[Subject]) -> dict[str, Any]:
    rng = random.Random(7)
    times: dict[str, list[float]] = {"small": [], "large": []}
    for sample in range(WARM_UP + SAMPLES):
        for name, sized in (("small", small), ("large", large)):
            # Such as are completed, so that every question about one has the same answer.
            g = rng.randrange(1, sized.runs // 220) * 220 + 7
            began = time.perf_counter()
            await ask(sized.subject, g)
            if sample >= WARM_UP:
                times[name].append((time.perf_counter() - began) * 1_000)
    before, after = spread(times["small"]), spread(times["large"])
    return {
        "small p50_ms": before["p50_ms"],
        "large p50_ms": after["p50_ms"],
        "ratio p50": round(after["p50_ms"] / before["p50_ms"], 2),
        "small p99_ms": before["p99_ms"],
        "large p99_ms": after["p99_ms"],
        "ratio p99": round(after["p99_ms"] / before["p99_ms"], 2),
    }


def check(measured: dict[str, Any], *, least_difference_ms: dict[str, float]) -> None:
    """Of each part (p50, p99) only a difference of so many milliseconds is one, whatever the ratio."""
    slow = {
        name: each
        for name, each in measured.items()
        if isinstance(each, dict)
        and any(
            each[f"ratio {part}"] > MOST_RATIO and each[f"large {part}_ms"] - each[f"small {part}_ms"] > least
            for part, least in least_difference_ms.items()
        )
    }
    assert not slow, f"slower than {MOST_RATIO} times the small store: {slow}"
