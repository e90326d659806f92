"""Export and import of runs."""

from collections.abc import Sequence
from typing import Any

import msgspec

from ....core.records import RunKey
from ....core.run.outcomes import Refused, Stirred
from ....core.states import RunStatus
from ....core.times import Timestamp
from ....core.transfers.images import AttemptImage, LinkImage, Part, RunImage, SignalImage, StepImage
from ...images import (
    attempt_row,
    payload_rows,
    read_attempt_image,
    read_run_image,
    read_signal_image,
    read_step_image,
    refuse_import,
    run_row,
    signal_row,
    step_row,
)
from ...protocol.transfers import Entrance, Imported
from ...rows import write_json
from ..connection.connection import Database, Record, Row
from ..connection.connections import Lanes
from ..statements import row_of
from ..write.endings import give_result
from ..write.fast_path import Writer

_rows = {name: row_of(name) for name in ("stage_steps", "stage_attempts", "stage_signals", "stage_links")}


class TransferDesk(Lanes):
    """Keeps `store.protocol.TransferVerbs`."""

    async def export_run(self, run: RunKey) -> RunImage | None:
        row = await self._read(Database.record, "export_run", (run.run_id, run.namespace))
        return None if row is None else read_run_image(row)

    async def export_steps(self, run: RunKey, after_begun_seq: int, limit: int) -> Sequence[StepImage]:
        rows = await self._export(run, "export_steps", (run.run_id, after_begun_seq, limit), limit)
        return [read_step_image(row) for row in rows]

    async def export_attempts(self, run: RunKey, after: tuple[str, int], limit: int) -> Sequence[AttemptImage]:
        values = {"run_id": run.run_id, "step_id": after[0], "seq": after[1], "limit": limit}
        return [read_attempt_image(row) for row in await self._export(run, "export_attempts", values, limit)]

    async def export_signals(self, run: RunKey, after_number: int, limit: int) -> Sequence[SignalImage]:
        rows = await self._export(run, "export_signals", (run.run_id, after_number, limit), limit)
        return [read_signal_image(row) for row in rows]

    async def export_links(self, run: RunKey, after_step_id: str, limit: int) -> Sequence[LinkImage]:
        values = {**msgspec.structs.asdict(run), "step_id": after_step_id, "limit": limit}
        rows = await self._export(run, "export_links", values, limit)
        return [LinkImage(step_id=row["step_id"], child_run_id=row["child_run_id"]) for row in rows]

    async def _export(
        self, run: RunKey, statement: str, values: Sequence[Any] | dict[str, Any], limit: int
    ) -> Sequence[Record]:
        rows, _ = await self._scan(run.namespace, Database.page, statement, values, limit)
        return rows

    async def begin_import(self, run_id: str, token: str, now: Timestamp, stale_before: Timestamp) -> Entrance:
        return await self._change(_begin_import, run_id, token, now, stale_before)

    async def known_runs(self, namespace: str, run_ids: Sequence[str]) -> Sequence[str]:
        rows = await self._read(Database.rows, "known_runs", (write_json(list(run_ids)), namespace))
        return [row[0] for row in rows]

    async def stage_import(self, run: RunKey, token: str, parts: Sequence[Part], now: Timestamp) -> int | None:
        return await self._change(_stage_import, run, token, parts, now)

    async def finish_import(
        self, run: RunKey, token: str, image: RunImage, now: Timestamp
    ) -> Imported | Refused | None:
        return await self._change(_finish_import, run, token, image, now)

    async def abandon_imports(self, *, token: str = "", stale_before: Timestamp = 0) -> None:
        await self._change(_abandon_imports, {"token": token, "stale_before": stale_before})


