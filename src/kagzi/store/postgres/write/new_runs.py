"""Inserts runs with their payloads, labels and signal."""

from collections.abc import Sequence

from ....core.limits import REQUEST_RUNS
from ....core.run.commands import SendSignal, StartRun
from ....core.states import KindCode
from ....core.times import Timestamp
from ...rows import context_beside_input, new_run_row, write_strings
from ..connection.connection import Session
from ..parameters import Table


async def insert_runs(
    session: Session,
    commands: Sequence[StartRun],
    now: Timestamp,
    *,
    limited: bool,
    parents: Table = (),
) -> dict[str, bool]:
    """Insert the runs that can start, in limited namespaces and types only if `limited`; returns their ids, and whether
    they wait for a claim.

    `parents`: for runs that have a parent, by the columns of `start_runs`.
    """
    if len(commands) == 1 and not (parents or commands[0].labels or commands[0].signal):
        return await _insert_lone_run(session, commands[0], now, limited=limited)
    runs = [{**new_run_row(command, now, leased=True), "pinned": command.version} for command in commands]
    payloads = [row for command in commands for row in _payload_rows(command)]
    labels = [
        {"run_id": command.run.run_id, "key": key, "value": value}
        for command in commands
        for key, value in command.labels.items()
    ]
    signals = [_signal_row(each.run.run_id, each.signal) for each in commands if each.signal is not None]
    if parents or labels or signals:
        [row] = await session.write(
            "start_runs",
            now=now,
            limited=limited,
            runs=runs,
            parents=parents,
            payloads=payloads,
            labels=labels,
            signals=signals,
            most_runs=REQUEST_RUNS,
        )
    else:
        [row] = await session.write("start_plain_runs", now=now, limited=limited, runs=runs, payloads=payloads)
    if row["run_ids"]:
        session.committed()
    waiting = set(row["waiting"] or ())
    return {run_id: run_id in waiting for run_id in row["run_ids"] or ()}


async def _insert_lone_run(session: Session, command: StartRun, now: Timestamp, *, limited: bool) -> dict[str, bool]:
    """Like `insert_runs`, for a single run without parent, labels and signal."""
    rows = await session.write("start_lone_run", **lone_values(command, now, leased=True), limited=limited)
    if not rows:
        return {}
    session.committed()
    return {command.run.run_id: rows[0]["waits"]}


def lone_values(command: StartRun, now: Timestamp, *, leased: bool) -> dict[str, object]:
    """The parameters of the statements that insert a single run."""
    payload, beside = command.input, context_beside_input(command)
    context = command.context if beside is None else None
    return {
        **new_run_row(command, now, leased=leased),
        "pinned": command.version,
        "now": now,
        "input": None if payload is None else payload.data,
        "input_meta": None if payload is None else write_strings(payload.metadata),
        "beside": None if beside is None else beside.data,
        "beside_meta": None if beside is None else write_strings(beside.metadata),
        "context": None if context is None else context.data,
        "context_meta": None if context is None else write_strings(context.metadata),
    }


def _signal_row(run_id: str, signal: SendSignal) -> dict[str, object]:
    return {
        "run_id": run_id,
        "name": signal.name,
        "request_id": signal.request_id,
        "payload": signal.payload.data,
        "metadata": write_strings(signal.payload.metadata),
    }


def _payload_rows(command: StartRun) -> list[dict[str, object]]:
    context = context_beside_input(command)
    return [
        {
            "run_id": command.run.run_id,
            "step_id": step_id,
            "kind": int(kind),
            "data": payload.data,
            "metadata": write_strings(payload.metadata),
            "beside": None if beside is None else beside.data,
            "beside_metadata": None if beside is None else write_strings(beside.metadata),
        }
        for step_id, kind, payload, beside in (
            ("$input", KindCode.INPUT, command.input, context),
            ("$context", KindCode.CONTEXT, command.context if context is None else None, None),
        )
        if payload is not None
    ]
