"""Commands that concern several runs: child starts, endings that another run waits for, continue-as-new. And those that
take signals back from waits, which need several statements.

One transaction: lock the runs and their parents in the order of their ids, read, decide by the same rules as the
careful path, write, insert the children, notify the parents.
"""

from collections.abc import Sequence

from ....core.effects import CHILDREN_DUE, NO_EFFECTS, Effects
from ....core.run.commands import CancelRun, CompleteRun, ContinueAsNew, FailRun, StartChild, StartRun
from ....core.run.outcomes import Busy, Outcome
from ....core.run.state import Relative, Relatives
from ....core.schedules.scheduled_time import with_scheduled_time_of
from ....core.states import CODE_OF_ON_CLOSE, RunCode
from ...rows import read_labels, write_strings
from ..connection.connection import Row
from .admission import TypeAdmission
from .batch import WorkerGroup, Writing
from .endings import End, MovedError, link_children, lock_family, notify_parents
from .handing_on import hand_on
from .new_runs import insert_runs
from .run_state import read_signals_to_take_back, read_states, refill_waits, waits_with_values, write_states

_ROUNDS = 5
_ENDINGS = (CompleteRun, FailRun, CancelRun, ContinueAsNew)


class _Relatives(Relatives, kw_only=True):
    type_admission: TypeAdmission | None = None  # the same object as `admission`


async def settle_related(writing: Writing, groups: Sequence[WorkerGroup]) -> None:
    """Fill in the outcome of every command of these groups, which are in the order of their run ids."""
    decided: list[tuple[int, Outcome]] = [(index, Busy()) for _, commands in groups for index, _ in commands]
    going: set[str] = set()  # runs to evict to admit children
    for _ in range(_ROUNDS):
        try:
            async with writing.session.transaction():
                decided, effects = await _settle(writing, groups, going)
            writing.effects.extend(effects)
            break
        except MovedError:
            continue
    for index, outcome in decided:
        writing.outcomes[index] = outcome


async def _settle(
    writing: Writing, groups: Sequence[WorkerGroup], going: set[str]
) -> tuple[list[tuple[int, Outcome]], list[Effects]]:
    session = writing.session
    starts = [command for _, commands in groups for _, command in commands if isinstance(command, StartChild)]
    ending = {run.run_id for run, commands in groups if any(isinstance(command, _ENDINGS) for _, command in commands)}
    targets = await _attached(writing, starts)
    locked = await lock_family(session, {run.run_id for run, _ in groups} | targets | going, ending | going)
    by_namespace = await _read_relatives(writing, starts, going) if starts else {}
    if any(command.attach and not _is_locked(command, by_namespace, locked) for command in starts):
        raise MovedError
    states = await read_states(session, groups)
    if waits_with_values(groups, states):
        states = await read_signals_to_take_back(session, groups, states)
    decided: list[tuple[int, Outcome]] = []
    for number, (run, commands) in enumerate(groups, start=1):
        state = states.get(number)
        if state is not None:
            state.relatives = by_namespace.get(run.namespace)
        for index, command in commands:
            decided.append((index, writing.decide(state, command)))
    changed = [state for state in states.values() if state.changed]
    if changed and len(await write_states(writing, changed)) < len(changed):
        raise MovedError
    await refill_waits(session, changed)
    effects = [await _make(writing, relatives) for relatives in by_namespace.values()]
    for state in changed:
        if state.successor is not None:
            await _continue(writing, state.successor, paused=state.successor_paused)
    endings: list[End] = [
        (state.run.run_id, RunCode(state.status), state.error)
        for state in changed
        if state.ended and state.watched and state.successor is None
    ]
    effects.append(await notify_parents(session, endings, writing.now))
    unread = [state.run.run_id for state in changed if state.ended_with_unread]
    effects.append(await hand_on(session, unread, writing.now))
    effects += [CHILDREN_DUE for state in changed if state.children_due]
    return decided, effects


async def _continue(writing: Writing, command: ContinueAsNew, *, paused: bool) -> None:
    payload, context = command.input, command.context
    if context is not None:
        rows = await writing.session.read("context_metadata", run_id=command.run.run_id)
        context = with_scheduled_time_of(context, read_labels(rows[0]["metadata"]) if rows else None)
    await writing.session.read(
        "continue_run",
        now=writing.now,
        run_id=command.run.run_id,
        new_run_id=command.new_run_id,
        version=command.version,
        input=payload.data,
        input_meta=write_strings(payload.metadata),
        context=None if context is None else context.data,
        context_meta=None if context is None else write_strings(context.metadata),
        paused=paused,
    )


