"""Starts: one statement makes all runs that can be made; why the others could not is found out afterwards.

"Insert, then look" instead of the other way round: under any number of racing callers exactly one insert wins.
"""

from collections.abc import Mapping, Sequence

import msgspec

from ...core.commands import SignalGiven, StartRun
from ...core.errors import ErrorCode, ErrorDetail, ErrorKind
from ...core.outcomes import Busy, Existing, Outcome, Started
from ...core.records import RunKey
from ...core.states import RUN_STATUS_OF_CODE, KindCode, RunCode, WaitCode
from ...core.times import Timestamp
from ..protocol import Signalled
from .batch import Group, Outcomes, Writing
from .connections import CONTENTION, Row, Session, columns
from .kinship import lock_family, tell_parents
from .refusals import conflict, namespace_disabled, namespace_full
from .rows import write_error, write_policy, write_strings
from .signals import give_signal

_TRIES = 3

_Asked = tuple[int, StartRun]
"""A start and its place in the batch."""


async def start_runs(writing: Writing, groups: Sequence[Group[StartRun]]) -> None:
    """Fill in the outcome of each start that has none yet. Of several with one id in the batch the first is made."""
    asked = [item for _, commands in groups for item in commands if writing.outcomes[item[0]] is None]
    first, repeated = _divide(asked)
    await _start_all(writing, first, replace=True)
    if repeated:
        await _start_all(writing, repeated, replace=False)


def _divide(asked: Sequence[_Asked]) -> tuple[list[_Asked], list[_Asked]]:
    """Those that are the first with their workflow id and request id, and the others."""
    taken: set[tuple[str, str, str]] = set()
    first: list[_Asked] = []
    repeated: list[_Asked] = []
    for item in asked:
        command = item[1]
        namespace = command.run.namespace
        ids = {("request", namespace, command.request_id), ("workflow", namespace, command.workflow_id)}
        (first if taken.isdisjoint(ids) else repeated).append(item)
        taken |= ids
    return first, repeated


async def _start_all(writing: Writing, asked: Sequence[_Asked], *, replace: bool) -> None:
    session, now, outcomes = writing.session, writing.now, writing.outcomes
    # A completed run may be the answer to these, so they look before they insert.
    look_first = any(command.on_conflict == "existing_or_completed" for _, command in asked)
    for _ in range(_TRIES):
        try:
            if look_first:
                await _look(writing, asked, replace=replace)
                asked = _undecided(asked, outcomes)
            look_first = False
            if asked:
                _note(outcomes, await _insert(session, asked, now, limited=False))
                asked = _undecided(asked, outcomes)
            if asked:
                await _look(writing, asked, replace=replace)
        except CONTENTION:
            pass  # another try
        asked = _undecided(asked, outcomes)
        if not asked:
            return
    _note(outcomes, {index: Busy() for index, _ in asked})


def _undecided(asked: Sequence[_Asked], outcomes: Outcomes) -> list[_Asked]:
    return [item for item in asked if outcomes[item[0]] is None]


def _note(outcomes: Outcomes, decided: Mapping[int, Outcome]) -> None:
    for index, outcome in decided.items():
        outcomes[index] = outcome


async def insert_runs(
    session: Session,
    commands: Sequence[StartRun],
    now: Timestamp,
    *,
    limited: bool,
    parents: Sequence[tuple[str, str, str, int]] = (),
) -> set[str]:
    """Make the runs that can be made, those in limited namespaces only if `limited`; answers their ids.

    `parents`: run id, parent's run id, the parent's step and the close policy, for runs that have a parent.
    """
    [row] = await session.write(
        "start_runs",
        now,
        *zip(*[_run_row(command, now) for command in commands], strict=True),
        limited,
        *columns([row for command in commands for row in _payload_rows(command)], 5),
        *columns([(c.run.run_id, key, value) for c in commands for key, value in c.labels.items()], 3),
        *columns(parents, 4),
        *columns([_signal_row(c.run.run_id, c.signal) for c in commands if c.signal is not None], 5),
    )
    return set(row["run_ids"] or ())


async def _insert(session: Session, asked: Sequence[_Asked], now: Timestamp, *, limited: bool) -> dict[int, Started]:
    """Answers for those that were made."""
    made = await insert_runs(session, [command for _, command in asked], now, limited=limited)
    return {
        index: Started(command.run.run_id, command.workflow_id, RUN_STATUS_OF_CODE[_status_of(command, now)], now)
        for index, command in asked
        if command.run.run_id in made
    }


async def _look(writing: Writing, asked: Sequence[_Asked], *, replace: bool) -> None:
    """Answer those that conflict with something, and make those that needed more than an insert."""
    session, now, outcomes = writing.session, writing.now, writing.outcomes
    rows = await session.read(
        "find_starts",
        [command.run.namespace for _, command in asked],
        [command.workflow_id for _, command in asked],
        [command.request_id for _, command in asked],
        [command.on_conflict == "existing_or_completed" for _, command in asked],
    )
    limited: list[_Asked] = []
    replacing: list[tuple[_Asked, str]] = []
    unknown: set[str] = set()
    for row in rows:
        number: int = row["n"]
        index, command = item = asked[number - 1]
        outcome = taken(row, command, replace=replace)
        if isinstance(outcome, Existing):
            await _signal_existing(writing, index, command, outcome)
        elif outcome is not None:
            outcomes[index] = outcome
        elif not row["known"]:
            unknown.add(command.run.namespace)
        elif row["open_run_id"] is not None:
            replacing.append((item, row["open_run_id"]))
        elif row["open_runs_limit"] is not None:
            limited.append(item)
    if unknown:
        await session.write("create_namespaces", sorted(unknown), now)
    for item, run_id in replacing:
        _note(outcomes, await _replace(session, item, run_id, now))
    if limited:
        _note(outcomes, await _start_limited(session, limited, now))


