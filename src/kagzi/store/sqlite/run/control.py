"""What people, and new builds, do to runs: pause, resume, terminate."""

from collections.abc import Sequence

from ....core.records import Held, Lease, RunKey, Served
from ....core.run.control import after_pause, after_terminate, can_resume, terminated_error
from ....core.states import RUN_STATUS_OF_CODE, RunCode, RunStatus
from ....core.times import Timestamp
from ...protocol import Changed, TypeKey
from ...rows import write_json
from ...text_validation import require_storable
from ..connection.connection import Row
from ..write.endings import Told, end
from ..write.fast_path import Writer


def _find(writer: Writer, run: RunKey) -> Row | None:
    row = writer.database.row("run_to_change", (run.run_id,))
    return None if row is None or row[0] != run.namespace else row


def _held(run: RunKey, row: Row) -> Held | None:
    return Held(run, Lease(row[3], row[4])) if row[2] == RunCode.RUNNING else None


def pause_run(writer: Writer, run: RunKey, reason: str, now: Timestamp) -> Changed | None:
    """See Store.pause_run. A run that is being cancelled goes on to its end."""
    require_storable(reason=reason)
    if (row := _find(writer, run)) is None:
        return None
    _, workflow_type, code, _, _, worker_id, pause_requested, cancel_requested_at = row
    cancel_requested = cancel_requested_at is not None
    then = after_pause(code, pause_requested=bool(pause_requested), cancel_requested=cancel_requested)
    if then is None:
        return Changed(RUN_STATUS_OF_CODE[code], workflow_type, changed=False)
    writer.database.run("pause_run", {"run_id": run.run_id, "reason": reason})
    writer.fences.forget(run.run_id)
    status = RUN_STATUS_OF_CODE[then]
    return Changed(status, workflow_type, changed=True, holder=_held(run, row), worker_id=worker_id)


def resume_run(writer: Writer, run: RunKey, now: Timestamp) -> Changed | None:
    """See Store.resume_run."""
    if (row := _find(writer, run)) is None:
        return None
    _, workflow_type, code, _, _, _, pause_requested, _ = row
    status = RUN_STATUS_OF_CODE[code]
    if not can_resume(code, pause_requested=bool(pause_requested)):
        return Changed(status, workflow_type, changed=False)
    if status is RunStatus.PAUSED:
        resumed = writer.database.row("resume_run", {"run_id": run.run_id, "now": now})
        assert resumed is not None  # it was PAUSED a moment ago, in this transaction
        return Changed(RUN_STATUS_OF_CODE[resumed[0]], workflow_type, changed=True)
    writer.database.run("take_back_pause", (run.run_id,))
    writer.fences.forget(run.run_id)
    return Changed(status, workflow_type, changed=True)


def terminate_run(writer: Writer, run: RunKey, reason: str, now: Timestamp) -> Changed | None:
    """See Store.terminate_run."""
    require_storable(reason=reason)
    if (row := _find(writer, run)) is None:
        return None
    if after_terminate(row[2]) is None:
        return Changed(RUN_STATUS_OF_CODE[row[2]], row[1], changed=False)
    error = terminated_error(reason)
    told = Told()
    end(writer, run, RunStatus.CANCELLED, error, now, told)
    return Changed(
        RunStatus.CANCELLED,
        row[1],
        changed=True,
        holder=_held(run, row),
        worker_id=row[5],
        stirred=told.stirred,
        has_children=told.has_children,
        error=error,
    )


# --- divergence -------------------------------------------------------------------------------------------------------


def resume_diverged(
    writer: Writer, namespace: str, served: Sequence[Served], build_id: str, now: Timestamp
) -> tuple[TypeKey, ...]:
    """See Store.resume_diverged."""
    pairs = write_json([(one.workflow_type, one.version) for one in served])
    given = {"namespace": namespace, "served": pairs, "build_id": build_id, "now": now}
    rows = writer.database.rows("resume_diverged", given)
    return tuple(dict.fromkeys(TypeKey(namespace, workflow_type) for (workflow_type,) in rows))