# --- child starts -----------------------------------------------------------------------------------------------------


async def _attached(writing: Writing, starts: Sequence[StartChild]) -> set[str]:
    """The open runs that some of these starts will wait for instead of starting a new one."""
    attaching = [command for command in starts if command.attach]
    rows = await _find(writing, attaching) if attaching else ()
    return {row["open_run_id"] for row in rows if row["open_run_id"] is not None}


def _is_locked(command: StartChild, by_namespace: dict[str, _Relatives], locked: dict[str, Row]) -> bool:
    relative = by_namespace[command.run.namespace].active.get(command.start.workflow_id)
    return relative is None or relative.run_id in locked


async def _find(writing: Writing, starts: Sequence[StartChild]) -> Sequence[Row]:
    children = [
        {
            "namespace": command.run.namespace,
            "parent_run_id": command.run.run_id,
            "step_id": command.step_id,
            "workflow_id": command.start.workflow_id,
            "request_id": command.start.request_id,
            "workflow_type": command.start.workflow_type,
        }
        for command in starts
    ]
    return await writing.session.read("find_children", children=children)


async def _read_relatives(writing: Writing, starts: Sequence[StartChild], going: set[str]) -> dict[str, _Relatives]:
    """The existing runs that the starts refer to, by namespace; and how many runs may be started there."""
    session = writing.session
    by_namespace: dict[str, _Relatives] = {}
    guarded: dict[str, list[StartRun]] = {}
    for row in await _find(writing, starts):
        number: int = row["n"]
        command = starts[number - 1]
        relatives = by_namespace.setdefault(command.run.namespace, _Relatives())
        relatives.limit = row["open_runs_limit"]
        if row["guarded"]:
            guarded.setdefault(command.run.namespace, []).append(command.start)
        if row["child_run_id"] is not None:
            key = (command.run.run_id, command.step_id)
            relatives.recorded[key] = Relative(row["child_run_id"], row["child_type"], row["child_status"])
        if row["request_run_id"] is not None:
            relative = Relative(row["request_run_id"], row["request_type"], row["request_status"])
            relatives.by_request[command.start.request_id] = relative
            if not row["request_is_own"]:
                relatives.foreign.add((command.run.run_id, command.step_id))
        if row["open_run_id"] is not None:
            relative = Relative(row["open_run_id"], row["open_type"], row["open_status"])
            relatives.active[command.start.workflow_id] = relative
    limited = sorted(namespace for namespace, relatives in by_namespace.items() if relatives.limit is not None)
    for row in await session.read("lock_namespaces", namespaces=limited) if limited else ():
        relatives = by_namespace[row["namespace"]]
        relatives.limit = row["open_runs_limit"]
        if relatives.limit is not None:
            [counted] = await session.read("count_open_runs", namespace=row["namespace"], limit=relatives.limit)
            relatives.quota = relatives.limit - counted["runs"]
    for namespace, coming in guarded.items():
        relatives = by_namespace[namespace]
        relatives.admission = relatives.type_admission = admission = TypeAdmission(session, going)
        await admission.open(coming, writing.now)
    return by_namespace


async def _make(writing: Writing, relatives: _Relatives) -> Effects:
    """Insert the new children, and the links to existing runs."""
    if relatives.type_admission is not None:
        relatives.type_admission.check_locks()
    if relatives.created:
        starts = [command.start for command in relatives.created]
        parents = [
            {
                "run_id": command.start.run.run_id,
                "parent_run_id": command.run.run_id,
                "parent_step_id": command.step_id,
                "on_close": CODE_OF_ON_CLOSE[command.on_close],
            }
            for command in relatives.created
        ]
        made = await insert_runs(writing.session, starts, writing.now, limited=True, parents=parents)
        if len(made) < len(starts):
            raise MovedError
    if relatives.links:
        await link_children(writing.session, relatives.links)
        linked = {link[0] for link in relatives.links}
        ended: list[End] = [
            (relative.run_id, RunCode(relative.status), None)
            for relative in relatives.recorded.values()
            if relative.run_id in linked and RunCode.COMPLETED <= relative.status <= RunCode.CANCELLED
        ]
        await notify_parents(writing.session, ended, writing.now)
    return NO_EFFECTS if relatives.type_admission is None else await relatives.type_admission.evict(writing.now)
