"""Children: runs that are steps of another run, and what becomes of them when it ends."""

from typing import Any

import msgspec

from ...core import refusals
from ...core.commands import StartChild
from ...core.error_details import decode_detail
from ...core.outcomes import ChildStarted, Outcome, Refused, Started, StepFailed
from ...core.records import RunKey
from ...core.states import RUN_STATUS_OF_CODE, KindCode, StepCode
from ...core.times import Timestamp
from ..protocol import Cancelled, Cascaded
from .attempts import StepState, check_new_step, find_step, known
from .connection import Row
from .ends import give_result
from .fences import Fence
from .rows import write_error
from .runs import cancel_run
from .signals import insert_wait
from .starts import create_child
from .wave import Wave, Writer

_ON_CLOSE = {"cancel": 1, "abandon": 2}


def start_child(wave: Wave, command: StartChild, fence: Fence) -> Outcome:
    step = find_step(wave, fence.run_id, command.step_id)
    if step is not None:
        if step.kind != KindCode.CHILD:
            return refusals.other_kind(command.step_id, step.kind, KindCode.CHILD)
        if step.has_result or step.child_run_id is not None:
            return _as_it_stands(wave, command, step)
    if (refusal := check_new_step(wave, fence, command.step_id, cleanup=command.cleanup)) is not None:
        return refusal
    wave.flush()  # the child may be wanted by others of this wave, or be one of them
    start = command.start
    request_id = start.request_id or f"{fence.run_id}/{command.step_id}"
    start = msgspec.structs.replace(start, run=RunKey(fence.namespace, start.run.run_id), request_id=request_id)
    made = wave.database.row("child_of_request", (fence.namespace, request_id))
    if made is not None:
        return _made_before(wave, command, fence, made)
    taken = wave.database.row("active_run", (fence.namespace, start.workflow_id))
    if taken is not None:
        if not command.attach or taken[2] != start.workflow_type or taken[0] == fence.run_id:
            return _conflict(wave, command, fence, taken[0], taken[2])
        wave.database.run("watch_run", (taken[0], fence.namespace))
        wave.database.run("link_child", (fence.namespace, taken[0], fence.run_id, command.step_id))
        wave.fences.forget(taken[0])
        return _wait_for(wave, command, fence, taken[0], taken[3])
    started = create_child(wave, start)
    if isinstance(started, Refused):
        return started
    return _adopt(wave, command, fence, started)


def _made_before(wave: Wave, command: StartChild, fence: Fence, made: Row) -> Outcome:
    """The request id is known, though the step is not: the child is this step's own, or somebody else's."""
    run_id, status, *parent = made
    if parent != [fence.run_id, command.step_id]:
        return refusals.foreign_request(command.start.request_id, run_id)
    started = _wait_for(wave, command, fence, run_id, status)
    if not started.status.ended:
        return started
    wave.flush()
    give_result(wave.writer, command.run, command.step_id, run_id, wave.now)
    return known(wave, fence.run_id, command.step_id)


def _adopt(wave: Wave, command: StartChild, fence: Fence, started: Started) -> ChildStarted:
    child_run_id = started.run_id
    wave.database.run("adopt_run", (fence.run_id, command.step_id, _ON_CLOSE[command.on_close], child_run_id))
    if (born_leased := wave.fences.get(child_run_id)) is not None:
        born_leased.related = 1
    wave.database.run("has_children", (fence.run_id,))
    fence.related = 1
    seq = _insert(wave, command, fence, {"child_run_id": child_run_id})
    return ChildStarted(seq, wave.now, child_run_id, created=True, status=started.status, ousted=started.ousted)


def _wait_for(wave: Wave, command: StartChild, fence: Fence, child_run_id: str, status: int) -> ChildStarted:
    seq = _insert(wave, command, fence, {"child_run_id": child_run_id})
    return ChildStarted(seq, wave.now, child_run_id, created=False, status=RUN_STATUS_OF_CODE[status])


