"""Children: runs that are steps of another run, and what happens to them when it ends."""

import msgspec

from ....core.effects import Effects, merge
from ....core.records import RunKey
from ....core.run import refusals
from ....core.run.commands import StartChild, StartRun
from ....core.run.outcomes import Refused
from ....core.run.state import Relative, Relatives, RunState, StepState
from ....core.states import CODE_OF_ON_CLOSE, RunCode
from ....core.times import Timestamp
from ..run.control import cancel_run
from .admission import refuse
from .endings import give_result
from .fast_path import WritePlan, Writer
from .starts import insert_child


class _Admission:
    """Admission to types that refuse runs when they are full."""

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan

    def refuse(self, start: StartRun, now: Timestamp) -> Refused | None:
        return refuse(self._plan, start)


def without_assignment(plan: WritePlan, command: StartChild) -> StartChild:
    """Drops the assignment in a type or namespace with limits: there only a claim may lease runs, because it counts."""
    start = command.start
    if start.assignment is None:
        return command
    namespace = plan.writer.namespaces.ensure(start.run.namespace, plan.now)
    if namespace.running_runs_limit is None and plan.writer.types.limits(*_type_of(start)) is None:
        return command
    return msgspec.structs.replace(command, start=msgspec.structs.replace(start, assignment=None))


def find_relatives(plan: WritePlan, command: StartChild, step: StepState | None) -> Relatives:
    """What the start of a child refers to: the child of its step, if any; else the runs with its ids, and the quota."""
    plan.flush()  # a relative may be in the plan
    relatives, start, run_id = Relatives(), command.start, command.run.run_id
    if step is not None and (step.child_run_id is not None or step.has_result):
        row = plan.database.row("run_with_id", (command.run.namespace, step.child_run_id))
        if row is not None:
            relatives.recorded[run_id, command.step_id] = Relative(row[0], row[2], row[3])
        return relatives
    ids = {"namespace": start.run.namespace, "request_id": start.request_id, "workflow_id": start.workflow_id}
    row = plan.database.row("find_relatives", ids)
    assert row is not None  # the statement always returns a row
    if row[0] is not None:
        relatives.by_request[start.request_id] = Relative(*row[:3])
        if row[3:5] != (run_id, command.step_id):
            relatives.foreign.add((run_id, command.step_id))
    if row[5] is not None:
        relatives.active[start.workflow_id] = Relative(*row[5:])
    relatives.admission = _Admission(plan)
    limit = plan.writer.namespaces.ensure(start.run.namespace, plan.now).open_runs_limit
    if limit is not None:
        counted = plan.database.row("count_open_runs", (start.run.namespace, limit))
        relatives.limit, relatives.quota = limit, limit - (counted[0] if counted else 0)
    return relatives


def create_children(plan: WritePlan, run: RunState) -> None:
    """Insert the decided child, or link to the existing run."""
    relatives, database = run.relatives, plan.database
    assert relatives is not None  # they were needed for the decision
    for command in relatives.created:
        database.run("has_children", (run.run.run_id,))
        child_run_id = command.start.run.run_id
        insert_child(plan, command.start)
        database.run("adopt_run", (run.run.run_id, command.step_id, CODE_OF_ON_CLOSE[command.on_close], child_run_id))
        if (leased := plan.fences.get(child_run_id)) is not None:
            leased.related = 1
    for child_run_id, run_id, step_id, namespace in relatives.links:
        if relatives.recorded[run_id, step_id].status in (RunCode.COMPLETED, RunCode.FAILED, RunCode.CANCELLED):
            plan.flush()
            give_result(plan.writer, run.run, step_id, child_run_id, plan.now)
            continue
        database.run("watch_run", (child_run_id, namespace))
        database.run("link_child", (namespace, child_run_id, run_id, step_id))
        plan.fences.forget(child_run_id)


def _type_of(start: StartRun) -> tuple[str, str]:
    return start.run.namespace, start.workflow_type


# --- cascade ----------------------------------------------------------------------------------------------------------


def cascade(writer: Writer, now: Timestamp, cancel_by: Timestamp, limit: int) -> tuple[bool, Effects]:
    """See Store.cascade. Children of the runs cancelled here are left to the next call."""
    effects: list[Effects] = []
    for run_id, namespace, ended, cancelling in writer.database.rows("cascades", (limit,)):
        left = limit - len(effects)
        if left <= 0:
            break
        parent = {"namespace": namespace, "run_id": run_id, "all": ended or cancelling, "limit": left}
        children = writer.database.rows("children_to_cancel", parent)
        if len(children) < left:
            writer.database.run("cascade_done", (run_id,))
        reason = refusals.cascade_reason(run_id)
        for (child,) in children:
            effects.append(cancel_run(writer, RunKey(namespace, child), reason, now, cancel_by)[1])
    return bool(writer.database.rows("cascades", (1,))), merge(effects)
