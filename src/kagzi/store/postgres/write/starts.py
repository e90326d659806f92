"""Starts: one statement inserts all runs that can start; why the others could not is determined afterwards.

Insert first, then read: among any number of concurrent callers exactly one insert wins.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from ....core.effects import NO_EFFECTS, Effects, merge
from ....core.records import RunKey
from ....core.run.commands import StartRun
from ....core.run.control import end_effects, replaced_error
from ....core.run.outcomes import Busy, Existing, Outcome, Refused, Started
from ....core.run.refusals import (
    namespace_disabled,
    namespace_gone,
    request_id_of_type,
    workflow_id_active,
    workflow_id_of_type,
)
from ....core.states import RUN_STATUS_OF_CODE, RunCode, RunStatus
from ....core.times import Timestamp
from ...protocol import Signalled
from ...rows import new_status, write_error
from ..connection.connection import Row, Rows, Session
from ..connection.failures import CONTENTION
from .admission import TypeAdmission
from .batch import Group, Outcomes, Writing
from .endings import MovedError, lock_family, notify_parents, run_head
from .handing_on import hand_on_to
from .namespace_quota import NamespaceQuotas
from .new_runs import insert_runs
from .signals import ended_run_with_signal, give_signal

_TRIES = 3
_ROUNDS = 5

_Start = tuple[int, StartRun]
"""A start and its index in the batch."""

_Decided = tuple[Mapping[int, Outcome], Effects]
"""Outcomes by index in the batch, and their effects."""


async def start_runs(writing: Writing, groups: Sequence[Group[StartRun]]) -> None:
    """Fill in the outcome of each start that has none yet. Of several with one id in a batch, the first is made."""
    starts = [item for _, commands in groups for item in commands if writing.outcomes[item[0]] is None]
    first, repeated = _divide(starts)
    await _start_all(writing, first, replace=True)
    if repeated:
        await _start_all(writing, repeated, replace=False)


def _divide(starts: Sequence[_Start]) -> tuple[list[_Start], list[_Start]]:
    """The first starts with their workflow id and request id, and the others."""
    taken: set[tuple[str, str, str]] = set()
    first: list[_Start] = []
    repeated: list[_Start] = []
    for item in starts:
        command = item[1]
        namespace = command.run.namespace
        ids = {("request", namespace, command.request_id), ("workflow", namespace, command.workflow_id)}
        (first if taken.isdisjoint(ids) else repeated).append(item)
        taken |= ids
    return first, repeated


async def _start_all(writing: Writing, starts: Sequence[_Start], *, replace: bool) -> None:
    session, now, outcomes = writing.session, writing.now, writing.outcomes
    # These may return a completed run, so they read before they insert.
    resolve_first = any(command.on_conflict == "existing_or_completed" for _, command in starts)
    for _ in range(_TRIES):
        try:
            if resolve_first:
                await _resolve(writing, starts, replace=replace)
                starts = _undecided(starts, outcomes)
            resolve_first = False
            if quick := [item for item in starts if not item[1].blocked_by]:
                _note(outcomes, await _insert(session, quick, now, limited=False))
                starts = _undecided(starts, outcomes)
            if starts:
                await _resolve(writing, starts, replace=replace)
        except CONTENTION:
            pass  # retry
        starts = _undecided(starts, outcomes)
        if not starts:
            return
    _note(outcomes, {index: Busy() for index, _ in starts})


def _undecided(starts: Sequence[_Start], outcomes: Outcomes) -> list[_Start]:
    return [item for item in starts if outcomes[item[0]] is None]


def _note(outcomes: Outcomes, decided: Mapping[int, Outcome]) -> None:
    for index, outcome in decided.items():
        outcomes[index] = outcome


async def _insert(session: Session, starts: Sequence[_Start], now: Timestamp, *, limited: bool) -> dict[int, Started]:
    """Returns the starts that were inserted."""
    made = await insert_runs(session, [command for _, command in starts], now, limited=limited)
    return {
        index: Started(command.run.run_id, command.workflow_id, _status_made(command, now, waits=waits), now)
        for index, command in starts
        if (waits := made.get(command.run.run_id)) is not None
    }


def _status_made(command: StartRun, now: Timestamp, *, waits: bool) -> RunStatus:
    return RunStatus.PENDING if waits else RUN_STATUS_OF_CODE[new_status(command, now, leased=True)]


async def _resolve(writing: Writing, starts: Sequence[_Start], *, replace: bool) -> None:
    """Resolve conflicting starts, and make those that need more than an insert."""
    session, now, outcomes = writing.session, writing.now, writing.outcomes
    rows = await find_starts(session, [command for _, command in starts])
    limited: list[_Start] = []
    counting: set[str] = set()  # namespaces
    replacing: list[tuple[_Start, str]] = []
    unknown: set[str] = set()
    for row in rows:
        number: int = row["n"]
        index, command = item = starts[number - 1]
        outcome = await _signalled_before(writing, row, command) or taken(row, command, replace=replace)
        if isinstance(outcome, Existing):
            await _signal_existing(writing, index, command, outcome)
        elif outcome is not None:
            outcomes[index] = outcome
        elif not row["known"]:
            unknown.add(command.run.namespace)
        elif row["open_run_id"] is not None:
            replacing.append((item, row["open_run_id"]))
            counting |= {command.run.namespace} if row["limiting"] else set()
        elif row["limiting"] or row["guarded"] or command.blocked_by:
            limited.append(item)
            counting |= {command.run.namespace} if row["limiting"] else set()
    if unknown:
        await session.write("create_namespaces", namespaces=sorted(unknown), now=now)
    for item, run_id in replacing:
        await _replace(writing, item, run_id, counting)
    if limited:
        await _start_limited(writing, limited, counting)


async def find_starts(session: Session, commands: Sequence[StartRun]) -> Rows:
    """What each of these starts would conflict with, by its number (1, 2, ...)."""
    starts = [
        {
            "namespace": command.run.namespace,
            "workflow_id": command.workflow_id,
            "request_id": command.request_id,
            "or_completed": command.on_conflict == "existing_or_completed",
            "workflow_type": command.workflow_type,
        }
        for command in commands
    ]
    return await session.read("find_starts", starts=starts)


def taken(row: Row, command: StartRun, *, replace: bool) -> Outcome | None:
    """What prevents a new run; None if nothing does (any more), or if the existing run is to be replaced."""
    if row["request_run_id"] is not None:
        if row["request_type"] != command.workflow_type:
            run_id, existing_type = row["request_run_id"], row["request_type"]
            return request_id_of_type(command.request_id, run_id, existing_type, command.workflow_type)
        known_status = RUN_STATUS_OF_CODE[row["request_status"]]
        return Existing(row["request_run_id"], row["request_workflow_id"], known_status, repeated=True)
    if row["known"] and not row["enabled"]:
        return (namespace_gone if row["deleting"] else namespace_disabled)(command.run.namespace)
    run_id, existing_type, status = row["open_run_id"], row["open_type"], row["open_status"]
    if run_id is None:
        run_id, existing_type, status = row["completed_run_id"], row["completed_type"], RunCode.COMPLETED
    if run_id is None:
        return None
    if existing_type != command.workflow_type:
        return workflow_id_of_type(command.workflow_id, run_id, existing_type, command.workflow_type)
    if command.on_conflict == "fail":
        return workflow_id_active(command.workflow_id, run_id)
    if command.on_conflict == "replace" and replace:
        return None
    return Existing(run_id, command.workflow_id, RUN_STATUS_OF_CODE[status])


async def _replace(writing: Writing, item: _Start, run_id: str, counting: set[str]) -> None:
    """End the open run and start the new one in its place, or neither."""
    session, now = writing.session, writing.now
    index, command = item
    error = replaced_error(command.run.run_id)

    async def act(locked: set[str]) -> _Decided:
        rows = await lock_family(session, {run_id, *locked}, {run_id, *locked})
        ended = await session.read("terminate_run", run_id=run_id, now=now, error=write_error(error))
        admission = TypeAdmission(session, locked)
        quotas = await NamespaceQuotas.lock(session, sorted(counting & {command.run.namespace}), now)
        await admission.open([command], now)
        if (refused := quotas.refusal(command.run.namespace) or admission.refuse(command, now)) is not None:
            raise _RefusedError(refused)
        admission.check_locks()
        quotas.take(command.run.namespace)
        await quotas.settle()
        signal = command.signal if ended and rows[run_id]["unread_signals"] else None
        begun = command if signal is None else msgspec.structs.replace(command, signal=None)
        made = await _insert(session, [(index, begun)], now, limited=True)
        if ended and not made:
            raise MovedError
        if not ended:
            return made, NO_EFFECTS
        effects = [end_effects(run_head(rows[run_id]), RunStatus.CANCELLED, error)]
        effects.append(await notify_parents(session, [(run_id, RunCode.CANCELLED, error)], now))
        effects.append(await hand_on_to(session, run_id, command.run.run_id))
        if signal is not None:  # it came after those of the replaced run
            await give_signal(session, command.run, msgspec.structs.replace(signal, start=None), now)
        return made, merge([*effects, await admission.evict(now)])

    try:
        await _again_if_moved(writing, act)
    except _RefusedError as refused:
        writing.outcomes[index] = refused.refused


class _RefusedError(Exception):
    """Rolls back what was done for a start that is then refused."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused)
        self.refused = refused


