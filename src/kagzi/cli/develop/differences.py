"""Compares two recorded runs, step by step.

Times and numbers of attempts are shown but not compared, as they always differ. Child runs are compared by their
results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

View = Mapping[str, Any]
MISSING = object()

_COMPARED = ("kind", "status", "output", "error")


class Recording(NamedTuple):
    """A run and its steps in the order in which they were begun, as `kagzi get --steps --json` prints them."""

    run: View
    steps: Sequence[View]


class Difference(NamedTuple):
    """A place where two values differ. `path` leads into the value: `$.items[2].price`. A side without a value there is
    MISSING."""

    field: str
    path: str
    left: Any
    right: Any


class StepPair(NamedTuple):
    """The step with that id in both runs. `differences` are empty if it is equal, or in one run only."""

    step_id: str
    left: View | None
    right: View | None
    differences: tuple[Difference, ...]

    @property
    def verdict(self) -> str:
        if self.left is None:
            return "right only"
        if self.right is None:
            return "left only"
        return "differs" if self.differences else "same"


class Comparison(NamedTuple):
    left: Recording
    right: Recording
    beginning: tuple[Difference, ...]  # in the inputs and options of the runs
    steps: tuple[StepPair, ...]
    end: tuple[Difference, ...]

    @property
    def first(self) -> StepPair | None:
        """The first step that differs, or is in one run only."""
        return next((pair for pair in self.steps if pair.verdict != "same"), None)

    @property
    def is_same(self) -> bool:
        return not self.beginning and not self.end and self.first is None


def compare(left: Recording, right: Recording) -> Comparison:
    return Comparison(
        left,
        right,
        tuple(_differences(left.run, right.run, ("workflow", "version", "input"))),
        tuple(_pairs(left.steps, right.steps)),
        tuple(_differences(left.run, right.run, ("status", "output", "error"))),
    )


def _pairs(left: Sequence[View], right: Sequence[View]) -> Iterator[StepPair]:
    """Steps of both runs in the order of the left one; steps only in the right one are inserted where they began."""
    lefts = {step["step_id"]: step for step in left}
    rights = {step["step_id"]: step for step in right}
    inserted: dict[str | None, list[View]] = {}
    common: str | None = None
    for step in right:
        if step["step_id"] in lefts:
            common = step["step_id"]
        else:
            inserted.setdefault(common, []).append(step)
    yield from (StepPair(step["step_id"], None, step, ()) for step in inserted.get(None, ()))
    for step_id, step in lefts.items():
        other = rights.get(step_id)
        differences = () if other is None else tuple(_differences(step, other, _COMPARED))
        yield StepPair(step_id, step, other, differences)
        yield from (StepPair(each["step_id"], None, each, ()) for each in inserted.get(step_id, ()))


def _differences(left: View, right: View, fields: Sequence[str]) -> Iterator[Difference]:
    for field in fields:
        ours, theirs = _comparable(left[field]), _comparable(right[field])
        if ours != theirs:
            yield Difference(field, *_first_difference(ours, theirs))


def _comparable(value: Any) -> Any:
    """Removes tracebacks from errors, as line numbers change."""
    if not isinstance(value, dict) or "traceback" not in value:
        return cast("Any", value)
    error = cast("dict[str, Any]", value)
    return {name: error[name] for name in ("text", "kind", "code", "exhausted")}


def _first_difference(left: Any, right: Any, path: str = "$") -> tuple[str, Any, Any]:
    """Path and both values of the first, innermost difference."""
    if isinstance(left, dict) and isinstance(right, dict):
        ours, theirs = cast("dict[str, Any]", left), cast("dict[str, Any]", right)
        for key in dict.fromkeys((*ours, *theirs)):
            one, other = ours.get(key, MISSING), theirs.get(key, MISSING)
            if one != other:
                return _first_difference(one, other, f"{path}.{key}")
    if isinstance(left, list) and isinstance(right, list):
        mine, yours = cast("Sequence[Any]", left), cast("Sequence[Any]", right)
        for place in range(max(len(mine), len(yours))):
            one = mine[place] if place < len(mine) else MISSING
            other = yours[place] if place < len(yours) else MISSING
            if one != other:
                return _first_difference(one, other, f"{path}[{place}]")
    return path, cast("Any", left), cast("Any", right)
