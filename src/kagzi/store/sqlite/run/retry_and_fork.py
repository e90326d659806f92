"""Retries a failed run from a step, and forks any run."""

import msgspec

from ....core.effects import NO_EFFECTS, Effects, merge
from ....core.limits import FORGOTTEN_BYTES, FORGOTTEN_STEPS
from ....core.records import RunKey
from ....core.run.control import refuse_retry, start_effects
from ....core.run.outcomes import Existing, Refused, Started
from ....core.run.refusals import no_result_before, no_step
from ....core.states import RUN_STATUS_OF_CODE, KindCode, RunStatus, StepCode
from ....core.times import Timestamp
from ...protocol import Fork, LeaseTerms, TypeKey
from ...rows import fork_start, read_error, require_storable, write_json, write_strings
from ..connection.connection import Row
from ..write.endings import give_result
from ..write.fast_path import WritePlan, Writer
from ..write.starts import start_one

_NO_TERMS = LeaseTerms(until=0, renew_before=0)  # a fork has no lease


# --- retry ------------------------------------------------------------------------------------------------------------


def retry_run(
    writer: Writer, run: RunKey, from_step: str, request_id: str, now: Timestamp
) -> tuple[RunStatus | Refused | None, Effects]:
    """See Store.retry_run."""
    require_storable(from_step=from_step, request_id=request_id)
    row = writer.database.row("source_run", (run.run_id,))
    if row is None or row[0] != run.namespace:
        return None, NO_EFFECTS
    if request_id and row[3] == request_id:
        return RUN_STATUS_OF_CODE[row[4]], NO_EFFECTS
    active = writer.database.row("active_run", (run.namespace, row[1]))
    refused = refuse_retry(run.run_id, row[4], row[1], None if active is None else active[0])
    if refused is not None:
        return refused, NO_EFFECTS
    if from_step and writer.database.row("first_begun", (run.run_id, from_step)) is None:
        return no_step(run.run_id, from_step), NO_EFFECTS
    writer.database.run("reopen_run", {"run_id": run.run_id, "request_id": request_id or None, "now": now})
    retry = _Retry(seq=row[5] + 1, at=now, failed_at=row[7])
    children_due = _undo(writer, run, from_step or _step_that_failed(writer, run, row), retry)
    _catch_up(writer, run, now)
    writer.database.run("recount_open_steps", (run.run_id,))
    writer.database.run("recount_unread", (run.run_id,))
    key = TypeKey(run.namespace, row[2])
    return RunStatus.PENDING, Effects(pending=(key,), changed=(run,), children_due=children_due)


def _step_that_failed(writer: Writer, run: RunKey, row: Row) -> str:
    """The step that the error names, or whose child it names; empty if the workflow function itself failed."""
    error = read_error(row[6])
    if error is None or not error.subject_id:
        return ""
    step = writer.database.row("step_of_error", {"run_id": run.run_id, "subject_id": error.subject_id})
    return "" if step is None else step[0]


class _Retry(msgspec.Struct, frozen=True):
    """`seq` and `at`: of the retry. `failed_at`: when the run ended."""

    seq: int
    at: Timestamp
    failed_at: Timestamp


class _TakenBack(msgspec.Struct):
    """What happens to steps, with their child run ids. Steps begun before a recorded result that is kept stay begun, or
    replay would find a new step before it: they are reopened with their child, or restarted with a new one."""

    forgotten: dict[str, str | None] = {}
    restarted: dict[str, str | None] = {}
    reopened: list[str] = []
    signalled: set[str] = set()  # those of `reopened` that get their signal again

    @property
    def all(self) -> list[str]:
        return [*self.forgotten, *self.restarted, *self.reopened]

    @property
    def discarded(self) -> list[str]:
        """The steps that lose their result."""
        return [step_id for step_id in self.all if step_id not in self.signalled]


def _undo(writer: Writer, run: RunKey, step_id: str, retry: _Retry) -> bool:
    """Undo the step and everything after it. Steps begun earlier stay begun, so that replay finds them in their place.
    Returns whether children were disowned, which must be cancelled."""
    lost: list[Row] = writer.database.rows("lost_children", msgspec.structs.asdict(run))
    back = _TakenBack(restarted={row[0]: row[1] for row in lost})
    step = writer.database.row("source_step", (run.run_id, step_id)) if step_id else None
    if step is not None and step[0] < KindCode.INPUT:
        after = step[3] or step[2]  # the seq of its result; or of its begin, if it has none
        parameters = {"run_id": run.run_id, "step_id": step_id, "after": after}
        for each_id, kind, child_run_id, begun_seq, status in writer.database.rows("steps_to_undo", parameters):
            is_it = each_id == step_id
            if begun_seq > after or (is_it and kind != KindCode.CHILD):
                back.restarted.pop(each_id, None)
                back.forgotten[each_id] = child_run_id
            elif kind == KindCode.CHILD and (is_it or status != StepCode.COMPLETED):
                back.restarted[each_id] = child_run_id
            else:
                back.reopened.append(each_id)
                if kind == KindCode.SIGNAL and status == StepCode.COMPLETED:
                    back.signalled.add(each_id)
    return _take_back(writer, run, back, retry) if back.all else False


