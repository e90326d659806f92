"""The fast path: plain commands of many runs become the arrays of one statement.

A command is plain if nothing has to be read first: a step's first attempt begins, a step completes, both at once (one
row, from one command or two), the run completes. This code runs for every step of every run: a command costs a few
appends and creates no object but its outcome.
"""

from typing import Any

import asyncpg

from ....core.limits import STEPS_PER_RUN
from ....core.run.commands import (
    BeginStep,
    ClosingCommand,
    Command,
    CompleteRun,
    CompleteStep,
    OpenAttempt,
    RecordStep,
    StepCommand,
)
from ....core.run.outcomes import Begun, Recorded, RunClosed
from ....core.run.refusals import is_reserved
from ....core.run.state import OUTPUT_STEP
from ....core.states import KindCode, RunStatus
from ....core.times import Timestamp
from ...rows import write_policy, write_strings
from .batch import Outcomes, WorkerGroup, Writing

_OUTPUT = int(KindCode.OUTPUT)

_Row = dict[str, Any]


class FastPath:
    """Collects groups in the order of their run ids. `add` them, then `record`.

    If every group is one recorded step, possibly with the end of its run, they are rows of one table; that is the usual
    batch. Otherwise they are divided into heads of groups, steps that begin and steps that complete.
    """

    def __init__(self) -> None:
        self._groups: list[WorkerGroup] = []
        self._recorded: list[_Row] | None = []  # one per group; None: there is a group of another kind
        self._heads: list[_Row] = []  # one per group
        self._begun: list[_Row] = []  # rows to insert
        self._completed: list[_Row] = []  # rows to update
        self._answers: list[tuple[int, int, int, type[Command]]] = []  # index in the batch, group, number in it, type

    def __len__(self) -> int:
        return len(self._groups)

    def add(self, group: WorkerGroup) -> bool:
        """Whether all its commands are plain; if not, nothing is added."""
        if self._recorded is not None:
            row = _recorded_row(group)
            if row is not None:
                self._recorded.append(row)
                self._groups.append(group)
                return True
        head = self._add_group(len(self._groups) + 1, group)
        if head is None:
            return False
        if self._recorded is not None:
            self._divide()
        self._heads.append(head)
        self._groups.append(group)
        return True

    def _divide(self) -> None:
        """At the first group that is not one recorded step, divide the earlier ones into heads and steps as well."""
        self._recorded = None
        for number, group in enumerate(self._groups, start=1):
            head = self._add_group(number, group)
            assert head is not None  # a recorded step is always plain
            self._heads.append(head)

    def _add_group(self, number: int, group: WorkerGroup) -> _Row | None:
        """Adds the group's steps and returns its head; None, and nothing is added, if a command is not plain."""
        run, commands = group
        begun, completed, answers = len(self._begun), len(self._completed), len(self._answers)
        head = self._add_commands(number, commands)
        if head is None:
            del self._begun[begun:], self._completed[completed:], self._answers[answers:]
            return None
        lease = commands[0][1].lease
        taken, begins, result, retried, closes = head
        return {
            "run_id": run.run_id,
            "namespace": run.namespace,
            "lease": lease.counter,
            "nonce": lease.nonce,
            "taken": taken,
            "rows": len(self._begun) - begun + len(self._completed) - completed,
            "begins": begins or None,
            "result": result or None,
            "retried": retried or None,
            "closes": closes or None,
        }

    def _add_commands(
        self, number: int, commands: list[tuple[int, StepCommand | ClosingCommand]]
    ) -> tuple[int, int, int, int, bool] | None:
        """(seqs taken, steps begun, position of the last result, retried steps that now have a result, whether the run
        ends); None if a command is not plain."""
        lease = commands[0][1].lease
        rows: dict[str, _Row | None] = {}
        place = begins = result = retried = 0
        closes = False
        for index, command in commands:
            if closes or (place and command.lease != lease):
                return None
            place += 1
            if isinstance(command, CompleteStep):
                if not self._add_completion(number, place, command, rows):
                    return None
                result = place
                retried += command.attempt > 1
            elif isinstance(command, (RecordStep, BeginStep)):
                if not self._add_begin(number, place, command, rows):
                    return None
                begins += 1
                if isinstance(command, RecordStep):
                    place += 1  # it takes two seqs, like a begin and a completion
                    result = place
            elif isinstance(command, CompleteRun):
                if (command.after_step and command.after_step not in rows) or command.open_waits:
                    return None  # it must be checked whether that step has a result, and these waits have values
                self._begun.append(_output_row(number, place, command))
                closes = True
            else:
                return None
            self._answers.append((index, number, place, type(command)))
        return place, begins, result, retried, closes

    def _add_begin(
        self, number: int, place: int, command: BeginStep | RecordStep, rows: dict[str, _Row | None]
    ) -> bool:
        step_id = command.step_id
        if command.attempt != 1 or step_id in rows or is_reserved(step_id):
            return False
        row = _begun_row(number, place, command)
        if isinstance(command, RecordStep):
            output = command.output
            row["result"], row["output"], row["output_meta"] = place + 1, output.data, write_strings(output.metadata)
        elif command.once:
            return False
        rows[step_id] = row
        self._begun.append(row)
        return True

    def _add_completion(self, number: int, place: int, command: CompleteStep, rows: dict[str, _Row | None]) -> bool:
        step_id, output = command.step_id, command.output
        metadata = None if output.metadata is None else write_strings(output.metadata)
        if step_id not in rows:
            if command.attempt < 1:
                return False
            rows[step_id] = None
            self._completed.append(
                {
                    "n": number,
                    "step_id": step_id,
                    "attempt": command.attempt,
                    "result": place,
                    "output": output.data,
                    "output_meta": metadata,
                }
            )
            return True
        row = rows[step_id]
        if row is None or row["result"] or command.attempt not in (0, 1):
            return False
        row["result"], row["output"], row["output_meta"] = place, output.data, metadata
        return True

    async def record(self, writing: Writing) -> list[WorkerGroup]:
        """Write everything, fill in the outcomes, and return the groups that were not written, for the careful path."""
        try:
            if self._recorded is not None:
                taken = await self._write_recorded(writing, self._recorded)
            elif self._is_lone_step():
                taken = await _write_lone_step(writing, {**self._heads[0], **self._begun[0]})
            else:
                taken = await self._write_all(writing)
        except (asyncpg.DivisionByZeroError, asyncpg.UniqueViolationError):
            return self._groups
        if taken:
            writing.session.committed()
        if self._recorded is None:
            self._answer(taken, writing.now, writing.outcomes)
        else:
            self._answer_recorded(taken, writing.now, writing.outcomes)
        if len(taken) == len(self._groups):
            return []
        return [group for number, group in enumerate(self._groups, start=1) if number not in taken]

    async def _write_recorded(self, writing: Writing, rows: list[_Row]) -> dict[int, int]:
        """Like `_write_all`."""
        if len(rows) == 1:
            return await (_write_lone_step if rows[0]["closes"] is None else _write_lone_end)(writing, rows[0])
        [row] = await writing.session.write(
            "write_recorded",
            now=writing.now,
            until=writing.terms.until,
            renew_before=writing.terms.renew_before,
            most_steps=STEPS_PER_RUN,
            steps=rows,
        )
        return dict(zip(row[0] or (), row[1] or (), strict=True))

    async def _write_all(self, writing: Writing) -> dict[int, int]:
        """The last seq before this write, by number of each group written."""
        [row] = await writing.session.write(
            "write_fast",
            now=writing.now,
            until=writing.terms.until,
            renew_before=writing.terms.renew_before,
            most_steps=STEPS_PER_RUN,
            groups=self._heads,
            begun=self._begun,
            completed=self._completed,
        )
        return dict(zip(row[0] or (), row[1] or (), strict=True))

    def _is_lone_step(self) -> bool:
        """One step of one run that begins and completes, which is what a run alone on the server usually sends."""
        if len(self._groups) != 1 or len(self._begun) != 1 or self._completed:
            return False
        row = self._begun[0]
        return row["result"] is not None and row["kind"] is None

    def _answer_recorded(self, bases: dict[int, int], now: Timestamp, outcomes: Outcomes) -> None:
        for number, (_, commands) in enumerate(self._groups, start=1):
            base = bases.get(number)
            if base is None:
                continue
            outcomes[commands[0][0]] = Recorded(base + 2, now)
            if len(commands) > 1:
                outcomes[commands[1][0]] = RunClosed(base + 3, now, RunStatus.COMPLETED)

    def _answer(self, bases: dict[int, int], now: Timestamp, outcomes: Outcomes) -> None:
        for index, number, place, what in self._answers:
            base = bases.get(number)
            if base is None:
                continue
            if what is RecordStep or what is CompleteStep:
                outcomes[index] = Recorded(base + place, now)
            elif what is BeginStep:
                outcomes[index] = Begun(base + place, now, 1)
            else:
                outcomes[index] = RunClosed(base + place, now, RunStatus.COMPLETED)


