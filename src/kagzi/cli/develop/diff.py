"""`kagzi diff`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from ..console import put, put_table, status_text
from ..exits import Exit
from ..options import Server
from ..output import Output, server_command
from ..times import local, span_text, took_text
from .recordings import file_option, recordings_of

if TYPE_CHECKING:
    from pathlib import Path

    from .differences import Comparison, Difference, StepPair

SIDES = ("left", "right")


@click.command("diff")
@click.argument("run", metavar="RUN")
@click.argument("other", metavar="[OTHER]", required=False)
@file_option
@server_command
def diff(*, run: str, other: str | None, file: Path | None, server: Server) -> Output:
    """Compare two runs: the first step that differs, with values and times.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). Without OTHER, RUN is a fork and is
    compared with the run it was forked from. The original, or RUN, is on the left. The exit code is 1 if they differ.
    """
    from .differences import compare

    comparison = compare(*recordings_of(run, other, file, server))
    code = Exit.OK if comparison.is_same else Exit.FAILED
    return Output(_view(comparison), lambda: _put(comparison), code)


# --- for programs -----------------------------------------------------------------------------------------------------

_RUN = ("run_id", "workflow_id", "workflow", "version", "status", "forked_from", "created_at", "finished_at")
_STEP = ("kind", "status", "attempt", "output", "error", "started_at", "finished_at")


def _view(comparison: Comparison) -> dict[str, Any]:
    first = comparison.first
    return {
        "same": comparison.is_same,
        "left": {name: comparison.left.run[name] for name in _RUN},
        "right": {name: comparison.right.run[name] for name in _RUN},
        "beginning": [_difference_view(each) for each in comparison.beginning],
        "first_difference": None if first is None else first.step_id,
        "steps": [_pair_view(pair) for pair in comparison.steps],
        "end": [_difference_view(each) for each in comparison.end],
    }


def _pair_view(pair: StepPair) -> dict[str, Any]:
    sides = {side: None if step is None else _step_view(step) for side, step in zip(SIDES, pair[1:3], strict=True)}
    differences = [_difference_view(each) for each in pair.differences]
    return {"step_id": pair.step_id, "verdict": pair.verdict, "differences": differences, **sides}


def _step_view(step: Mapping[str, Any]) -> dict[str, Any]:
    return {name: step[name] for name in _STEP}


def _difference_view(difference: Difference) -> dict[str, Any]:
    from .differences import MISSING

    sides = {side: getattr(difference, side) for side in SIDES}
    there = {side: value for side, value in sides.items() if value is not MISSING}
    return {"field": difference.field, "path": difference.path, **there}


# --- for people -------------------------------------------------------------------------------------------------------


def _put(comparison: Comparison) -> None:
    put_table([_run_row(side, recording.run) for side, recording in zip(SIDES, comparison[:2], strict=True)])
    put("")
    _put_differences("started with another", comparison.beginning)
    first = comparison.first
    if first is not None:
        _put_first(comparison, first)
    if comparison.end:
        _put_end(comparison)
    if comparison.is_same:
        put(f"no difference: {len(comparison.steps)} steps, the same input and the same end")
    if comparison.steps:
        put("")
        put_table([_step_row(pair) for pair in comparison.steps])


def _run_row(side: str, run: Mapping[str, Any]) -> dict[str, str]:
    names = ("run_id", "workflow_id", "workflow", "version")
    shown = {name.replace("_", " "): run[name] or "" for name in names}
    took = took_text(run["created_at"], run["finished_at"])
    return {"": side, **shown, "status": status_text(run["status"]), "took": took}


def _step_row(pair: StepPair) -> dict[str, str]:
    row = {"step": pair.step_id, "": pair.verdict}
    for side, step in zip(SIDES, pair[1:3], strict=True):
        row[side] = "" if step is None else status_text(step["status"])
        row[f"{side} took"] = "" if step is None else took_text(step["started_at"], step["finished_at"])
    return row


def _put_first(comparison: Comparison, pair: StepPair) -> None:
    put(f"first difference: step {click.style(pair.step_id, bold=True)} ({pair.verdict})")
    for side, step, recording in zip(SIDES, pair[1:3], comparison[:2], strict=True):
        put(f"  {side.ljust(5)}  {'-' if step is None else _result(step, recording.run)}")
    for difference in pair.differences:
        if difference.path != "$":
            put(f"  in {difference.field}: {_sides(difference)}")


def _result(step: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    at = step["finished_at"] or step["started_at"]
    when = "" if at is None else _when(local(at) - local(run["created_at"]))
    took = took_text(step["started_at"], step["finished_at"])
    attempts = f"{step['attempt']} attempts" if step["attempt"] > 1 else ""
    times = ", ".join(each for each in (attempts, when, took and f"took {took}") if each)
    return "  ".join(each for each in (_outcome(step), f"({times})" if times else "") if each)


def _outcome(view: Mapping[str, Any]) -> str:
    """The status of a step or run, with its output or error."""
    from ..runs.views import shown_text, value_text

    value = view["error"]["text"] if view["error"] else "" if view["output"] is None else value_text(view["output"])
    return f"{status_text(view['status'])}  {shown_text(value)}".rstrip()


def _when(after: timedelta) -> str:
    """Steps of a fork may be older than the fork itself."""
    return f"at +{span_text(after)}" if after >= timedelta(0) else "copied from the original"


def _put_end(comparison: Comparison) -> None:
    put("the end differs")
    for side, recording in zip(SIDES, comparison[:2], strict=True):
        put(f"  {side.ljust(5)}  {_outcome(recording.run)}")


def _put_differences(what: str, differences: Sequence[Difference]) -> None:
    for difference in differences:
        put(f"{what} {difference.field}: {_sides(difference)}")


def _sides(difference: Difference) -> str:
    path = "" if difference.path == "$" else f"{difference.path} is "
    return f"{path}{_text(difference.left)} on the left, {_text(difference.right)} on the right"


def _text(value: Any) -> str:
    import json

    from ..runs.views import shown_text
    from .differences import MISSING

    return "missing" if value is MISSING else shown_text(json.dumps(value, ensure_ascii=False))