def _conflict(wave: Wave, command: StartChild, fence: Fence, run_id: str, workflow_type: str) -> StepFailed:
    """The id is taken: that is the step's result."""
    start, itself = command.start, run_id == fence.run_id
    error = refusals.child_conflict(
        start.workflow_id, run_id, found=workflow_type, asked=start.workflow_type, itself=itself
    )
    failed = {"status": int(StepCode.FAILED), "error": write_error(error), "finished_at": wave.now}
    return StepFailed(_insert(wave, command, fence, failed), wave.now, 1, error)


def _insert(wave: Wave, command: StartChild, fence: Fence, state: dict[str, Any]) -> int:
    failed = "error" in state
    seq = fence.next_result() if failed else fence.next_seq()
    begun = find_step(wave, fence.run_id, command.step_id)
    if begun is not None:  # it keeps its number: replay meets it in its place
        _restart(wave, command, fence, state | {"seq": seq if failed else 0})
        return seq if failed else begun.begun_seq
    head = {"step_id": command.step_id, "name": command.name, "kind": int(KindCode.CHILD), "begun_seq": seq}
    place = {"parent_step_id": command.parent_step_id, "parallel_group_id": command.parallel_group_id}
    insert_wait(wave, fence, head | place | state | {"seq": seq if failed else 0})
    return seq


def _restart(wave: Wave, command: StartChild, fence: Fence, state: dict[str, Any]) -> None:
    empty = {"child_run_id": None, "status": int(StepCode.RUNNING), "error": None, "finished_at": None}
    writer = {"lease": fence.lease, "nonce": fence.nonce, "worker_id": fence.worker_id}
    place = {"run_id": fence.run_id, "step_id": command.step_id, "now": wave.now}
    wave.database.run("restart_child", empty | writer | place | state)
    wave.touched[fence.run_id] = fence


def repeat_start(wave: Wave, command: StartChild) -> Outcome | None:
    """What was recorded for this step under this very lease."""
    step = find_step(wave, command.run.run_id, command.step_id)
    if step is None or step.kind != KindCode.CHILD or not step.is_of(command.lease):
        return None
    return _as_it_stands(wave, command, step)


def _as_it_stands(wave: Wave, command: StartChild, step: StepState) -> Outcome:
    if step.child_run_id is None and step.error is not None:
        return StepFailed(step.seq, step.finished_at or 0, step.attempt, decode_detail(step.error))
    child_run_id = step.child_run_id or ""
    row = wave.database.row("run_with_id", (command.run.namespace, child_run_id))
    if row is None:  # removed since it ended: its result is in the step
        return known(wave, command.run.run_id, command.step_id)
    status = RUN_STATUS_OF_CODE[row[3]]
    return ChildStarted(step.begun_seq, step.started_at or 0, child_run_id, created=False, status=status)


# --- cascade ----------------------------------------------------------------------------------------------------------


def cascade(writer: Writer, now: Timestamp, cancel_by: Timestamp, limit: int) -> Cascaded:
    """See Store.cascade. Children of those cancelled here are for the next call."""
    told: list[Cancelled] = []
    for run_id, namespace, ended, cancelling in writer.database.rows("cascades", (limit,)):
        left = limit - len(told)
        if left <= 0:
            break
        parent = RunKey(namespace, run_id)
        told += _cancel_children(writer, parent, bool(ended or cancelling), now, cancel_by, left)
    return Cascaded(tuple(told), more=bool(writer.database.rows("cascades", (1,))))


def _cancel_children(  # noqa: PLR0917  the verb's arguments for one parent
    writer: Writer,
    parent: RunKey,
    goes: bool,
    now: Timestamp,
    cancel_by: Timestamp,
    limit: int,
) -> list[Cancelled]:
    given = {"namespace": parent.namespace, "run_id": parent.run_id, "all": goes, "limit": limit}
    children = writer.database.rows("children_to_cancel", given)
    if len(children) < limit:
        writer.database.run("cascade_done", (parent.run_id,))
    told: list[Cancelled] = []
    reason = refusals.cascade_reason(parent.run_id)
    for (run_id,) in children:
        child = RunKey(parent.namespace, run_id)
        cancelled = cancel_run(writer, child, reason, now, cancel_by)
        if cancelled is not None:
            told.append(msgspec.structs.replace(cancelled, run=child, reason=reason))
    return told
