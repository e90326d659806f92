"""Runs on their way out of this store, and into it."""

from collections.abc import Sequence
from typing import Any

import msgspec

from ....core.effects import NO_EFFECTS, Effects, merge
from ....core.error_details import ErrorCode
from ....core.records import RunKey
from ....core.run.outcomes import Refused
from ....core.run.refusals import refused
from ....core.states import CODE_OF_ON_CLOSE, CODE_OF_RUN_STATUS, CODE_OF_WAIT_REASON, RunCode, RunStatus
from ....core.times import Timestamp
from ....core.transfers.effects import import_effects
from ....core.transfers.images import AttemptImage, LinkImage, Part, RunImage, SignalImage, StepImage, unchanged
from ...images import read_attempt_image, read_run_image, read_signal_image, read_step_image
from ...protocol.transfers import Entrance
from ...rows import write_error, write_json, write_policy, write_strings
from ..connection.connection import Database, Record, Row
from ..connection.connections import Lanes
from ..write.endings import give_result
from ..write.fast_path import Writer
from .import_rows import attempt_row, link_row, payload_rows, signal_row, step_row

_decode_builds = msgspec.json.Decoder(tuple[str, ...]).decode


class TransferDesk(Lanes):
    """Keeps `store.protocol.TransferVerbs`."""

    async def export_run(self, run: RunKey) -> RunImage | None:
        row = await self._read(Database.record, "export_run", (run.run_id, run.namespace))
        if row is None:
            return None
        return read_run_image(row, _decode_builds(row["tried_builds"]) if row["tried_builds"] else ())

    async def export_steps(self, run: RunKey, after_begun_seq: int, limit: int) -> Sequence[StepImage]:
        given = (run.run_id, after_begun_seq, limit)
        return [read_step_image(row) for row in await self._export(run, "export_steps", given, limit)]

    async def export_attempts(self, run: RunKey, after: tuple[str, int], limit: int) -> Sequence[AttemptImage]:
        given = {"run_id": run.run_id, "step_id": after[0], "seq": after[1], "limit": limit}
        return [read_attempt_image(row) for row in await self._export(run, "export_attempts", given, limit)]

    async def export_signals(self, run: RunKey, after_number: int, limit: int) -> Sequence[SignalImage]:
        rows = await self._export(run, "export_signals", (run.run_id, after_number, limit), limit)
        return [read_signal_image(row) for row in rows]

    async def export_links(self, run: RunKey, after_step_id: str, limit: int) -> Sequence[LinkImage]:
        given = {**msgspec.structs.asdict(run), "step_id": after_step_id, "limit": limit}
        rows = await self._export(run, "export_links", given, limit)
        return [LinkImage(step_id=row["step_id"], child_run_id=row["child_run_id"]) for row in rows]

    async def _export(
        self, run: RunKey, statement: str, given: Sequence[Any] | dict[str, Any], limit: int
    ) -> Sequence[Record]:
        rows, _ = await self._scan(run.namespace, Database.page, statement, given, limit)
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
    ) -> tuple[RunStatus | Refused | None, Effects]:
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
    rows: dict[str, list[tuple[Any, ...]]] = {}
    attempts: list[AttemptImage] = []
    for part in parts:
        match part:
            case StepImage():
                rows.setdefault("stage_steps", []).append(step_row(run_id, part))
            case AttemptImage():
                attempts.append(part)
            case SignalImage():
                rows.setdefault("stage_signals", []).append(signal_row(run_id, part))
            case LinkImage():
                rows.setdefault("stage_links", []).append(link_row(run, part))
    staged = sum(writer.database.run_many(statement, given) for statement, given in rows.items())
    return staged + _stage_attempts(writer, run_id, attempts)


def _stage_attempts(writer: Writer, run_id: str, attempts: Sequence[AttemptImage]) -> int:
    """Here attempts of a step are told apart by their begin. Elsewhere two may share it, if the step was reopened between them."""
    staged = 0
    for attempt in attempts:
        new = writer.database.run_many("stage_attempts", [attempt_row(run_id, attempt)])
        if not new:
            later = msgspec.structs.replace(attempt, begun_seq=attempt.seq)
            new = writer.database.run_many("stage_attempts", [attempt_row(run_id, later)])
        staged += new
    return staged


