"""What a command does to a run: the exact rules, one command at a time. Pure apart from random numbers.

Both stores use it for everything that their fast paths do not cover: load the state, decide, save the changes.
"""

from collections.abc import Callable
from typing import Any

from ..limits import BATCH_ANSWER_BYTES
from ..pages.sizes import outcome_bytes
from ..providers import Rng
from ..times import Timestamp
from . import children, endings, markers, parking, signals, sleeps, steps
from .commands import (
    BeatStep,
    BeginSleep,
    BeginStep,
    CancelRun,
    Command,
    CompleteRun,
    CompleteStep,
    ContinueAsNew,
    DecideRace,
    FailRun,
    FailStep,
    FetchResults,
    FinishSleep,
    Park,
    PauseDiverged,
    RecordPatch,
    RecordStep,
    ReleaseRun,
    ResultsCommand,
    SetState,
    SetStatus,
    StartChild,
    WaitSignal,
)
from .outcomes import Deferred, Outcome, RunNotFound
from .state import RETURNS_STEP, RunState


def decide(run: RunState | None, command: Command, now: Timestamp, rng: Rng) -> Outcome:
    """Apply the command to `run`, or refuse it without a change; the outcome says which. None: the run does not
    exist."""
    if run is None:
        return RunNotFound()
    if run.deferred or _is_too_much(run, command):
        run.deferred = True
        return Deferred()
    outcome = _RULES[type(command)](run, command, now, rng)
    run.deferred = outcome.__class__ is Deferred
    run.answer_bytes += outcome_bytes(outcome)
    return outcome


def _is_too_much(run: RunState, command: Command) -> bool:
    """Whether its response was not read, or the responses to the run in this batch are large enough already."""
    if isinstance(command, RETURNS_STEP):
        step = run.steps.get(command.step_id)
        if step is not None and step.withheld:
            return True
    elif not isinstance(command, ResultsCommand):
        return False
    return run.answer_bytes > BATCH_ANSWER_BYTES


_RULES: dict[type[Command], Callable[[RunState, Any, Timestamp, Rng], Outcome]] = {
    BeginStep: steps.begin_step,
    RecordStep: steps.record_step,
    CompleteStep: steps.complete_step,
    FailStep: steps.fail_step,
    BeginSleep: sleeps.begin_sleep,
    FinishSleep: sleeps.finish_sleep,
    WaitSignal: signals.wait_signal,
    StartChild: children.start_child,
    DecideRace: markers.decide_race,
    RecordPatch: markers.record_patch,
    SetStatus: markers.set_status,
    SetState: markers.set_state,
    BeatStep: markers.beat_step,
    FetchResults: parking.fetch_results,
    Park: parking.park,
    CompleteRun: endings.complete_run,
    FailRun: endings.fail_run,
    CancelRun: endings.cancel_run,
    ReleaseRun: endings.release_run,
    ContinueAsNew: endings.continue_as_new,
    PauseDiverged: endings.pause_diverged,
}
