"""The hot verb: a batch of commands in one transaction.

Ordinary commands are planned from memory and written together (`fast_path.py`). Others are processed alone
(`apply_one`: load, decide, save). If the database does not match the plan, or refuses a statement, the transaction is
rolled back and the batch is repeated with each command in a savepoint of its own: a bad one is refused, the others are
recorded.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from ....core.effects import NO_EFFECTS, Effects, merge
from ....core.error_details import ErrorCode
from ....core.limits import BATCH_ANSWER_BYTES, STEPS_PER_RUN
from ....core.pages.sizes import outcome_bytes
from ....core.run.commands import (
    BeginSleep,
    BeginStep,
    Command,
    CompleteRun,
    CompleteStep,
    OpenAttempt,
    RecordPatch,
    RecordStep,
    ResultsCommand,
    StartChild,
    StartRun,
)
from ....core.run.decide import decide
from ....core.run.faults import fault_of
from ....core.run.outcomes import Begun, Deferred, Failed, Outcome, Recorded, RunClosed, RunNotFound, TimerSet
from ....core.run.refusals import is_reserved, refused
from ....core.run.state import RETURNS_STEP
from ....core.states import RunStatus, StepCode
from ....core.text.storable import is_storable
from ....core.times import Timestamp
from ...protocol import LeaseTerms
from ...rows import write_strings
from ..connection.failures import describe
from .children import without_assignment
from .fast_path import FINISHED_AT, OUTPUT, OUTPUT_META, SEQ, STATUS, NotAsPlanned, WritePlan, Writer
from .fences import Fence
from .run_changes import save
from .run_state import load
from .starts import plan_start, start_one

RUN_NOT_FOUND, DEFERRED = RunNotFound(), Deferred()

_RETURNS_PAYLOADS = (ResultsCommand, *RETURNS_STEP)

_COMPLETED = int(StepCode.COMPLETED)

# What one bad command can make a statement raise. Any other error is a problem of the store, not of a command.
_ONE_COMMANDS_FAULT = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    OverflowError,
    UnicodeError,
    ValueError,
    TypeError,
)


_Written = tuple[list[Outcome], Effects]


def write(writer: Writer, batch: Sequence[Command], now: Timestamp, terms: LeaseTerms) -> _Written:
    """See Store.write."""
    if not writer.fast_path:
        return _in_transaction(writer, _one_by_one, batch, now, terms)
    try:
        return _in_transaction(writer, _together, batch, now, terms)
    except (NotAsPlanned, *_ONE_COMMANDS_FAULT):
        return _in_transaction(writer, _one_by_one, batch, now, terms)


_How = Callable[[WritePlan, Sequence[Command]], _Written]


def _in_transaction(writer: Writer, how: _How, batch: Sequence[Command], now: Timestamp, terms: LeaseTerms) -> _Written:
    writer.database.begin()
    try:
        written = how(WritePlan(writer, now, terms), batch)
        writer.database.commit()
    except BaseException:
        writer.namespaces.forget_all()
        for command in batch:
            _forget(writer, command)
        writer.database.rollback()
        raise
    return written


def _forget(writer: Writer, command: Command) -> None:
    """Drop what was cached from a command that is rolled back."""
    writer.fences.forget(command.run.run_id)
    if isinstance(command, StartChild):
        writer.fences.forget(command.start.run.run_id)


# --- together: planned from memory ------------------------------------------------------------------------------------


def _together(plan: WritePlan, batch: Sequence[Command]) -> _Written:
    fences, now = plan.fences, plan.now
    known = fences.get
    unknown = {each.run.run_id for each in batch if known(each.run.run_id) is None and not isinstance(each, StartRun)}
    if unknown:
        fences.load(plan.database, unknown)
    outcomes: list[Outcome] = []
    answers = AnswerBudget()
    for command in batch:
        outcome: Outcome | None = None
        if isinstance(command, StartRun):
            outcome = plan_start(plan, command)
        elif answers.deferred and answers.follows_deferred(command):
            outcome = DEFERRED
        else:
            run = command.run
            fence = fences.get(run.run_id)
            if fence is not None and fence.admits(command.lease) and fence.namespace == run.namespace:
                rule = _PLANS.get(type(command))
                if rule is not None and fence.deadline_at > now:
                    outcome = rule(plan, command, fence)
        if outcome is None:
            if isinstance(command, StartRun) or plan.concerns(command):
                plan.flush()
            outcome = answers.spend(command, plan)
        outcomes.append(outcome)
    plan.flush()
    return outcomes, merge(plan.effects) if plan.effects else NO_EFFECTS


class AnswerBudget:
    """Limits how much one batch reads for its responses. Further commands are deferred, with all later ones of their
    run."""

    def __init__(self) -> None:
        self._left = BATCH_ANSWER_BYTES
        self.deferred: set[str] = set()  # runs

    def follows_deferred(self, command: Command) -> bool:
        return command.run.run_id in self.deferred

    def spend(self, command: Command, plan: WritePlan) -> Outcome:
        """Apply the command, unless its response may be large and the budget is spent."""
        if self._left <= 0 and isinstance(command, _RETURNS_PAYLOADS):
            self.deferred.add(command.run.run_id)
        if self.follows_deferred(command):
            return DEFERRED
        outcome = apply_one(plan, command)
        self._left -= outcome_bytes(outcome)
        return outcome


def _is_new(plan: WritePlan, command: OpenAttempt, fence: Fence) -> bool:
    """Whether the attempt is the first of a new step, as far as that is known without reading."""
    step_id = command.step_id
    if fence.cancelling and not command.cleanup:
        return False
    if command.attempt > 1 or fence.seq >= STEPS_PER_RUN or is_reserved(step_id) or step_id in fence.steps_open:
        return False
    if "\0" in step_id or "\0" in command.name or "\0" in command.parent_step_id or "\0" in command.parallel_group_id:
        return False
    step = (fence.run_id, step_id)
    return step not in plan.begun and step not in plan.completed and command.attempt >= 0


def _plan_begin(plan: WritePlan, command: BeginStep, fence: Fence) -> Outcome | None:
    if not _is_new(plan, command, fence):
        return None
    seq = fence.next_seq()
    plan.add_step(command, fence, seq)
    return Begun(seq, plan.now, 1)


def _plan_record(plan: WritePlan, command: RecordStep, fence: Fence) -> Outcome | None:
    if not _is_new(plan, command, fence):
        return None
    begun_seq, seq = fence.next_seq(), fence.next_result()
    plan.add_recorded(command, fence, begun_seq, seq)
    return Recorded(seq, plan.now)


def _plan_complete(plan: WritePlan, command: CompleteStep, fence: Fence) -> Outcome | None:
    output = command.output
    row = plan.begun.get((fence.run_id, command.step_id))
    if row is None:
        if command.attempt < 1:
            return None
        seq = fence.next_result()
        plan.add_completion(fence, command.step_id, command.attempt, seq, output)
        return Recorded(seq, plan.now)
    if command.attempt not in (0, 1):
        return None
    del plan.begun[fence.run_id, command.step_id]
    seq = fence.next_result()
    row[STATUS] = _COMPLETED
    row[SEQ] = seq
    row[OUTPUT] = output.data
    if output.metadata:
        row[OUTPUT_META] = write_strings(output.metadata)
    row[FINISHED_AT] = plan.now
    return Recorded(seq, plan.now)


def _plan_sleep(plan: WritePlan, command: BeginSleep, fence: Fence) -> Outcome | None:
    step_id = command.step_id
    if fence.seq >= STEPS_PER_RUN or is_reserved(step_id) or step_id in fence.steps_open:
        return None
    if fence.cancelling and not command.cleanup:
        return None
    if "\0" in step_id or "\0" in command.name or "\0" in command.parent_step_id or "\0" in command.parallel_group_id:
        return None
    wake_at = command.until if command.until is not None else plan.now + (command.duration_us or 0)
    if wake_at > plan.now:
        seq = fence.next_seq()
        plan.add_sleep(command, fence, seq, wake_at)
        return TimerSet(seq, plan.now, wake_at)
    seq = fence.next_result()
    plan.add_sleep(command, fence, seq, wake_at)
    return Recorded(seq, plan.now)


def _plan_patch(plan: WritePlan, command: RecordPatch, fence: Fence) -> Outcome | None:
    step_id = command.step_id
    if fence.seq >= STEPS_PER_RUN or is_reserved(step_id) or "\0" in step_id or "\0" in command.name:
        return None
    seq = fence.next_result()
    plan.add_patch(command, fence, seq)
    return Recorded(seq, plan.now)


def _plan_end(plan: WritePlan, command: CompleteRun, fence: Fence) -> Outcome | None:
    if fence.related or (fence.cancelling and command.after_step) or not is_storable(command.after_step):
        return None
    if command.open_waits:
        return None
    seq = fence.next_seq()
    plan.add_end(fence, seq, command.output)
    return RunClosed(seq, plan.now, RunStatus.COMPLETED)


_PLANS: dict[type, Callable[[WritePlan, Any, Fence], Outcome | None]] = {
    BeginStep: _plan_begin,
    RecordStep: _plan_record,
    CompleteStep: _plan_complete,
    BeginSleep: _plan_sleep,
    RecordPatch: _plan_patch,
    CompleteRun: _plan_end,
}


# --- one by one: read, decided, saved ---------------------------------------------------------------------------------


def _one_by_one(plan: WritePlan, batch: Sequence[Command]) -> _Written:
    outcomes: list[Outcome] = []
    effects: list[Effects] = []
    failed: dict[str, Failed] = {}  # by run: no later command of a run may take effect without the earlier ones
    answers = AnswerBudget()
    for command in batch:
        if (before := failed.get(command.run.run_id)) is not None:
            outcomes.append(before)
            continue
        plan.database.savepoint()
        try:
            outcome = answers.spend(command, plan)
            plan.flush()
        except (NotAsPlanned, *_ONE_COMMANDS_FAULT) as error:
            plan.database.rollback_to_savepoint()
            _forget(plan.writer, command)
            plan = WritePlan(plan.writer, plan.now, plan.terms)
            outcome = _refuse_culprit(error)
            if isinstance(outcome, Failed):
                failed[command.run.run_id] = outcome
        else:
            plan.database.release()
            effects += plan.effects
            plan.effects.clear()
        outcomes.append(outcome)
    return outcomes, merge(effects)


def _refuse_culprit(error: Exception) -> Outcome:
    if isinstance(error, OverflowError):
        return refused(ErrorCode.INVALID_ARGUMENT, f"the command holds a value that cannot be stored: {error}")
    return Failed(f"SQLite refused it: {describe(error)}")


def apply_one(plan: WritePlan, command: Command) -> Outcome:
    """Processes one command by itself, after reading its run. The plan must be flushed before."""
    if (fault := fault_of(command)) is not None:
        return fault
    if isinstance(command, StartRun):
        return start_one(plan, command)
    if isinstance(command, StartChild):
        command = without_assignment(plan, command)
    run = load(plan, command)
    if run is None:
        return RUN_NOT_FOUND
    outcome = decide(run, command, plan.now, plan.writer.rng)
    if run.changed:
        save(plan, run, command)
    return outcome
