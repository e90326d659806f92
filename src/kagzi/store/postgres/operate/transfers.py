"""Export and import of runs."""

from collections.abc import Sequence
from typing import Any

import msgspec

from ....core.errors import Unavailable
from ....core.ids import is_uuid
from ....core.records import RunKey
from ....core.run.outcomes import Refused, Stirred
from ....core.run.state import NEVER
from ....core.states import CODE_OF_RUN_STATUS, RunCode, RunStatus, StepKind, StepStatus
from ....core.times import Timestamp
from ....core.transfers.images import AttemptImage, LinkImage, Part, RunImage, SignalImage, StepImage, has_diverged
from ...columns import Use, columns
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
from ..connection.connection import Row, Session
from ..connection.connections import Links
from ..connection.failures import CONTENTION
from ..run.pages import read_page
from ..run.retry_and_fork import catch_up
from ..write.endings import MovedError, tell_parents

_TRIES = 5
_EVENT_KINDS = (StepKind.SLEEP, StepKind.SIGNAL, StepKind.CHILD)
_JSON = [column.name for column in columns(Use.IMPORTED) if column.type in {"json", "text[]"}]
_encode = msgspec.json.Encoder().encode


class TransferDesk(Links):
    """Keeps `store.protocol.TransferVerbs`."""

    async def export_run(self, run: RunKey) -> RunImage | None:
        if not is_uuid(run.run_id):
            return None
        async with self._readers.use(confirm=False) as session:
            rows = await session.read("export_run", run_id=run.run_id, namespace=run.namespace)
        return read_run_image(rows[0]) if rows else None

    async def export_steps(self, run: RunKey, after_begun_seq: int, limit: int) -> Sequence[StepImage]:
        rows = await self._export(run, "export_steps", limit, after=after_begun_seq)
        return [read_step_image(row) for row in rows]

    async def export_attempts(self, run: RunKey, after: tuple[str, int], limit: int) -> Sequence[AttemptImage]:
        step_id, seq = after
        rows = await self._export(run, "export_attempts", limit, after_step_id=step_id, after_seq=seq)
        return [read_attempt_image(row) for row in rows]

    async def export_signals(self, run: RunKey, after_number: int, limit: int) -> Sequence[SignalImage]:
        rows = await self._export(run, "export_signals", limit, after=after_number)
        return [read_signal_image(row) for row in rows]

    async def export_links(self, run: RunKey, after_step_id: str, limit: int) -> Sequence[LinkImage]:
        rows = await self._export(run, "export_links", limit, after=after_step_id, namespace=run.namespace)
        return [LinkImage(step_id=row["step_id"], child_run_id=row["child_run_id"]) for row in rows]

    async def begin_import(self, run_id: str, token: str, now: Timestamp, stale_before: Timestamp) -> Entrance:
        async with self._questions.use() as session, session.transaction():
            [row] = await session.read("begin_import", run_id=run_id, token=token, now=now, stale_before=stale_before)
            if row["mine"]:
                await session.read("clear_import", run_id=run_id)
        if row["there"]:
            return "exists"
        return "open" if row["mine"] else "busy"

    async def known_runs(self, namespace: str, run_ids: Sequence[str]) -> Sequence[str]:
        async with self._readers.use(confirm=False) as session:
            return [
                row["run_id"] for row in await session.read("known_runs", run_ids=list(run_ids), namespace=namespace)
            ]

    async def stage_import(self, run: RunKey, token: str, parts: Sequence[Part], now: Timestamp) -> int | None:
        async with self._questions.use() as session, session.transaction():
            if not await session.read("keep_import", run_id=run.run_id, token=token, now=now):
                return None
            return await _stage(session, run, parts)

    async def finish_import(
        self, run: RunKey, token: str, image: RunImage, now: Timestamp
    ) -> Imported | Refused | None:
        async with self._questions.use() as session:
            for _ in range(_TRIES):
                try:
                    async with session.transaction():
                        return await _finish(session, run, token, image, now)
                except _TakenError as taken:
                    return taken.refusal
                except (*CONTENTION, MovedError):
                    continue
        raise Unavailable(f"the parent or a child of run {run.run_id} is locked by another transaction. Try again.")

    async def abandon_imports(self, *, token: str = "", stale_before: Timestamp = 0) -> None:
        async with self._questions.use() as session:
            await session.write("abandon_imports", token=token, stale_before=stale_before)

    async def _export(self, run: RunKey, statement: str, limit: int, /, **values: object) -> Sequence[Row]:
        async with self._scan(run.namespace) as session:
            return (await read_page(session, statement, limit, run_id=run.run_id, limit=limit, **values))[0]


