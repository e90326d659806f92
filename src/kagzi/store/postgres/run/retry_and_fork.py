"""Retries a failed run from a step, and forks any run."""

from collections.abc import Mapping

from ....core.effects import NO_EFFECTS, Effects
from ....core.error_details import ErrorDetail
from ....core.limits import FORGOTTEN_BYTES, FORGOTTEN_STEPS
from ....core.records import Payload, RunKey
from ....core.run.commands import StartRun
from ....core.run.control import refuse_retry, reopen_effects, start_effects
from ....core.run.outcomes import Existing, Outcome, Refused, Started
from ....core.run.refusals import no_result_before, no_step
from ....core.run.state import NEVER
from ....core.states import RUN_STATUS_OF_CODE, RunCode, RunStatus
from ....core.times import Timestamp
from ...protocol import Fork
from ...rows import fork_start, read_error, write_strings
from ..connection.connection import Row, Session
from ..write.endings import End, MovedError, link_children, notify_parents, run_head
from ..write.namespace_quota import NamespaceQuotas
from ..write.new_runs import insert_runs
from ..write.starts import find_starts, taken
from .control import with_run


async def retry_run(
    session: Session, run: RunKey, from_step: str, request_id: str, now: Timestamp
) -> tuple[RunStatus | Refused | None, Effects]:
    return await with_run(session, run, lambda row: _retry(session, row, from_step, request_id, now))


async def _retry(
    session: Session, row: Row, from_step: str, request_id: str, now: Timestamp
) -> tuple[RunStatus | Refused, Effects]:
    run_id: str = row["run_id"]
    [failed] = await session.read("failed_run", run_id=run_id)
    if failed["retry_request_id"] == request_id:
        return RUN_STATUS_OF_CODE[row["status"]], NO_EFFECTS
    if refused := refuse_retry(run_id, row["status"], row["workflow_id"], failed["open_run_id"]):
        return refused, NO_EFFECTS
    error = read_error(failed["error"]) or ErrorDetail()
    if from_step:
        places = await session.read("step_place", run_id=run_id, step_id=from_step)
    else:
        places = await session.read("step_of_error", run_id=run_id, subject_id=error.subject_id)
    if from_step and not places:
        return no_step(run_id, from_step), NO_EFFECTS
    # If the error names no step, every result is kept, and only what was cancelled with the run is deleted.
    step_id, after = (
        (places[0]["step_id"], places[0]["seq"] or places[0]["begun_seq"]) if places else ("", failed["seq"])
    )
    run = RunKey(row["namespace"], run_id)
    [forgotten] = await session.read(
        "forget_steps",
        run_id=run_id,
        step_id=step_id,
        after=after,
        forgotten=failed["seq"] + 1,
        now=now,
        never=NEVER,
        namespace=run.namespace,
        finished_at=failed["finished_at"],
        most_steps=FORGOTTEN_STEPS,
        most_bytes=FORGOTTEN_BYTES,
    )
    await session.read("trim_forgotten_steps", run_id=run_id, most_steps=FORGOTTEN_STEPS, most_bytes=FORGOTTEN_BYTES)
    children_due: bool = forgotten["children_due"]
    await session.read(
        "reopen_run",
        run_id=run_id,
        now=now,
        request_id=request_id,
        moved=forgotten["moved"],
        children_due=children_due,
    )
    await catch_up(session, run, now)
    return RunStatus.PENDING, reopen_effects(run_head(row), RunStatus.PENDING, children_due=children_due)


async def catch_up(session: Session, run: RunKey, now: Timestamp) -> None:
    """Deliver what came while this run did not wait for it: buffered signals, and the results of ended children."""
    for wait in await session.read("open_signal_waits", run_id=run.run_id):
        for signal in await session.read("signal_in_place", run_id=run.run_id, name=wait["name"], step_id=None):
            await session.read("bind_signal", run_id=run.run_id, number=signal["number"], step_id=wait["step_id"])
            await session.read("give_bound_signal", run_id=run.run_id, step_id=wait["step_id"], now=now)
    ended: list[End] = [
        (child["run_id"], RunCode(child["status"]), read_error(child["error"]))
        for child in await session.read("ended_children", run_id=run.run_id, namespace=run.namespace)
    ]
    await notify_parents(session, ended, now)


async def fork_run(session: Session, fork: Fork, now: Timestamp) -> tuple[Started | Existing | Refused | None, Effects]:
    return await with_run(session, fork.source, lambda _: _fork(session, fork, now))


async def _fork(session: Session, fork: Fork, now: Timestamp) -> tuple[Started | Existing | Refused, Effects]:
    source = fork.source.run_id
    end = "step_place" if fork.from_step else "end_of_history"
    places = await session.read(end, run_id=source, step_id=fork.from_step)
    if not places:
        return no_step(source, fork.from_step), NO_EFFECTS
    before: int = places[0]["begun_seq"]
    if refused := await _unknown_outputs(session, fork, before):
        return refused, NO_EFFECTS
    command = fork_start(fork, (await session.read("fork_source", run_id=source))[0])
    if (answer := await _refusal(session, command, now)) is not None:
        return answer, NO_EFFECTS
    if not await insert_runs(session, [command], now, limited=True):
        raise MovedError
    new: str = command.run.run_id
    await session.read(
        "copy_results",
        run_id=source,
        new_run_id=new,
        before=before,
        now=now,
        never=NEVER,
        step_ids=list(fork.outputs),
        outputs=[output.data for output in fork.outputs.values()],
        output_metas=[write_strings(output.metadata) for output in fork.outputs.values()],
    )
    waiting = await session.read("open_children", run_id=new)
    links = [(row["child_run_id"], new, row["step_id"], command.run.namespace) for row in waiting]
    if links:
        await link_children(session, links)
        await catch_up(session, command.run, now)
    return Started(new, command.workflow_id, RunStatus.PENDING, now), start_effects(command, RunStatus.PENDING)


async def _unknown_outputs(session: Session, fork: Fork, before: int) -> Refused | None:
    outputs: Mapping[str, Payload] = fork.outputs
    if not outputs:
        return None
    known = {
        row["step_id"]
        for row in await session.read("fork_results", run_id=fork.source.run_id, step_ids=list(outputs), before=before)
    }
    unknown = sorted(set(outputs) - known)
    return no_result_before(unknown[0], fork.from_step) if unknown else None


async def _refusal(session: Session, command: StartRun, now: Timestamp) -> Existing | Refused | None:
    """Why no run is created: the request is a repeat, the id is taken, or the namespace accepts no runs."""
    namespace = command.run.namespace
    [row] = await find_starts(session, [command])
    outcome: Outcome | None = taken(row, command, replace=False)
    if isinstance(outcome, (Existing, Refused)):
        return outcome
    if not row["limiting"]:
        return None
    quotas = await NamespaceQuotas.lock(session, [namespace], now)
    if (full := quotas.refusal(namespace)) is None:
        quotas.take(namespace)
        await quotas.settle()
    return full
