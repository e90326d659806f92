"""Control of runs by users and new builds: cancel, pause, resume, adopt, terminate."""

from collections.abc import Sequence

from ....core.effects import NO_EFFECTS, Effects, pending_effects
from ....core.keys.audit import AuditEntry
from ....core.pages.pauses import PAUSED, RESUMED, pause_note
from ....core.records import RunKey, Served
from ....core.run.control import (
    after_cancel,
    after_pause,
    after_terminate,
    can_resume,
    cancel_effects,
    cancelled_error,
    decide_adoption,
    pause_effects,
    reopen_effects,
    terminated_error,
)
from ....core.run.outcomes import Refused
from ....core.states import RUN_STATUS_OF_CODE, RunCode, RunStatus
from ....core.times import Timestamp
from ...operate.audit import audit_values
from ...protocol import TypeKey
from ...rows import require_storable, write_json
from ..connection.connection import Row
from ..write.endings import end, note_pause, run_head
from ..write.fast_path import Writer

_NO_RUN = (None, NO_EFFECTS)


def _find(writer: Writer, run: RunKey) -> Row | None:
    row = writer.database.row("run_to_change", (run.run_id,))
    return None if row is None or row[1] != run.namespace else row


def cancel_run(
    writer: Writer, run: RunKey, reason: str, now: Timestamp, cancel_by: Timestamp
) -> tuple[RunStatus | None, Effects]:
    """See Store.cancel_run."""
    require_storable(reason=reason)
    if (row := _find(writer, run)) is None:
        return _NO_RUN
    head = run_head(row)
    if (then := after_cancel(head.status, head.lease.counter)) is None:
        return RUN_STATUS_OF_CODE[head.status], NO_EFFECTS
    request = {"run_id": run.run_id, "reason": reason, "now": now, "cancel_by": cancel_by}
    writer.database.run("request_cancel", request)
    if then is RunCode.CANCELLED:
        return RunStatus.CANCELLED, end(writer, head, RunStatus.CANCELLED, cancelled_error(reason), now)
    writer.fences.forget(run.run_id)
    return RUN_STATUS_OF_CODE[then], cancel_effects(head, then, reason, cancel_by)


def pause_run(writer: Writer, run: RunKey, reason: str, now: Timestamp) -> tuple[RunStatus | None, Effects]:
    """See Store.pause_run. A run that is being cancelled continues to its end."""
    require_storable(reason=reason)
    if (row := _find(writer, run)) is None:
        return _NO_RUN
    head, pause_requested, cancel_requested = run_head(row), bool(row[8]), row[9] is not None
    then = after_pause(head.status, pause_requested=pause_requested, cancel_requested=cancel_requested)
    if then is None:
        return RUN_STATUS_OF_CODE[head.status], NO_EFFECTS
    writer.database.run("pause_run", {"run_id": run.run_id, "reason": reason, "now": now})
    note_pause(writer, run.run_id, PAUSED, now, pause_note(run.run_id, reason))
    return RUN_STATUS_OF_CODE[then], pause_effects(head, reason)


def resume_run(writer: Writer, run: RunKey, now: Timestamp) -> tuple[RunStatus | None, Effects]:
    """See Store.resume_run."""
    if (row := _find(writer, run)) is None:
        return _NO_RUN
    head = run_head(row)
    status = RUN_STATUS_OF_CODE[head.status]
    if not can_resume(head.status, pause_requested=bool(row[8])):
        return status, NO_EFFECTS
    if status is RunStatus.PAUSED:
        resumed = writer.database.row("resume_run", {"run_id": run.run_id, "now": now})
        assert resumed is not None  # it was PAUSED just before, in this transaction
        status = RUN_STATUS_OF_CODE[resumed[0]]
    else:
        writer.database.run("take_back_pause", (run.run_id,))
    note_pause(writer, run.run_id, RESUMED, now, pause_note(run.run_id))
    return status, reopen_effects(head, status)


def adopt_run(
    writer: Writer, run: RunKey, build_id: str, now: Timestamp, *, audit: AuditEntry | None = None
) -> tuple[RunStatus | Refused | None, Effects]:
    """See Store.adopt_run."""
    require_storable(build_id=build_id)
    if (row := _find(writer, run)) is None:
        return _NO_RUN
    head = run_head(row)
    status = RUN_STATUS_OF_CODE[head.status]
    adoption = decide_adoption(run.run_id, head.status, row[10], build_id)
    if isinstance(adoption, Refused):
        return adoption, NO_EFFECTS
    if not adoption.changes:
        return status, NO_EFFECTS
    writer.database.run("pin_build", {"run_id": run.run_id, "build_id": adoption.build_id})
    if audit is not None:
        writer.database.run("insert_audit", audit_values(audit))
    if adoption.resumes:
        return resume_run(writer, run, now)
    return status, reopen_effects(head, status)


def terminate_run(writer: Writer, run: RunKey, reason: str, now: Timestamp) -> tuple[RunStatus | None, Effects]:
    """See Store.terminate_run."""
    require_storable(reason=reason)
    if (row := _find(writer, run)) is None:
        return _NO_RUN
    head = run_head(row)
    if after_terminate(head.status) is None:
        return RUN_STATUS_OF_CODE[head.status], NO_EFFECTS
    return RunStatus.CANCELLED, end(writer, head, RunStatus.CANCELLED, terminated_error(reason), now)


# --- divergence -------------------------------------------------------------------------------------------------------


def resume_diverged(writer: Writer, namespace: str, served: Sequence[Served], build_id: str, now: Timestamp) -> Effects:
    """See Store.resume_diverged."""
    pairs = write_json([(one.workflow_type, one.version) for one in served])
    build = {"namespace": namespace, "served": pairs, "build_id": build_id, "now": now}
    rows = writer.database.rows("resume_diverged", build)
    for run_id, _ in rows:
        note_pause(writer, run_id, RESUMED, now, pause_note(run_id))
    return pending_effects(TypeKey(namespace, workflow_type) for _, workflow_type in rows)