def _begin_import(writer: Writer, run_id: str, token: str, now: Timestamp, stale_before: Timestamp) -> Entrance:
    if writer.database.row("any_run", (run_id,)) is not None:
        return "exists"
    under_way = writer.database.row("import_under_way", (run_id,))
    if under_way is not None and under_way[0] != token and under_way[1] >= stale_before:
        return "busy"
    for statement in ("clear_steps", "clear_attempts", "clear_signals", "clear_purging"):
        writer.database.run(statement, (run_id,))
    writer.database.run("put_import", {"run_id": run_id, "token": token, "now": now})
    return "open"


def _stage_import(writer: Writer, run: RunKey, token: str, parts: Sequence[Part], now: Timestamp) -> int | None:
    run_id = run.run_id
    if not writer.database.run("keep_import", {"run_id": run_id, "token": token, "now": now}):
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
    staged = sum(_insert(writer, statement, run_id, written) for statement, written in rows.items())
    return staged + _stage_attempts(writer, run_id, attempts)


def _stage_attempts(writer: Writer, run_id: str, attempts: Sequence[AttemptImage]) -> int:
    """Here attempts of a step are told apart by their begin. Elsewhere two may share it, if the step was reopened between them."""
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
) -> Imported | Refused | None:
    database = writer.database
    if not database.run("end_import", {"run_id": run.run_id, "token": token}):
        return None
    if (refusal := _taken(writer, run, image)) is not None:
        database.run(
            "put_import", {"run_id": run.run_id, "token": token, "now": now}
        )  # what is staged is still its own
        return refusal
    writer.namespaces.ensure(run.namespace, now)
    row = _run_row(writer, run, image, now)
    database.run("import_run", row)
    for key, value in image.labels.items():
        database.run("import_label", (run.namespace, key, value, image.created_at, run.run_id))
    _insert(writer, "stage_steps", run.run_id, payload_rows(image))
    return _join(writer, run, image, row, now)


def _join(writer: Writer, run: RunKey, image: RunImage, written: dict[str, Any], now: Timestamp) -> Imported:
    """It meets its relatives: those it waits for, and those who wait for it."""
    database = writer.database
    if image.status.ended:
        return Imported(image.status, stirred=_tell(writer, run, image, now))
    for (child,) in database.rows("watch_children", msgspec.structs.asdict(run)):
        writer.fences.forget(child)
    for child, step_id in database.rows("ended_children", msgspec.structs.asdict(run)):
        give_result(writer, run, step_id, child, now)
    row = database.row("import_state", (run.run_id,))
    assert row is not None  # it has just been made
    return Imported(RunStatus.PENDING if row[0] == 1 else image.status, wake_at=written["due_at"])


def _tell(writer: Writer, run: RunKey, image: RunImage, now: Timestamp) -> tuple[Stirred, ...]:
    """Who came before it and waits for its end, which was elsewhere."""
    waiting: list[Row] = writer.database.rows("links_of", (run.namespace, run.run_id)) if image.watched else []
    if image.watched and image.parent_run_id is not None:
        waiting.append((image.parent_run_id, image.parent_step_id))
    told = [give_result(writer, RunKey(run.namespace, parent), step, run.run_id, now) for parent, step in waiting]
    return tuple(stirred for stirred in told if stirred is not None)


def _taken(writer: Writer, run: RunKey, image: RunImage) -> Refused | None:
    active = writer.database.row("active_run", (run.namespace, image.workflow_id))
    requested = writer.database.row("run_of_request", (run.namespace, image.request_id))
    return refuse_import(image, active[0] if active else None, requested[0] if requested else None)


def _run_row(writer: Writer, run: RunKey, image: RunImage, now: Timestamp) -> dict[str, Any]:
    blocker = writer.database.row("open_blocker", (image.blocked_by, run.namespace)) if image.blocked_by else None
    row = run_row(run, image, now, blocked=blocker is not None)
    return row | {"cancel_lease": None if image.cancel_requested_at is None else image.lease}


def _abandon_imports(writer: Writer, which: dict[str, Any]) -> None:
    writer.database.run("abandon_imports", which)
    writer.database.run("forget_imports", which)
