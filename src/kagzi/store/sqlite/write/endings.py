"""The end of a run, and whom it concerns: the steps that wait for it, and the children it leaves behind."""

from ....core.error_details import ErrorDetail, decode_detail
from ....core.records import Lease, RunEnd, RunKey
from ....core.run.children import child_error
from ....core.run.outcomes import Stirred
from ....core.states import CODE_OF_RUN_STATUS, RunCode, RunStatus
from ....core.times import Timestamp
from ...rows import write_error
from ..connection.connection import Row
from .fast_path import Writer


class Told:
    """What ends of runs came to for others."""

    def __init__(self) -> None:
        self.stirred: tuple[Stirred, ...] = ()
        self.has_children = False
        self.replaced = ""  # the run that a start took the place of


def end(  # noqa: PLR0917  the verb, its object and whom to tell
    writer: Writer, run: RunKey, status: RunStatus, error: ErrorDetail, now: Timestamp, told: Told
) -> RunEnd:
    """End an open run without its worker."""
    given = {"run_id": run.run_id, "status": CODE_OF_RUN_STATUS[status], "error": write_error(error), "now": now}
    writer.database.run("end_run", given)
    writer.fences.forget(run.run_id)
    tell_end(writer, run.run_id, now, told)
    return RunEnd(run=run, status=status, error=error)


def tell_end(writer: Writer, run_id: str, now: Timestamp, told: Told | None = None) -> Told:
    """A run has just ended: steps that wait for it get its result, runs that were to begin after it begin, and its children are
    to be looked after. What was gathered about other runs must be written."""
    told = told or Told()
    row = writer.database.row("ended_run", (run_id,))
    assert row is not None  # it has just ended
    namespace, _, _, watched, has_children, parent_run_id, parent_step_id = row
    if has_children:
        writer.database.run("cascade_due", (run_id,))
        told.has_children = True
    if watched:
        waiting: list[Row] = writer.database.rows("links_of", (namespace, run_id))
        if waiting:
            writer.database.run("unlink", (namespace, run_id))
        if parent_run_id is not None:
            waiting.append((parent_run_id, parent_step_id))
        for parent, step_id in sorted(waiting):
            stirred = give_result(writer, RunKey(namespace, parent), step_id, run_id, now)
            if stirred is not None:
                told.stirred += (stirred,)
        given = {"run_id": run_id, "namespace": namespace, "now": now}
        for blocked, workflow_type, status in writer.database.rows("unblock_runs", given):
            if status == RunCode.PENDING:
                told.stirred += (Stirred(RunKey(namespace, blocked), workflow_type, woken=True),)
    return told


def give_result(writer: Writer, parent: RunKey, step_id: str, child_run_id: str, now: Timestamp) -> Stirred | None:
    """The step gets the result of a child that has ended, if it still waits for it."""
    row = writer.database.row("waiting_parent", (parent.run_id, parent.namespace, step_id, child_run_id))
    child = writer.database.row("ended_child", (child_run_id, parent.namespace))
    if row is None or child is None:
        return None
    code, text = child
    error = None if text is None else write_error(child_error(child_run_id, code, decode_detail(text)))
    seq, stirred = stir(writer, parent, row, now)
    given = {"run_id": parent.run_id, "namespace": parent.namespace, "step_id": step_id, "child_run_id": child_run_id}
    writer.database.run("give_child_result", given | {"error": error, "seq": seq, "now": now})
    return stirred


def stir(writer: Writer, run: RunKey, row: Row, now: Timestamp) -> tuple[int, Stirred | None]:
    """A result came for an open run from outside: its seq, and who has to be told. The row is (workflow_type, status, lease,
    nonce, worker_id)."""
    workflow_type, code, lease, nonce, worker_id = row
    found = writer.database.row("stir_run", {"run_id": run.run_id, "now": now})
    assert found is not None  # the caller has just seen it
    writer.fences.forget(run.run_id)
    if code in (RunCode.SLEEPING, RunCode.PENDING):
        return found[0], Stirred(run, workflow_type, woken=True)
    if code == RunCode.RUNNING:
        return found[0], Stirred(run, workflow_type, woken=False, holder=Lease(lease, nonce), worker_id=worker_id)
    return found[0], None
