"""Imports runs: the statements that write them."""

from collections.abc import Sequence
from typing import Any

import msgspec

from ....core.effects import NO_EFFECTS, Effects, merge
from ....core.errors import Unavailable
from ....core.records import RunKey
from ....core.run.outcomes import Refused
from ....core.run.state import NEVER
from ....core.states import CODE_OF_RUN_STATUS, RunCode, RunStatus, StepKind, StepStatus
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
    has_diverged,
)
from ...columns import Use, columns
from ...images import attempt_row, forgotten_row, payload_rows, refuse_import, run_row, signal_row, step_row
from ...operate.transfers import Transfers
from ..connection.connection import Session
from ..connection.connections import Connections
from ..connection.failures import CONTENTION
from ..run.retry_and_fork import catch_up
from ..write.endings import MovedError, notify_parents

_TRIES = 5
_EVENT_KINDS = (StepKind.SLEEP, StepKind.SIGNAL, StepKind.CHILD)
_JSON = [column.name for column in columns(Use.IMPORTED) if column.type in {"json", "text[]"}]
_encode = msgspec.json.Encoder().encode


class PostgresTransfers(Transfers, Connections):
    """Implements `store.protocol.TransferVerbs`."""

    async def import_parts(self, run: RunKey, token: str, parts: Sequence[Part], now: Timestamp) -> int | None:
        async with self._questions.use() as session, session.transaction():
            if not await session.read("keep_import", run_id=run.run_id, token=token, now=now):
                return None
            return await _insert_parts(session, run, parts)

    async def finish_import(
        self, run: RunKey, token: str, image: RunImage, now: Timestamp
    ) -> tuple[RunStatus | Refused | None, Effects]:
        async with self._questions.use() as session:
            for _ in range(_TRIES):
                try:
                    async with session.transaction():
                        return await _finish(session, run, token, image, now)
                except _TakenError as taken:
                    return taken.refusal, NO_EFFECTS
                except (*CONTENTION, MovedError):
                    continue
        raise Unavailable(f"the parent or a child of run {run.run_id} is locked by another transaction. Try again.")


class _TakenError(Exception):
    """Rolls back, so that the staged rows still belong to the import."""

    def __init__(self, refusal: Refused) -> None:
        super().__init__(refusal)
        self.refusal = refusal


async def _insert_parts(session: Session, run: RunKey, parts: Sequence[Part]) -> int:
    steps = [step_row(part) | {"due_at": _due_at(part)} for part in parts if isinstance(part, StepImage)]
    attempts = [attempt_row(part) for part in parts if isinstance(part, AttemptImage)]
    signals = [signal_row(part) for part in parts if isinstance(part, SignalImage)]
    links = [part for part in parts if isinstance(part, LinkImage)]
    forgotten = [forgotten_row(part) for part in parts if isinstance(part, ForgottenImage)]
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
    if forgotten:
        staged += len(await session.read("stage_forgotten_steps", run_id=run_id, steps=forgotten))
    return staged


async def _finish(
    session: Session, run: RunKey, token: str, image: RunImage, now: Timestamp
) -> tuple[RunStatus | None, Effects]:
    if not await session.read("end_import", run_id=run.run_id, token=token):
        return None, NO_EFFECTS
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
        raise MovedError  # another transaction has just taken one of its ids
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
    return await _join(session, run, image, now)


async def _join(session: Session, run: RunKey, image: RunImage, now: Timestamp) -> tuple[RunStatus, Effects]:
    """Connects the run with the runs it waits for, and with those that wait for it."""
    if image.status.ended:
        ended = [(run.run_id, RunCode(CODE_OF_RUN_STATUS[image.status]), image.error)] if image.watched else []
        notified = await notify_parents(session, ended, now)
        return image.status, merge([notified, import_effects(run, image, image.status)])
    await session.read("watch_children", run_id=run.run_id, namespace=run.namespace)
    await catch_up(session, run, now)
    [row] = await session.read("import_state", run_id=run.run_id)
    status = RunStatus.PENDING if row["status"] == RunCode.PENDING else image.status
    return status, import_effects(run, image, status)


def _due_at(step: StepImage) -> Timestamp | None:
    """When a timer acts on the step. Open waits always have such a time, by which they are found."""
    if step.status is StepStatus.PENDING:
        return step.retry_at
    if step.status is not StepStatus.RUNNING or step.kind not in _EVENT_KINDS:
        return None
    return NEVER if step.wake_at is None else step.wake_at


def _as_json(row: dict[str, Any]) -> str:
    """A run as the statement reads it, with its JSON columns embedded as they are."""
    return _encode(row | {name: msgspec.Raw(row[name]) for name in _JSON if row[name] is not None}).decode()