async def _write_lone_step(writing: Writing, step: _Row) -> dict[int, int]:
    """The last seq before this write, if the only group was written."""
    rows = await writing.session.write(
        "lone_step",
        **_lone_values(step),
        now=writing.now,
        until=writing.terms.until,
        renew_before=writing.terms.renew_before,
        most_steps=STEPS_PER_RUN,
    )
    return {1: rows[0]["base"]} if rows else {}


async def _write_lone_end(writing: Writing, step: _Row) -> dict[int, int]:
    """Like `_write_lone_step`, for a step that ends its run."""
    rows = await writing.session.write(
        "lone_end",
        **_lone_values(step),
        result=step["result"],
        result_meta=step["result_meta"],
        now=writing.now,
        most_steps=STEPS_PER_RUN,
    )
    return {1: rows[0]["base"]} if rows else {}


def _lone_values(step: _Row) -> _Row:
    return {
        "run_id": step["run_id"],
        "namespace": step["namespace"],
        "lease": step["lease"],
        "nonce": step["nonce"],
        "step_id": step["step_id"],
        "name": step["name"],
        "timeout_ms": step["timeout_ms"] or 0,
        "parent_step_id": step["parent_step_id"],
        "parallel_group_id": step["parallel_group_id"],
        "retry": step["retry"],
        "input": step["input"],
        "input_meta": step["input_meta"],
        "output": step["output"],
        "output_meta": step["output_meta"],
    }


