"""Signals: stored in order, each bound to one step that waits for its name."""

from collections.abc import Callable

from ....core.effects import NO_EFFECTS, Effects
from ....core.limits import REQUEST_RUNS
from ....core.run.commands import SendSignal
from ....core.run.control import refuse_signal, result_effects, runs_to_search
from ....core.run.handing_on import write_start_request
from ....core.run.outcomes import Refused
from ....core.times import Timestamp
from ...protocol import SignalCheck, Signalled, fits_any_run
from ...rows import require_storable, write_strings
from ..connection.connection import Row
from .endings import run_head, wake
from .fast_path import Writer


def signal_run(
    writer: Writer,
    namespace: str,
    *,
    run_id: str = "",
    workflow_id: str = "",
    signal: SendSignal,
    now: Timestamp,
    check: SignalCheck = fits_any_run,
) -> tuple[Signalled | Refused | None, Effects]:
    """See Store.signal_run."""
    metadata = signal.payload.metadata or {}
    require_storable(name=signal.name, request_id=signal.request_id, metadata="".join([*metadata, *metadata.values()]))
    row = find_signalled_run(writer, namespace, run_id=run_id, workflow_id=workflow_id, request_id=signal.request_id)
    if row is None:
        return None, NO_EFFECTS
    return give(writer, row, signal, now, lambda: check(row[2], row[8] or ""))


def find_signalled_run(writer: Writer, namespace: str, *, run_id: str, workflow_id: str, request_id: str) -> Row | None:
    """The run that has this request already, if it is a repeat. Else the run with that id, or the open one with that
    workflow id, else the latest."""
    if run_id:
        row = writer.database.row("signalled_run", (run_id,))
    else:
        row = writer.database.row("run_of_workflow_for_signal", {"namespace": namespace, "workflow_id": workflow_id})
    if row is None or row[1] != namespace:
        return None
    others = bool(row[9])
    runs = runs_to_search(by_workflow_id=not run_id, has_ended_runs=others, continued=others)
    if runs == "earlier":
        had = ended_run_with_signal(writer, namespace, workflow_id, request_id)
    elif runs == "later":
        ids = {"run_id": run_id, "request_id": request_id, "most_runs": REQUEST_RUNS}
        had = writer.database.row("later_run_with_signal", ids)
    else:
        had = None
    return row if had is None else writer.database.row("signalled_run", (had[0],))


def ended_run_with_signal(writer: Writer, namespace: str, workflow_id: str, request_id: str) -> Row | None:
    """(run_id, workflow_id, workflow_type, status)"""
    ids = {"namespace": namespace, "workflow_id": workflow_id, "request_id": request_id}
    return writer.database.row("ended_run_with_signal", ids | {"most_runs": REQUEST_RUNS})


def give(
    writer: Writer,
    row: Row,
    signal: SendSignal,
    now: Timestamp,
    check: Callable[[], Refused | None] = lambda: None,
) -> tuple[Signalled | Refused, Effects]:
    """Bind a signal to the step that waits for it, or buffer it. The row comes from `find_signalled_run`."""
    head = run_head(row)
    run = head.run
    repeated = writer.database.row("signal_of_request", (run.run_id, signal.request_id))
    if repeated is not None:
        return Signalled(run, delivered=bool(repeated[0])), NO_EFFECTS
    last = writer.database.row("last_signal", (run.run_id,))
    number = (last[0] if last else 0) + 1
    waiting = writer.database.row("waiting_step", (run.run_id, signal.name))
    refused = refuse_signal(run.run_id, head.status, waited_for=waiting is not None, unread=row[10])
    if refused is None:
        refused = check()
    if refused is not None:
        return refused, NO_EFFECTS
    data, meta = signal.payload.data, write_strings(signal.payload.metadata)
    parameters = {"run_id": run.run_id, "number": number, "name": signal.name, "payload": data, "meta": meta}
    step_id = None if waiting is None else waiting[0]
    parameters |= {"request_id": signal.request_id, "now": now, "step_id": step_id}
    writer.database.run("insert_signal", parameters | {"start_request": write_start_request(signal.start)})
    if step_id is None:
        writer.database.run("count_unread", (1, run.run_id))
        if (fence := writer.fences.get(run.run_id)) is not None:
            fence.related = 1
        return Signalled(run, delivered=False), NO_EFFECTS
    seq = wake(writer, run, now, waits=-1)
    result = {"run_id": run.run_id, "step_id": step_id, "seq": seq, "output": data, "output_meta": meta, "now": now}
    writer.database.run("give_signal", result)
    return Signalled(run, delivered=True), result_effects(head)
