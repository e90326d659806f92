"""Ends of runs and the runs they affect: the steps that wait for an end, and the children."""

from ....core.effects import CHILDREN_DUE, NO_EFFECTS, Effects, merge
from ....core.error_details import Child, ErrorDetail, decode_detail
from ....core.records import Lease, RunKey
from ....core.run.children import child_error
from ....core.run.control import RunHead, end_effects, result_effects
from ....core.states import CODE_OF_RUN_STATUS, RunStatus
from ....core.times import Timestamp
from ...rows import write_error
from ..connection.connection import Row
from .fast_path import Writer
from .handing_on import hand_on


def end(writer: Writer, head: RunHead, status: RunStatus, error: ErrorDetail, now: Timestamp) -> Effects:
    """End an open run without its worker, and hand on its unread signals."""
    return merge([end_for_another(writer, head, status, error, now), hand_on(writer, head.run.run_id, now)])


def end_for_another(writer: Writer, head: RunHead, status: RunStatus, error: ErrorDetail, now: Timestamp) -> Effects:
    """End an open run without its worker. Its unread signals are left to the caller, who starts the next run."""
    run_id = head.run.run_id
    row = {"run_id": run_id, "status": CODE_OF_RUN_STATUS[status], "error": write_error(error), "now": now}
    writer.database.run("end_run", row)
    writer.fences.forget(run_id)
    return merge([end_effects(head, status, error), notify_parents(writer, run_id, now)])


def notify_parents(writer: Writer, run_id: str, now: Timestamp) -> Effects:
    """A run has just ended: deliver its result to the steps that wait for it, let runs that waited for it begin, and
    mark its children for the cascade. The plan must be flushed for other runs."""
    row = writer.database.row("ended_run", (run_id,))
    assert row is not None  # the run has just ended
    namespace, _, _, watched, has_children, parent_run_id, parent_step_id = row
    effects = [NO_EFFECTS]
    if has_children:
        writer.database.run("cascade_due", (run_id,))
        effects.append(CHILDREN_DUE)
    if watched:
        waiting: list[Row] = writer.database.rows("links_of", (namespace, run_id))
        if waiting:
            writer.database.run("unlink", (namespace, run_id))
        if parent_run_id is not None:
            waiting.append((parent_run_id, parent_step_id))
        effects += [
            give_result(writer, RunKey(namespace, parent), step, run_id, now) for parent, step in sorted(waiting)
        ]
        blocked = writer.database.rows("unblock_runs", {"run_id": run_id, "namespace": namespace, "now": now})
        effects += [result_effects(run_head(row)) for row in blocked]
    return merge(effects)


def give_result(writer: Writer, parent: RunKey, step_id: str, child_run_id: str, now: Timestamp) -> Effects:
    """Deliver the result of an ended child to the step, if it still waits for it."""
    row = writer.database.row("waiting_parent", (parent.run_id, parent.namespace, step_id, child_run_id))
    child = writer.database.row("ended_child", (child_run_id, parent.namespace))
    if row is None or child is None:
        return NO_EFFECTS
    code, text, workflow, workflow_id = child
    about = Child(child_run_id, workflow, workflow_id)
    error = None if text is None else write_error(child_error(about, code, decode_detail(text)))
    result = {"run_id": parent.run_id, "namespace": parent.namespace, "step_id": step_id, "child_run_id": child_run_id}
    seq = wake(writer, parent, now)
    writer.database.run("give_child_result", result | {"error": error, "seq": seq, "now": now})
    return result_effects(run_head(row))


def wake(writer: Writer, run: RunKey, now: Timestamp, *, waits: int = 0) -> int:
    """Wake an open run for an external result; returns its seq. `waits`: change in the steps that wait for signals."""
    row = writer.database.row("wake_run", {"run_id": run.run_id, "now": now, "waits": waits})
    assert row is not None  # the caller has just read it
    writer.fences.forget(run.run_id)
    seq: int = row[0]
    return seq


def run_head(row: Row) -> RunHead:
    """From (run_id, namespace, workflow_type, status, lease, nonce, worker_id), optionally has_children."""
    run_id, namespace, workflow_type, status, lease, nonce, worker_id, *rest = row
    return RunHead(
        RunKey(namespace, run_id), workflow_type, status, Lease(lease, nonce), worker_id, bool(rest and rest[0])
    )


def note_pause(writer: Writer, run_id: str, what: str, now: Timestamp, note: ErrorDetail) -> None:
    """Record in the history that the run was paused or resumed."""
    numbered = writer.database.row("number_wake", (run_id,))
    assert numbered is not None  # the run was read just before, in this transaction
    values = {"run_id": run_id, "what": what, "seq": numbered[0], "now": now, "note": write_error(note)}
    writer.database.run("note_pause", values)
    writer.fences.forget(run_id)
