"""Imports runs: the statements that write them."""

from collections.abc import Sequence
from typing import Any

import msgspec

from ....core.effects import NO_EFFECTS, Effects, merge
from ....core.records import RunKey
from ....core.run.outcomes import Refused
from ....core.states import RunCode, RunStatus
from ....core.times import Timestamp
from ....core.transfers.effects import import_effects
from ....core.transfers.images import (
    AttemptImage,
    ForgottenImage,
    LinkImage,
    Part,
    RunImage,
    SignalImage,
    StepImage,
)
from ...images import attempt_row, forgotten_row, payload_rows, refuse_import, run_row, signal_row, step_row
from ...operate.transfers import Transfers
from ..connection.connection import Row
from ..connection.connections import Connections
from ..statements import row_of
from ..write.endings import give_result
from ..write.fast_path import Writer

_STAGED = ("stage_steps", "stage_attempts", "stage_signals", "stage_links", "stage_forgotten_steps")
_rows = {name: row_of(name) for name in _STAGED}


class SqliteTransfers(Transfers, Connections):
    """Implements `store.protocol.TransferVerbs`."""

    async def import_parts(self, run: RunKey, token: str, parts: Sequence[Part], now: Timestamp) -> int | None:
        return await self._change(_import_parts, run, token, parts, now)

    async def finish_import(
        self, run: RunKey, token: str, image: RunImage, now: Timestamp
    ) -> tuple[RunStatus | Refused | None, Effects]:
        return await self._change(_finish_import, run, token, image, now)


def _import_parts(writer: Writer, run: RunKey, token: str, parts: Sequence[Part], now: Timestamp) -> int | None:
    run_id = run.run_id
    if writer.database.row("keep_import", {"run_id": run_id, "token": token, "now": now}) is None:
        return None
    rows: dict[str, list[dict[str, Any]]] = {}
    attempts: list[AttemptImage] = []
    for part in parts:
        match part:
            case StepImage():
                rows.setdefault("stage_steps", []).append(step_row(part))
            case AttemptImage():
                attempts.append(part)
            case SignalImage():
                row = signal_row(part)
                rows.setdefault("stage_signals", []).append(row | {"meta": row["payload_meta"]})
            case LinkImage():
                link = {"namespace": run.namespace, "child_run_id": part.child_run_id, "parent_step_id": part.step_id}
                rows.setdefault("stage_links", []).append(link | {"parent_run_id": run_id})
            case ForgottenImage():
                rows.setdefault("stage_forgotten_steps", []).append(forgotten_row(part) | {"claim": 0})
    staged = sum(_insert(writer, statement, run_id, written) for statement, written in rows.items())
    return staged + _insert_attempts(writer, run_id, attempts)


def _insert_attempts(writer: Writer, run_id: str, attempts: Sequence[AttemptImage]) -> int:
    """Here attempts of a step are identified by their begun_seq. In an export from PostgreSQL two may share it, if the
    step was reopened between them."""
    staged = 0
    for attempt in attempts:
        row = attempt_row(attempt) | {"lease": 0, "nonce": 0}
        new = _insert(writer, "stage_attempts", run_id, [row])
        staged += new or _insert(writer, "stage_attempts", run_id, [row | {"begun_seq": attempt.seq}])
    return staged


def _insert(writer: Writer, statement: str, run_id: str, rows: Sequence[dict[str, Any]]) -> int:
    return writer.database.run_many(statement, [_rows[statement]({**row, "run_id": run_id}) for row in rows])


def _finish_import(
    writer: Writer, run: RunKey, token: str, image: RunImage, now: Timestamp
) -> tuple[RunStatus | Refused | None, Effects]:
    database = writer.database
    if database.row("keep_import", {"run_id": run.run_id, "token": token, "now": now}) is None:
        return None, NO_EFFECTS
    if (refusal := _taken(writer, run, image)) is not None:
        return refusal, NO_EFFECTS
    database.row("end_import", {"run_id": run.run_id, "token": token})
    writer.namespaces.ensure(run.namespace, now)
    database.run("import_run", _run_row(writer, run, image, now))
    for key, value in image.labels.items():
        database.run("import_label", (run.namespace, key, value, image.created_at, run.run_id))
    _insert(writer, "stage_steps", run.run_id, payload_rows(image))
    database.run("recount_unread", (run.run_id,))
    return _join(writer, run, image, now)


def _join(writer: Writer, run: RunKey, image: RunImage, now: Timestamp) -> tuple[RunStatus, Effects]:
    """Connects the run with the runs it waits for, and with those that wait for it."""
    database = writer.database
    if image.status.ended:
        return image.status, merge([*_notify(writer, run, image, now), import_effects(run, image, image.status)])
    for (child,) in database.rows("watch_children", msgspec.structs.asdict(run)):
        writer.fences.forget(child)
    for child, step_id in database.rows("ended_children", msgspec.structs.asdict(run)):
        give_result(writer, run, step_id, child, now)
    database.run("recount_open_steps", (run.run_id,))
    row = database.row("import_state", (run.run_id,))
    assert row is not None  # it was just inserted
    status = RunStatus.PENDING if row[0] == RunCode.PENDING else image.status
    return status, import_effects(run, image, status)


def _notify(writer: Writer, run: RunKey, image: RunImage, now: Timestamp) -> list[Effects]:
    """Gives the result to runs that were imported earlier and wait for it."""
    waiting: list[Row] = writer.database.rows("links_of", (run.namespace, run.run_id)) if image.watched else []
    if image.watched and image.parent_run_id is not None:
        waiting.append((image.parent_run_id, image.parent_step_id))
    return [give_result(writer, RunKey(run.namespace, parent), step, run.run_id, now) for parent, step in waiting]


def _taken(writer: Writer, run: RunKey, image: RunImage) -> Refused | None:
    active = writer.database.row("active_run", (run.namespace, image.workflow_id))
    requested = writer.database.row("run_of_request", (run.namespace, image.request_id))
    return refuse_import(image, active[0] if active else None, requested[0] if requested else None)


def _run_row(writer: Writer, run: RunKey, image: RunImage, now: Timestamp) -> dict[str, Any]:
    blocker = writer.database.row("open_blocker", (image.blocked_by, run.namespace)) if image.blocked_by else None
    row = run_row(run, image, now, blocked=blocker is not None)
    return row | {"cancel_lease": None if image.cancel_requested_at is None else image.lease}