class _TakenError(Exception):
    """Rolls back, so that what is staged stays the import's own."""

    def __init__(self, refusal: Refused) -> None:
        super().__init__(refusal)
        self.refusal = refusal


async def _stage(session: Session, run: RunKey, parts: Sequence[Part]) -> int:
    steps = [step_row(part) | {"due_at": _due_at(part)} for part in parts if isinstance(part, StepImage)]
    attempts = [attempt_row(part) for part in parts if isinstance(part, AttemptImage)]
    signals = [signal_row(part) for part in parts if isinstance(part, SignalImage)]
    links = [part for part in parts if isinstance(part, LinkImage)]
    run_id = run.run_id
    staged = 0
    if steps:
        staged += len(await session.read("stage_steps", run_id=run_id, steps=steps))
    if attempts:
        staged += len(await session.read("stage_attempts", run_id=run_id, attempts=attempts))
    if signals:
        staged += len(await session.read("stage_signals", run_id=run_id, signals=signals))
    if links:
        children, step_ids = [link.child_run_id for link in links], [link.step_id for link in links]
        rows = await session.read(
            "stage_links", namespace=run.namespace, run_id=run_id, child_run_ids=children, step_ids=step_ids
        )
        staged += len(rows)
    return staged


async def _finish(session: Session, run: RunKey, token: str, image: RunImage, now: Timestamp) -> Imported | None:
    if not await session.read("end_import", run_id=run.run_id, token=token):
        return None
    [conflicts] = await session.read(
        "import_conflicts",
        namespace=run.namespace,
        workflow_id=image.workflow_id,
        request_id=image.request_id,
        blocked_by=image.blocked_by,
    )
    if (refusal := refuse_import(image, conflicts["active"], conflicts["requested"])) is not None:
        raise _TakenError(refusal)
    await session.read("create_namespaces", namespaces=[run.namespace], now=now)
    row = run_row(run, image, now, blocked=conflicts["blocked"])
    if not await session.read("import_run", row=_as_json(row), diverged=has_diverged(image)):
        raise MovedError  # somebody took one of its ids just now
    if image.labels:
        await session.read(
            "import_labels",
            namespace=run.namespace,
            created_at=image.created_at,
            run_id=run.run_id,
            keys=list(image.labels),
            values=list(image.labels.values()),
        )
    if payloads := [payload | {"due_at": None} for payload in payload_rows(image)]:
        await session.read("stage_steps", run_id=run.run_id, steps=payloads)
    return await _join(session, run, image, row, now)


async def _join(session: Session, run: RunKey, image: RunImage, written: dict[str, Any], now: Timestamp) -> Imported:
    """It meets its relatives: those it waits for, and those who wait for it."""
    if image.status.ended:
        stirred: tuple[Stirred, ...] = ()
        if image.watched:
            ends = [(run.run_id, RunCode(CODE_OF_RUN_STATUS[image.status]), image.error)]
            stirred = await tell_parents(session, ends, now)
        return Imported(image.status, stirred=stirred)
    await session.read("watch_children", run_id=run.run_id, namespace=run.namespace)
    await catch_up(session, run, now)
    [row] = await session.read("import_state", run_id=run.run_id)
    status = RunStatus.PENDING if row["status"] == RunCode.PENDING else image.status
    return Imported(status, wake_at=written["due_at"])


def _due_at(step: StepImage) -> Timestamp | None:
    """When the clock does something about it; open waits are found by having such a time."""
    if step.status is StepStatus.PENDING:
        return step.retry_at
    if step.status is not StepStatus.RUNNING or step.kind not in _EVENT_KINDS:
        return None
    return NEVER if step.wake_at is None else step.wake_at


def _as_json(row: dict[str, Any]) -> str:
    """A run as the statement reads it: what is JSON stands there as it is."""
    return _encode(row | {name: msgspec.Raw(row[name]) for name in _JSON if row[name] is not None}).decode()