def taken(row: Row, command: StartRun, *, replace: bool) -> Outcome | None:
    """What stands in the way of a new run; None if nothing does (any more), or if it is to be replaced."""
    if row["request_run_id"] is not None:
        return Existing(row["request_run_id"], row["request_workflow_id"], RUN_STATUS_OF_CODE[row["request_status"]])
    if row["known"] and not row["enabled"]:
        return namespace_disabled(command.run.namespace)
    run_id, found_type, status = row["open_run_id"], row["open_type"], row["open_status"]
    if run_id is None:
        run_id, found_type, status = row["completed_run_id"], row["completed_type"], RunCode.COMPLETED
    if run_id is None:
        return None
    if found_type != command.workflow_type:
        message = f"workflow_id {command.workflow_id!r} belongs to a run of type {found_type!r}, not {command.workflow_type!r}"
        return conflict(message, subject_id=command.workflow_id)
    if command.on_conflict == "fail":
        return conflict(
            f"workflow_id {command.workflow_id!r} has an open run, {run_id}", subject_id=command.workflow_id
        )
    if command.on_conflict == "replace" and replace:
        return None
    return Existing(run_id, command.workflow_id, RUN_STATUS_OF_CODE[status])


async def _replace(session: Session, item: _Asked, run_id: str, now: Timestamp) -> dict[int, Started]:
    """End the open run and make the new one in its place, or neither."""
    error = ErrorDetail(
        code=ErrorCode.CANCELLED,
        kind=ErrorKind.TERMINATED,
        message=f"replaced by run {item[1].run.run_id}, which was started with on_conflict=replace",
    )
    async with session.transaction():
        await lock_family(session, [run_id], [run_id])
        ended = await session.read("terminate_run", run_id, now, write_error(error))
        made = await _insert(session, [item], now, limited=True)
        if not ended or not made:
            return made
        stirred = await tell_parents(session, [(run_id, RunCode.CANCELLED, error)], now)
    return {index: msgspec.structs.replace(outcome, stirred=stirred) for index, outcome in made.items()}


async def _signal_existing(writing: Writing, index: int, command: StartRun, existing: Existing) -> None:
    """Signal-with-start met a run: that gets the signal. One that ended in between leaves the question open."""
    if command.signal is None:
        writing.outcomes[index] = existing
        return
    run = RunKey(command.run.namespace, existing.run_id)
    async with writing.session.transaction():
        given = await give_signal(writing.session, run, command.signal, writing.now)
    if isinstance(given, Signalled):
        writing.outcomes[index] = msgspec.structs.replace(existing, stirred=given.stirred)
    elif given is not None and existing.status.ended:
        writing.outcomes[index] = given


async def _start_limited(session: Session, asked: Sequence[_Asked], now: Timestamp) -> dict[int, Outcome]:
    """Starts in namespaces that limit their open runs: count and make under the namespace's lock."""
    decided: dict[int, Outcome] = {}
    async with session.transaction():
        namespaces = sorted({command.run.namespace for _, command in asked})
        for row in await session.read("lock_namespaces", namespaces):
            namespace: str = row["namespace"]
            limit: int | None = row["open_runs_limit"]
            mine = [item for item in asked if item[1].run.namespace == namespace]
            if limit is not None:
                [counted] = await session.read("count_open_runs", namespace, limit)
                room = max(0, limit - counted["runs"])
                decided |= {index: namespace_full(namespace, limit) for index, _ in mine[room:]}
                mine = mine[:room]
            if mine:
                decided |= await _insert(session, mine, now, limited=True)
    return decided


def _status_of(command: StartRun, now: Timestamp) -> RunCode:
    if command.start_at is not None and command.start_at > now:
        return RunCode.SLEEPING
    return RunCode.PENDING if command.assignment is None else RunCode.RUNNING


def _run_row(command: StartRun, now: Timestamp) -> tuple[object, ...]:
    status = _status_of(command, now)
    assignment = command.assignment if status is RunCode.RUNNING else None
    return (
        command.run.run_id,
        command.run.namespace,
        command.workflow_id,
        command.workflow_type,
        command.request_id,
        command.version if command.version is not None or assignment is None else assignment.version,
        command.priority,
        int(status),
        int(WaitCode.TIME) if status is RunCode.SLEEPING else None,
        now if status is RunCode.PENDING else None,
        command.start_at if status is RunCode.SLEEPING else None,
        command.deadline_at,
        0 if assignment is None else 1,
        None if assignment is None else assignment.worker_id,
        0 if assignment is None else assignment.nonce,
        None if assignment is None else assignment.lease_until,
        write_policy(command.retry),
        write_strings(command.labels) if command.labels else None,
    )


def _signal_row(run_id: str, signal: SignalGiven) -> tuple[object, ...]:
    payload = signal.payload
    return (run_id, signal.name, signal.request_id, payload.data, write_strings(payload.metadata))


def _payload_rows(command: StartRun) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for step_id, kind, payload in (
        ("$input", KindCode.INPUT, command.input),
        ("$context", KindCode.CONTEXT, command.context),
    ):
        if payload is not None:
            rows.append((command.run.run_id, step_id, int(kind), payload.data, write_strings(payload.metadata)))
    return rows