async def _again_if_moved(writing: Writing, act: Callable[[set[str]], Awaitable[_Decided]]) -> None:
    """Runs `act` in a transaction, which begins again if more runs have to be locked first."""
    locked: set[str] = set()
    for _ in range(_ROUNDS):
        try:
            async with writing.session.transaction():
                decided, effects = await act(locked)
        except MovedError:
            continue
        _note(writing.outcomes, decided)
        writing.effects.append(effects)
        return


async def _signalled_before(writing: Writing, row: Row, command: StartRun) -> Existing | None:
    """Signal-with-start whose signal went to a run that has since ended: returns that run, and starts none. If the
    request itself started a run, that run takes precedence."""
    if command.signal is None or row["request_run_id"] is not None:
        return None
    namespace, request_id = command.run.namespace, command.signal.request_id
    for had in await ended_run_with_signal(writing.session, namespace, command.workflow_id, request_id):
        return Existing(had["run_id"], command.workflow_id, RUN_STATUS_OF_CODE[had["status"]])
    return None


async def _signal_existing(writing: Writing, index: int, command: StartRun, existing: Existing) -> None:
    """Signal-with-start found an open run, which gets the signal. If that run has ended meanwhile, or an earlier run
    turns out to have the signal, the start stays undecided and is tried again."""
    if command.signal is None:
        writing.outcomes[index] = existing
        return
    run = RunKey(command.run.namespace, existing.run_id)
    workflow_id = "" if existing.repeated else command.workflow_id
    async with writing.session.transaction():
        signalled, effects = await give_signal(
            writing.session, run, command.signal, writing.now, workflow_id=workflow_id
        )
    if isinstance(signalled, Signalled):
        if existing.repeated or signalled.run == run:
            writing.outcomes[index] = existing
            writing.effects.append(effects)
    elif signalled is not None and existing.status.ended:
        writing.outcomes[index] = signalled


