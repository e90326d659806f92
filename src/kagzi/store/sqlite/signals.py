"""Signals: kept in order, each bound to one step that waits for its name."""

from typing import Any

from ...core import refusals
from ...core.commands import SignalGiven, WaitSignal
from ...core.limits import SIGNALS_BUFFERED
from ...core.outcomes import Outcome, Refused, SignalBound, TimerSet
from ...core.records import Payload, RunKey
from ...core.states import RUN_STATUS_OF_CODE, KindCode, StepCode
from ...core.times import Timestamp
from ..protocol import Signalled
from .attempts import StepState, check_new_step, find_step, known
from .connection import Row
from .ends import stir
from .fences import Fence
from .plain_text import require_plain
from .rows import read_mapping, write_mapping
from .wave import Wave, Writer

# --- a run waits ------------------------------------------------------------------------------------------------------


def wait_signal(wave: Wave, command: WaitSignal, fence: Fence) -> Outcome:
    step = find_step(wave, fence.run_id, command.step_id)
    if step is not None:
        if step.kind != KindCode.SIGNAL:
            return refusals.other_kind(command.step_id, step.kind, KindCode.SIGNAL)
        return _as_it_stands(wave, command, step)
    if (refusal := check_new_step(wave, fence, command.step_id, cleanup=command.cleanup)) is not None:
        return refusal
    found = wave.database.row("next_signal", (fence.run_id, command.signal_name))
    if found is None:
        seq = fence.next_seq()
        wake_at = None if command.timeout_us is None else wave.now + command.timeout_us
        _insert(wave, command, fence, {"begun_seq": seq, "seq": 0, "wake_at": wake_at})
        return TimerSet(seq, wave.now, wake_at)
    number, data, meta = found
    seq = fence.next_result()
    wave.database.run("bind_signal", (command.step_id, fence.run_id, number))
    result = {"status": int(StepCode.COMPLETED), "output": data, "output_meta": meta, "finished_at": wave.now}
    _insert(wave, command, fence, {"begun_seq": seq, "seq": seq} | result)
    return SignalBound(seq, wave.now, Payload(data, read_mapping(meta) if meta else None))


def repeat_wait(wave: Wave, command: WaitSignal) -> Outcome | None:
    """What was recorded for this wait under this very lease."""
    step = find_step(wave, command.run.run_id, command.step_id)
    if step is None or step.kind != KindCode.SIGNAL or not step.is_of(command.lease):
        return None
    return _as_it_stands(wave, command, step)


def _as_it_stands(wave: Wave, command: WaitSignal, step: StepState) -> Outcome:
    if step.has_result:
        return known(wave, command.run.run_id, command.step_id)
    return TimerSet(step.begun_seq, wave.now, step.wake_at)


def _insert(wave: Wave, command: WaitSignal, fence: Fence, state: dict[str, Any]) -> None:
    head = {"step_id": command.step_id, "name": command.signal_name, "kind": int(KindCode.SIGNAL)}
    place = {"parent_step_id": command.parent_step_id, "parallel_group_id": command.parallel_group_id}
    insert_wait(wave, fence, head | place | state)


def insert_wait(wave: Wave, fence: Fence, given: dict[str, Any]) -> None:
    """A row of `insert_wait`: what is not given is not there, and the step is open."""
    empty: dict[str, Any] = dict.fromkeys(
        ("output", "output_meta", "error", "wake_at", "child_run_id", "finished_at"), None
    )
    writer = {"run_id": fence.run_id, "lease": fence.lease, "nonce": fence.nonce, "worker_id": fence.worker_id}
    rest = {"status": int(StepCode.RUNNING), "parent_step_id": "", "parallel_group_id": "", "now": wave.now}
    wave.database.run("insert_wait", empty | writer | rest | given)
    wave.touched[fence.run_id] = fence


# --- somebody sends ---------------------------------------------------------------------------------------------------


def signal_run(  # noqa: PLR0917  the verb's arguments, as the store was given them
    writer: Writer, namespace: str, run_id: str, workflow_id: str, signal: SignalGiven, now: Timestamp
) -> Signalled | Refused | None:
    """See Store.signal_run."""
    metadata = signal.payload.metadata or {}
    require_plain(name=signal.name, request_id=signal.request_id, metadata="".join([*metadata, *metadata.values()]))
    if run_id:
        row = writer.database.row("signalled_run", (run_id,))
    else:
        row = writer.database.row("run_of_workflow_for_signal", (namespace, workflow_id))
    if row is None or row[1] != namespace:
        return None
    return give(writer, row, signal, now)


def give(writer: Writer, row: Row, signal: SignalGiven, now: Timestamp) -> Signalled | Refused:
    """Bind a signal to the step that waits for it, or keep it. The row is (run_id, namespace, workflow_type, status, lease,
    nonce, worker_id)."""
    if (repeated := _repeated(writer, row, signal)) is not None:
        return repeated
    run = RunKey(row[1], row[0])
    status = RUN_STATUS_OF_CODE[row[3]]
    if status.ended:
        return refusals.takes_no_signals(run.run_id, status.value)
    last = writer.database.row("last_signal", (run.run_id,))
    number = (last[0] if last else 0) + 1
    waiting = writer.database.row("waiting_step", (run.run_id, signal.name))
    if waiting is None and (full := _buffer_full(writer, run, number)) is not None:
        return full
    data, meta = signal.payload.data, write_mapping(signal.payload.metadata)
    given = {"run_id": run.run_id, "number": number, "name": signal.name, "payload": data, "meta": meta}
    step_id = None if waiting is None else waiting[0]
    writer.database.run("insert_signal", given | {"request_id": signal.request_id, "now": now, "step_id": step_id})
    if step_id is None:
        return Signalled(run, delivered=False)
    seq, stirred = stir(writer, run, row[2:], now)
    result = {"run_id": run.run_id, "step_id": step_id, "seq": seq, "output": data, "output_meta": meta, "now": now}
    writer.database.run("give_signal", result)
    return Signalled(run, delivered=True, stirred=() if stirred is None else (stirred,))


def _repeated(writer: Writer, row: Row, signal: SignalGiven) -> Signalled | None:
    found = writer.database.row("signal_of_request", (row[0], signal.request_id))
    return None if found is None else Signalled(RunKey(row[1], row[0]), delivered=bool(found[0]))


def _buffer_full(writer: Writer, run: RunKey, number: int) -> Refused | None:
    """Counts only where the number says that the limit may be near."""
    if number <= SIGNALS_BUFFERED:
        return None
    counted = writer.database.row("count_signals", (run.run_id, SIGNALS_BUFFERED))
    if counted is None or counted[0] < SIGNALS_BUFFERED:
        return None
    return refusals.too_many_signals(run.run_id)