def _recorded_row(group: WorkerGroup) -> _Row | None:
    """The row of a group that is one recorded step, possibly with the end of its run; None for any other."""
    run, commands = group
    step = commands[0][1]
    if not isinstance(step, RecordStep) or step.attempt != 1 or is_reserved(step.step_id) or len(commands) > 2:
        return None
    closes, result = None, None
    lease = step.lease
    if len(commands) == 2:
        end = commands[1][1]
        if not isinstance(end, CompleteRun) or end.lease != lease or end.after_step not in ("", step.step_id):
            return None
        if end.open_waits:
            return None
        closes, result = True, end.output
    payload, output = step.input, step.output
    return {
        "run_id": run.run_id,
        "namespace": run.namespace,
        "lease": lease.counter,
        "nonce": lease.nonce,
        "step_id": step.step_id,
        "name": step.name,
        "timeout_ms": step.timeout_ms or None,
        "parent_step_id": step.parent_step_id or None,
        "parallel_group_id": step.parallel_group_id or None,
        "retry": None if step.retry is None else write_policy(step.retry),
        "input": None if payload is None else payload.data,
        "input_meta": None if payload is None else write_strings(payload.metadata),
        "output": output.data,
        "output_meta": write_strings(output.metadata) if output.metadata else None,
        "closes": closes,
        "result": None if result is None else result.data,
        "result_meta": None if result is None else write_strings(result.metadata),
    }


def _begun_row(number: int, place: int, command: OpenAttempt) -> _Row:
    """A row without kind is a function. None where the completion of the same step fills in values."""
    payload = command.input
    return {
        "n": number,
        "step_id": command.step_id,
        "name": command.name,
        "kind": None,
        "begun": place,
        "result": None,
        "timeout_ms": command.timeout_ms or None,
        "parent_step_id": command.parent_step_id or None,
        "parallel_group_id": command.parallel_group_id or None,
        "retry": write_policy(command.retry),
        "input": None if payload is None else payload.data,
        "input_meta": None if payload is None else write_strings(payload.metadata),
        "output": None,
        "output_meta": None,
    }


def _output_row(number: int, place: int, command: CompleteRun) -> _Row:
    output = command.output
    return {
        "n": number,
        "step_id": OUTPUT_STEP,
        "name": OUTPUT_STEP,
        "kind": _OUTPUT,
        "begun": place,
        "result": place,
        "timeout_ms": None,
        "parent_step_id": None,
        "parallel_group_id": None,
        "retry": None,
        "input": None,
        "input_meta": None,
        "output": output.data,
        "output_meta": write_strings(output.metadata),
    }