def _take_back(writer: Writer, run: RunKey, back: _TakenBack, retry: _Retry) -> bool:
    now = retry.at
    parameters = {"run_id": run.run_id, "step_ids": write_json(back.all), "now": now}
    writer.database.run("keep_failures", parameters)
    _keep_discarded(writer, run, back, retry)
    writer.database.run("unbind_signals", parameters)
    writer.database.run("forget_steps", parameters | {"step_ids": write_json(list(back.forgotten))})
    writer.database.run("reopen_steps", parameters | {"step_ids": write_json(back.reopened)})
    writer.database.run("restart_steps", parameters | {"step_ids": write_json(list(back.restarted))})
    children = [child for child in (*back.forgotten.values(), *back.restarted.values()) if child is not None]
    if children:
        writer.database.run("disown_children", msgspec.structs.asdict(run) | {"children": write_json(children)})
        writer.database.run("cascade_due", (run.run_id,))
    return bool(children)


def _keep_discarded(writer: Writer, run: RunKey, back: _TakenBack, retry: _Retry) -> None:
    """For people; replay does not see them."""
    bounds = {"run_id": run.run_id, "most_steps": FORGOTTEN_STEPS, "most_bytes": FORGOTTEN_BYTES}
    discarded = {"step_ids": write_json(back.discarded), "retry_seq": retry.seq, "finished_at": retry.failed_at}
    writer.database.run("keep_forgotten_steps", bounds | discarded | {"now": retry.at})
    writer.database.rows("trim_forgotten_steps", bounds)


def _bind_again(writer: Writer, run: RunKey, now: Timestamp) -> None:
    """Deliver signals that are buffered to steps that still wait."""
    for step_id, name in writer.database.rows("open_waits", (run.run_id,)):
        signal = writer.database.row("next_signal", (run.run_id, name))
        woken = {"run_id": run.run_id, "now": now, "waits": 0}  # the waits are counted again later
        seq = None if signal is None else writer.database.row("wake_run", woken)
        if signal is not None and seq is not None:
            number, data, meta = signal
            writer.database.run("bind_signal", (step_id, run.run_id, number))
            result = {"run_id": run.run_id, "step_id": step_id, "output": data, "output_meta": meta}
            writer.database.run("give_signal", result | {"seq": seq[0], "now": now})


def _catch_up(writer: Writer, run: RunKey, now: Timestamp) -> None:
    """Deliver what came while this run did not wait for it: buffered signals, and the results of ended children."""
    _bind_again(writer, run, now)
    for child_run_id, step_id in writer.database.rows("ended_children", msgspec.structs.asdict(run)):
        give_result(writer, run, step_id, child_run_id, now)


# --- fork -------------------------------------------------------------------------------------------------------------


def fork_run(writer: Writer, fork: Fork, now: Timestamp) -> tuple[Started | Existing | Refused | None, Effects]:
    """See Store.fork_run."""
    metadata = [text for payload in fork.outputs.values() for pair in (payload.metadata or {}).items() for text in pair]
    require_storable(workflow_id=fork.workflow_id, request_id=fork.request_id, metadata="".join(metadata))
    source = fork.source
    row = writer.database.row("source_run", (source.run_id,))
    if row is None or row[0] != source.namespace:
        return None, NO_EFFECTS
    # Without a step the whole history is copied: the next step would begin after the run's last seq.
    begun = writer.database.row("first_begun", (source.run_id, fork.from_step)) if fork.from_step else (row[5] + 1,)
    if begun is None:
        return no_step(source.run_id, fork.from_step), NO_EFFECTS
    for step_id in fork.outputs:
        step = writer.database.row("source_step", (source.run_id, step_id))
        if step is None or step[1] not in (3, 4) or not 0 < step[3] < begun[0] or step[0] >= KindCode.INPUT:
            return no_result_before(step_id, fork.from_step), NO_EFFECTS
    [source_row] = writer.database.records("fork_source", {"run_id": source.run_id})
    plan, start = WritePlan(writer, now, _NO_TERMS), fork_start(fork, source_row)
    started = start_one(plan, start)
    assert isinstance(started, (Started, Existing, Refused))  # the possible outcomes of a start
    if isinstance(started, Started):
        _copy(writer, fork, begun[0], now)
        plan.effects.append(start_effects(start, started.status))
    return started, merge(plan.effects)


def _copy(writer: Writer, fork: Fork, before: int, now: Timestamp) -> None:
    run = RunKey(fork.source.namespace, fork.new_run_id)
    ids = {"run_id": fork.source.run_id, "new_run_id": run.run_id}
    writer.database.run("fork_steps", ids | {"before": before, "from_step": fork.from_step, "now": now})
    writer.database.run("fork_attempts", ids)
    for step_id, payload in fork.outputs.items():
        output = {"output": payload.data, "output_meta": write_strings(payload.metadata)}
        writer.database.run("replace_output", {"run_id": run.run_id, "step_id": step_id} | output)
    writer.database.run("mark_fork", (fork.source.run_id, before, run.run_id))
    for step_id, child_run_id in writer.database.rows("open_children", (run.run_id,)):
        writer.database.run("watch_run", (child_run_id, run.namespace))
        writer.database.run("link_child", (run.namespace, child_run_id, run.run_id, step_id))
        writer.fences.forget(child_run_id)
    _catch_up(writer, run, now)
    writer.database.run("recount_open_steps", (run.run_id,))
