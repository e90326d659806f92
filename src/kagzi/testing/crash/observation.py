"""Records what a workflow and the SDK do during `crash_everywhere`.

The parts of an execution that every call passes through are replaced for that time and restored afterwards, so programs
outside of tests pay nothing. For each execution it records which calls the code made, where, and with which arguments,
and which bodies ran. It reports each boundary to the director before the run continues.
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
_GROUPING = "branching.py"  # parallel, map and race: only their branches count as calls


@dataclass(slots=True)
class Call:
    """A call of a ctx method by workflow code. `arguments` is JSON, for comparison."""

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
    """One execution of a workflow function, from its start."""

    run: str
    run_id: str
    number: int
    lines: dict[str, Line] = field(default_factory=dict[str, Line])
    calls: dict[str, Call] = field(default_factory=dict[str, Call])
    made: dict[str, Scope] = field(default_factory=dict[str, Scope])  # calls that are not awaited yet
    bodies: list[str] = field(default_factory=list[str])
    left_open: list[str] = field(default_factory=list[str])  # steps that were open when the function returned
    raised: "Raised | None" = None
    returned: bool = False

    def line_of(self, step_id: str) -> Line | None:
        """The line of the call; for a step of `ctx.map`, the line of the map."""
        return self.lines.get(step_id) or self.lines.get(step_id.rpartition("[")[0])


class Director(Protocol):
    """Decides what happens at a boundary."""

    def at(self, boundary: Boundary, *, at_claim: bool) -> None:
        """A run has reached this boundary for the first time. Its worker may be killed here; with `at_claim`, in the
        next iteration of the event loop, before the run begins."""
        ...

    async def body_ended(self, boundary: Boundary, run: RunExecution, body: StepBody) -> None:
        """The body of a step has returned. The step waits until this method returns."""
        ...

    def began(self, run: RunExecution, execution: Execution) -> None:
        """The function is about to be called."""
        ...

    def waits_for(self, signal: str, run: RunExecution, step_id: str) -> None:
        """The run has recorded that it waits for this signal."""
        ...

    def diverges(self, run: RunExecution, error: Diverged) -> None:
        """The code does not match the history."""
        ...


class Observer:
    """Observes one run of the workflow and its children. `workflow_id` is the id of the run itself."""

    def __init__(self, workflow_id: str, director: Director) -> None:
        self._workflow_id = workflow_id
        self._director = director
        self.names: dict[str, str] = {}  # of runs, by run id
        self._used: Counter[str] = Counter()
        self._passed: set[Boundary] = set()
        self._execution_of: dict[int, Execution] = {}
        self._run_of_ledger: dict[int, RunExecution] = {}
        self._running: list[RunExecution] = []  # referenced, so that no id() is reused
        self.executions: list[Execution] = []
        self.boundaries: list[Boundary] = []
        self.bodies_running = self.threads_running = 0
        self.ran_again: list[tuple[Execution, str]] = []
        self.left_at: dict[CodeType, int] = {}  # the line at which each traced function last returned
        self.returned_at: Line | None = None

    def name_of(self, run: RunExecution) -> str:
        """A name of the run that is the same in every run of the workflow; empty for the run itself."""
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

    # --- called by the SDK's hooks ------------------------------------------------------------------------------------

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
        if not body.options.once:  # a step with `once` reports the loss of its worker itself
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
        """Returns whether the boundary is new."""
        if boundary in self._passed:
            return False
        self._passed.add(boundary)
        self.boundaries.append(boundary)
        return True


def _line_of(error: BaseException) -> Line | None:
    """The last line of workflow code in the traceback. The frames after it belong to the call that it awaited."""
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
    """The arguments of the call that this frame implements, as JSON; and the name of the signal that it waits for."""
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