async def _start_limited(writing: Writing, starts: Sequence[_Start], counting: set[str]) -> None:
    """Starts that need counts: open runs of the namespace under its lock, runs of the type under the lock of the type.
    Also starts that wait for another run, which is locked first."""
    session, now = writing.session, writing.now

    async def act(locked: set[str]) -> _Decided:
        if locked:
            await lock_family(session, locked, locked)
        decided: dict[int, Outcome] = {}
        mine = await _behind(session, starts)
        admission = TypeAdmission(session, locked)
        quotas = await NamespaceQuotas.lock(session, sorted(counting), now)
        await admission.open([command for _, command in mine], now)
        admitted: list[_Start] = []
        for index, command in mine:
            namespace = command.run.namespace
            refused = quotas.refusal(namespace) or admission.refuse(command, now)
            if refused is not None:
                decided[index] = refused
            else:
                admitted.append((index, command))
                quotas.take(namespace)
        admission.check_locks()
        if not admitted:
            return decided, NO_EFFECTS
        await quotas.settle()
        decided.update(await _insert(session, admitted, now, limited=True))
        return decided, await admission.evict(now)

    await _again_if_moved(writing, act)


async def _behind(session: Session, starts: Sequence[_Start]) -> list[_Start]:
    """Lock the runs that these starts wait for; a start whose run has ended no longer waits."""
    blockers = sorted({(command.run.namespace, command.blocked_by) for _, command in starts if command.blocked_by})
    if not blockers:
        return list(starts)
    namespaces, run_ids = zip(*blockers, strict=True)
    rows = await session.read("lock_blockers", namespaces=namespaces, run_ids=run_ids)
    is_open = {row["run_id"] for row in rows}
    return [
        (index, command if command.blocked_by in is_open else msgspec.structs.replace(command, blocked_by=""))
        for index, command in starts
    ]
