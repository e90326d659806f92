"""What the SDK does with a workflow while `crash_everywhere` has it in hand.

The parts of an execution that every call passes through are replaced for that time, and put back afterwards: nothing
of it costs anything in a program that does not test. Of each execution it is noted which calls its code made, where,
and with which arguments; which bodies ran; and whoever drives the run is told of each boundary before anything goes on.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, NamedTuple, Protocol

import msgspec

from ...core.errors import Diverged
from ...sdk.execution.calls.arguments import write_arguments
from ...sdk.execution.calls.bodies import StepBody
from ...sdk.execution.ledger import CHILD, SIGNAL, SLEEP, WITHDRAWN, Ledger
from ...sdk.execution.run_execution import RunExecution
from ...sdk.execution.scopes import Scope
from ...sdk.execution.state import Suspended
from ...sdk.workflow.current import place
from .boundaries import Boundary, Moment, kind_of
from .sources import Line, culprit_of, is_async, line_at, owner_of

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_GROUPING = "branching.py"  # parallel, map and race: their branches are calls, they are not


@dataclass(slots=True)
class Call:
    """A call of a ctx method by workflow code. `arguments`: as JSON, for comparison."""

    step_id: str
    kind: str
    line: Line | None
    arguments: str | None = None
    signal: str = ""
    in_race: bool = False


class Raised(NamedTuple):
    """An error that left the workflow function, and where."""

    text: str
    line: Line | None


@dataclass(slots=True)
class Execution:
    """One execution of a workflow function, from its beginning."""

    run: str
    run_id: str
    number: int
    lines: dict[str, Line] = field(default_factory=dict[str, Line])
    calls: dict[str, Call] = field(default_factory=dict[str, Call])
    made: dict[str, Scope] = field(default_factory=dict[str, Scope])  # calls that were not awaited yet
    bodies: list[str] = field(default_factory=list[str])
    left_open: list[str] = field(default_factory=list[str])  # when the function returned
    raised: "Raised | None" = None
    returned: bool = False

    def line_of(self, step_id: str) -> Line | None:
        """Where it is called; for a step of `ctx.map`, where that is."""
        return self.lines.get(step_id) or self.lines.get(step_id.rpartition("[")[0])


class Director(Protocol):
    """Decides what happens at a boundary."""

    def at(self, boundary: Boundary, *, at_claim: bool) -> None:
        """A run is at this boundary, for the first time. Its worker may be killed here; `at_claim`: in the next pass of
        the loop, which is before the run has begun."""
        ...

    async def body_ended(self, boundary: Boundary, run: RunExecution, body: StepBody) -> None:
        """The body of a step has returned. It goes on when this does."""
        ...

    def began(self, run: RunExecution, execution: Execution) -> None:
        """The function is about to be called."""
        ...

    def waits_for(self, signal: str, run: RunExecution, step_id: str) -> None:
        """The run has recorded that it waits for this signal."""
        ...

    def diverges(self, run: RunExecution, error: Diverged) -> None:
        """The code does not fit what is recorded."""
        ...


class Observer:
    """Of one run of the workflow, its children included. `workflow_id` is that of the run itself."""

    def __init__(self, workflow_id: str, director: Director) -> None:
        self._workflow_id = workflow_id
        self._director = director
        self.names: dict[str, str] = {}  # of runs, by id
        self._used: Counter[str] = Counter()
        self._passed: set[Boundary] = set()
        self._execution_of: dict[int, Execution] = {}
        self._run_of_ledger: dict[int, RunExecution] = {}
        self._running: list[RunExecution] = []  # kept, so that no number is given to another one
        self.executions: list[Execution] = []
        self.boundaries: list[Boundary] = []
        self.bodies_running = self.threads_running = 0
        self.ran_again: list[tuple[Execution, str]] = []
        self.left_at: dict[CodeType, int] = {}  # of functions that are traced: the line at which each was left last
        self.returned_at: Line | None = None

    def name_of(self, run: RunExecution) -> str:
        """Which run it is, in the same words in every run of the workflow; empty for the run itself."""
        name = self.names.get(run.run_id)
        if name is None:
            task = run.task
            base = "" if task.workflow_id == self._workflow_id else task.workflow_type
            if base:
                digest = hashlib.blake2b(task.input.data, digest_size=4).hexdigest()
                base = f"{base} ({digest})"
            self._used[base] += 1
            name = base if self._used[base] == 1 else f"{base}#{self._used[base]}"
            self.names[run.run_id] = name
        return name

    def execution(self, run: RunExecution) -> Execution:
        return self._execution_of[id(run)]

    # --- what the SDK does --------------------------------------------------------------------------------------------

    def began(self, run: RunExecution) -> None:
        name = self.name_of(run)
        number = 1 + sum(each.run_id == run.run_id for each in self.executions)
        execution = Execution(name, run.run_id, number)
        self._running.append(run)
        self._execution_of[id(run)] = execution
        self._run_of_ledger[id(run.ledger)] = run
        self.executions.append(execution)
        self._director.began(run, execution)
        for step in run.task.history.steps:
            if step.seq:
                self._pass(run, step.step_id, kind_of(step.kind), "after", at_claim=True)

    def made(self, scope: Scope, step_id: str, frame: FrameType) -> None:
        execution = self._execution_of.get(id(scope.run))
        if execution is None:
            return
        culprit = culprit_of(frame.f_back)
        if culprit is not None:
            execution.lines[step_id] = culprit.line
        if not frame.f_code.co_filename.endswith(_GROUPING):
            execution.made[step_id] = scope

    def awaited(self, run: RunExecution, step_id: str, kind: int, frame: FrameType, *, recorded: bool) -> None:
        execution, name = self._execution_of.get(id(run)), kind_of(kind)
        if execution is None or name is None:
            return
        execution.made.pop(step_id, None)
        arguments, signal = _arguments(frame)
        scope = place.get()
        in_race = type(scope) is Scope and bool(scope.race)
        execution.calls[step_id] = Call(step_id, name, execution.line_of(step_id), arguments, signal, in_race)
        if not recorded:
            self._pass(run, step_id, name, "before")

    def waits(self, run: RunExecution, step_id: str, kind: int) -> None:
        if kind in (SLEEP, SIGNAL, CHILD):
            self._pass(run, step_id, kind_of(kind), "in")
            call = self.execution(run).calls.get(step_id)
            if call is not None and call.signal:
                self._director.waits_for(call.signal, run, step_id)

    def knows(self, ledger: Ledger, step_id: str) -> None:
        run = self._run_of_ledger.get(id(ledger))
        if run is not None:
            call = self.execution(run).calls.get(step_id)
            self._pass(run, step_id, call.kind if call is not None else None, "after")

    async def body(self, run: RunExecution, body: StepBody, perform: Callable[[], Any]) -> Any:
        execution, boundary = self.execution(run), Boundary(self.name_of(run), "step", body.step_id, "in")
        execution.bodies.append(body.step_id)
        if boundary._replace(moment="after") in self._passed:
            self.ran_again.append((execution, body.step_id))
        self.bodies_running += 1
        self.threads_running += not body.is_async
        try:
            outcome = await perform()
        finally:
            self.bodies_running -= 1
            self.threads_running -= not body.is_async
        if not body.options.once:  # which says itself what it is if its worker is lost meanwhile
            self._note(boundary)
            await self._director.body_ended(boundary, run, body)
        return outcome

    def ended(self, run: RunExecution, error: BaseException | None) -> None:
        """The function has returned, or raised."""
        execution = self._execution_of.get(id(run))
        if execution is None or isinstance(error, Suspended):  # it was torn down
            return
        if error is not None:
            execution.raised = Raised(f"{type(error).__name__}: {error}".rstrip(": "), _line_of(error))
            return
        execution.returned = True
        code: CodeType | None = getattr(run.workflow.fn, "__code__", None)
        if code is not None and code in self.left_at and not execution.run:
            self.returned_at = line_at(code.co_filename, self.left_at[code])
        execution.left_open = [step_id for step_id in run.ledger.open if step_id not in run.ledger.closed]

    def diverges(self, run: RunExecution, error: Diverged) -> None:
        self._director.diverges(run, error)

    def _pass(
        self, run: RunExecution, step_id: str, kind: str | None, moment: Moment, *, at_claim: bool = False
    ) -> None:
        if kind is None or step_id.endswith(WITHDRAWN):
            return
        boundary = Boundary(self.name_of(run), kind, step_id, moment)
        if self._note(boundary):
            self._director.at(boundary, at_claim=at_claim)

    def _note(self, boundary: Boundary) -> bool:
        """Whether it is passed for the first time."""
        if boundary in self._passed:
            return False
        self._passed.add(boundary)
        self.boundaries.append(boundary)
        return True


def _line_of(error: BaseException) -> Line | None:
    """Of the workflow code that it left last. Behind that follows what the code was waiting for."""
    line: Line | None = None
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if owner_of(code.co_filename) != "user":
            if line is not None:
                break
        elif is_async(code):
            line = line_at(code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    return line


# --- arguments --------------------------------------------------------------------------------------------------------


def _arguments(frame: FrameType) -> tuple[str | None, str]:
    """Of the call whose implementation this frame is, as JSON; and the name of the signal that it waits for."""
    local = frame.f_locals
    match frame.f_code.co_name:
        case "execute_step":
            payload = write_arguments(local["fn"], local["args"], local["kwargs"])
            text = "{}" if payload is None else payload.data.decode(errors="replace")
            return _ADDRESS.sub("", text), ""
        case "execute_sleep":
            return _json({"until_us": local["until_us"]} if local["until_us"] else {"us": local["duration_us"]}), ""
        case "execute_wait_for":
            name = local["signal"].name
            return _json({"signal": name, "timeout_us": local["timeout_us"]}), name
        case "execute_child" | "execute_start_child":
            options = local["options"]
            data = b"" if options.input is None else options.input.data
            return _json({"id": options.id, "input": data.decode(errors="replace")}), ""
        case _:
            return None, ""


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