def _finish_import(
    writer: Writer, run: RunKey, token: str, image: RunImage, now: Timestamp
) -> tuple[RunStatus | Refused | None, Effects]:
    database = writer.database
    if not database.run("end_import", {"run_id": run.run_id, "token": token}):
        return None, NO_EFFECTS
    if (refusal := _taken(writer, run, image)) is not None:
        database.run(
            "put_import", {"run_id": run.run_id, "token": token, "now": now}
        )  # what is staged is still its own
        return refusal, NO_EFFECTS
    writer.namespaces.ensure(run.namespace, now)
    database.run("import_run", _run_row(writer, run, image, now))
    for key, value in image.labels.items():
        database.run("import_label", (run.namespace, key, value, image.created_at, run.run_id))
    payloads = payload_rows(run.run_id, image)
    if payloads:
        database.run_many("stage_steps", payloads)
    return _join(writer, run, image, now)


def _join(writer: Writer, run: RunKey, image: RunImage, now: Timestamp) -> tuple[RunStatus, Effects]:
    """It meets its relatives: those it waits for, and those who wait for it."""
    database = writer.database
    if image.status.ended:
        return image.status, merge([*_notify(writer, run, image, now), import_effects(run, image, image.status)])
    for (child,) in database.rows("watch_children", msgspec.structs.asdict(run)):
        writer.fences.forget(child)
    for child, step_id in database.rows("ended_children", msgspec.structs.asdict(run)):
        give_result(writer, run, step_id, child, now)
    row = database.row("import_state", (run.run_id,))
    assert row is not None  # it has just been made
    status = RunStatus.PENDING if row[0] == RunCode.PENDING else image.status
    return status, import_effects(run, image, status)


def _notify(writer: Writer, run: RunKey, image: RunImage, now: Timestamp) -> list[Effects]:
    """Who came before it and waits for its end, which was elsewhere."""
    waiting: list[Row] = writer.database.rows("links_of", (run.namespace, run.run_id)) if image.watched else []
    if image.watched and image.parent_run_id is not None:
        waiting.append((image.parent_run_id, image.parent_step_id))
    return [give_result(writer, RunKey(run.namespace, parent), step, run.run_id, now) for parent, step in waiting]


def _taken(writer: Writer, run: RunKey, image: RunImage) -> Refused | None:
    active = None if image.status.ended else writer.database.row("active_run", (run.namespace, image.workflow_id))
    if active is not None:
        return refused(
            ErrorCode.CONFLICT,
            f"workflow_id {image.workflow_id!r} belongs to an active run here, {active[0]}. Wait for its end, or terminate it.",
            subject="workflow_id",
            subject_id=image.workflow_id,
        )
    other = writer.database.row("run_of_request", (run.namespace, image.request_id))
    if other is not None:
        return refused(
            ErrorCode.CONFLICT,
            f"request_id {image.request_id!r} belongs to another run here, {other[0]}: the same start was made here, too.",
            subject="request_id",
            subject_id=image.request_id,
        )
    return None


def _run_row(writer: Writer, run: RunKey, image: RunImage, now: Timestamp) -> dict[str, Any]:
    status = image.status
    blocked_by = image.blocked_by
    if blocked_by and writer.database.row("open_blocker", (blocked_by, run.namespace)) is None:
        blocked_by = None
        status = RunStatus.PENDING if status is RunStatus.SLEEPING else status
    sleeping = status is RunStatus.SLEEPING
    return {
        **unchanged(image),
        "run_id": run.run_id,
        "namespace": run.namespace,
        "status": CODE_OF_RUN_STATUS[status],
        "wait_reason": CODE_OF_WAIT_REASON[image.wait_reason] if sleeping and image.wait_reason else None,
        "seq": image.last_seq,
        "retry": write_policy(image.retry),
        "labels": write_strings(image.labels),
        "on_close": None if image.on_close is None else CODE_OF_ON_CLOSE[image.on_close],
        "concurrency_key": image.concurrency_key or None,
        "blocked_by": blocked_by,
        "ready_at": (image.ready_at or now) if status is RunStatus.PENDING else None,
        "due_at": image.wake_at if sleeping else None,
        "paused_due_at": image.paused_wake_at,
        "cancel_lease": None if image.cancel_requested_at is None else image.lease,
        "tried_builds": write_json(image.tried_builds) if image.tried_builds else None,
        "error": None if image.error is None else write_error(image.error),
        "problem": None if image.problem is None else write_error(image.problem),
    }


def _abandon_imports(writer: Writer, given: dict[str, Any]) -> None:
    writer.database.run("abandon_imports", given)
    writer.database.run("forget_imports", given)
