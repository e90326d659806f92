"""Explains a divergence: adds the line that causes it and what to write instead."""

import linecache
import re
from collections.abc import Mapping

from ...core.error_details import ErrorDetail
from ...core.transfers.images import StepImage
from .observation import CallPlace, Observation
from .result import Divergence

_NAME = re.compile(r"[^a-z0-9]+")


def divergence_of(
    problem: ErrorDetail, observation: Observation, recorded: Mapping[str, StepImage], definition: CallPlace
) -> Divergence:
    """`recorded`: the steps of the history, by id; `definition`: the line of the workflow function."""
    step_id = problem.metadata.get("step_id", "") or problem.subject_id
    known = recorded.get(step_id)
    called = step_id in observation.places or step_id in observation.taken
    if known is not None and not called:
        return _missing(problem, known, observation, recorded, definition)
    place = observation.place_of(step_id) or definition
    expected = recorded.get(problem.metadata.get("recorded", "")) or known
    words = "nothing more" if expected is None else _words(expected)
    if expected is not None and expected.step_id == step_id:
        change = f"change-{_slug(step_id)}"
    else:
        change = f"add-{_slug(step_id)}"
    patch = _patch(change, new=_source(place), old="" if expected is None else f"what made {_words(expected)}")
    return Divergence(
        step=step_id,
        recorded=words,
        actual=f"the code calls {step_id!r}",
        file=place.file,
        line=place.line,
        message=problem.message,
        remedy=_remedy(place, patch),
        patch=patch,
    )


def _missing(
    problem: ErrorDetail,
    missing: StepImage,
    observation: Observation,
    recorded: Mapping[str, StepImage],
    definition: CallPlace,
) -> Divergence:
    """The code no longer makes this call. The first later call is what it does instead."""
    taken = [recorded[step_id] for step_id in observation.taken if step_id in recorded]
    later = min(
        (step for step in taken if step.begun_seq > missing.begun_seq), key=lambda step: step.begun_seq, default=None
    )
    earlier = max(
        (step for step in taken if step.begun_seq < missing.begun_seq), key=lambda step: step.begun_seq, default=None
    )
    beside = later or earlier
    place = (None if beside is None else observation.place_of(beside.step_id)) or definition
    patch = _patch(f"remove-{_slug(missing.step_id)}", new="", old=f"what made {_words(missing)}")
    return Divergence(
        step=missing.step_id,
        recorded=_words(missing),
        actual=f"the code calls {later.step_id!r}" if later is not None else "the code ends or waits",
        file=place.file,
        line=place.line,
        message=problem.message,
        remedy=_remedy(place, patch),
        patch=patch,
    )


def _words(step: StepImage) -> str:
    return f"{'step' if step.kind == 'function' else step.kind} {step.step_id!r}"


def _slug(step_id: str) -> str:
    return _NAME.sub("-", step_id.rpartition("/")[2].partition("#")[0].lower()).strip("-") or "step"


def _source(place: CallPlace) -> str:
    return linecache.getline(place.file, place.line).strip() or "the new code"


def _patch(change: str, *, new: str, old: str) -> str:
    """Runs that began before the change take the old code, all others the new."""
    if not new:
        return f'if not ctx.changed("{change}"):\n    ...  # {old}\n'
    lines = f'if ctx.changed("{change}"):\n    {new}\n'
    return f"{lines}else:\n    ...  # {old}\n" if old else lines


def _remedy(place: CallPlace, patch: str) -> str:
    return (
        f"Keep the code that fits for the runs that began with it. At {place.file}:{place.line} write:\n\n{patch}\n"
        "Or deploy the code that began the run under its version, and this code under a new one."
    )
