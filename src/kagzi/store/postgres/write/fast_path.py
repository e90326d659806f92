"""The hot path: plain commands of many runs become the arrays of one statement.

Plain is what needs no reading first: a step's first attempt begins, a step completes, both at once (one row), the run
completes. Everything here runs for every step of every run: a command costs a few appends and no objects but its
outcome.
"""

from typing import Any

import asyncpg

from ....core.limits import STEPS_PER_RUN
from ....core.run.commands import BeginStep, ClosingCommand, Command, CompleteRun, CompleteStep, StepCommand
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
    """Groups in the order of their run ids. `add` them, then `record`."""

    def __init__(self) -> None:
        self._groups: list[WorkerGroup] = []
        self._heads: list[_Row] = []  # one per group
        self._begun: list[_Row] = []  # rows to insert
        self._completed: list[_Row] = []  # rows to update
        self._answers: list[tuple[int, int, int, type[Command]]] = []  # place in the batch, group, number in it, what

    def __len__(self) -> int:
        return len(self._groups)

    def add(self, group: WorkerGroup) -> bool:
        """Whether all its commands are plain; otherwise nothing is added."""
        run, commands = group
        number = len(self._groups) + 1
        begun, completed, answers = len(self._begun), len(self._completed), len(self._answers)
        head = self._add_commands(number, commands)
        if head is None:
            del self._begun[begun:], self._completed[completed:], self._answers[answers:]
            return False
        lease = commands[0][1].lease
        rows = len(self._begun) - begun + len(self._completed) - completed
        begins, result, closes = head
        self._heads.append(
            {
                "run_id": run.run_id,
                "namespace": run.namespace,
                "lease": lease.counter,
                "nonce": lease.nonce,
                "taken": len(commands),
                "rows": rows,
                "begins": begins or None,
                "result": result or None,
                "closes": closes or None,
            }
        )
        self._groups.append(group)
        return True

    def _add_commands(
        self, number: int, commands: list[tuple[int, StepCommand | ClosingCommand]]
    ) -> tuple[int, int, bool] | None:
        """(steps begun, place of the last result, whether the run ends); None if a command is not plain."""
        lease = commands[0][1].lease
        rows: dict[str, _Row | None] = {}
        begins = result = 0
        closes = False
        for place, (index, command) in enumerate(commands, start=1):
            if closes or (place > 1 and command.lease != lease):
                return None
            if isinstance(command, CompleteStep):
                if not self._add_completion(number, place, command, rows):
                    return None
                result = place
            elif isinstance(command, BeginStep):
                step_id = command.step_id
                if command.attempt != 1 or command.once or step_id in rows or is_reserved(step_id):
                    return None
                row = rows[step_id] = _begun_row(number, place, command)
                self._begun.append(row)
                begins += 1
            elif isinstance(command, CompleteRun):
                if command.after_step and command.after_step not in rows:
                    return None  # whether that step has its result must be looked at
                self._begun.append(_output_row(number, place, command))
                closes = True
            else:
                return None
            self._answers.append((index, number, place, type(command)))
        return begins, result, closes

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
        """Write everything, fill in the outcomes, and answer the groups that were not taken: they must be looked at."""
        lone = len(self._begun) == 1 and self._is_lone_step()
        try:
            taken = await (self._write_lone_step if lone else self._write_all)(writing)
        except asyncpg.DivisionByZeroError:
            return self._groups
        if taken:
            writing.session.committed()
        self._answer(taken, writing.now, writing.outcomes)
        if len(taken) == len(self._groups):
            return []
        return [group for number, group in enumerate(self._groups, start=1) if number not in taken]

    async def _write_all(self, writing: Writing) -> dict[int, int]:
        """The last seq before this, by the numbers of the groups that were taken."""
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
        """One step of one run that begins and completes: what a run without company sends all the time."""
        row = self._begun[0]
        return len(self._groups) == 1 and not self._completed and row["result"] is not None and row["kind"] is None

    async def _write_lone_step(self, writing: Writing) -> dict[int, int]:
        run, step = self._heads[0], self._begun[0]
        rows = await writing.session.write(
            "lone_step",
            now=writing.now,
            until=writing.terms.until,
            renew_before=writing.terms.renew_before,
            run_id=run["run_id"],
            namespace=run["namespace"],
            lease=run["lease"],
            nonce=run["nonce"],
            most_steps=STEPS_PER_RUN,
            step_id=step["step_id"],
            name=step["name"],
            timeout_ms=step["timeout_ms"] or 0,
            parent_step_id=step["parent_step_id"],
            parallel_group_id=step["parallel_group_id"],
            retry=step["retry"],
            input=step["input"],
            input_meta=step["input_meta"],
            output=step["output"],
            output_meta=step["output_meta"],
        )
        return {1: rows[0]["base"]} if rows else {}

    def _answer(self, bases: dict[int, int], now: Timestamp, outcomes: Outcomes) -> None:
        for index, number, place, what in self._answers:
            base = bases.get(number)
            if base is None:
                continue
            if what is CompleteStep:
                outcomes[index] = Recorded(base + place, now)
            elif what is BeginStep:
                outcomes[index] = Begun(base + place, now, 1)
            else:
                outcomes[index] = RunClosed(base + place, now, RunStatus.COMPLETED)


def _begun_row(number: int, place: int, command: BeginStep) -> _Row:
    """Without kind: a function. What a completion of the same step fills in is None."""
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
