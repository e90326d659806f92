"""Export of runs, and the beginning and the end of an import."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from ...core.ids import is_uuid
from ...core.records import RunKey
from ...core.times import Timestamp
from ...core.transfers.images import AttemptImage, ForgottenImage, LinkImage, RunImage, SignalImage, StepImage
from ..images import (
    read_attempt_image,
    read_forgotten_image,
    read_link_image,
    read_run_image,
    read_signal_image,
    read_step_image,
)
from ..protocol.transfers import Entrance
from ..rows import Row
from ..sessions import Purpose, Session, Sessions, first, verb

Image = TypeVar("Image", StepImage, AttemptImage, SignalImage, LinkImage, ForgottenImage)


async def _export_run(session: Session, run: RunKey) -> RunImage | None:
    if not is_uuid(run.run_id):
        return None
    row = await first(session, "export_run", run_id=run.run_id, namespace=run.namespace)
    return None if row is None else read_run_image(row)


async def _begin_import(session: Session, run_id: str, token: str, now: Timestamp, stale_before: Timestamp) -> Entrance:
    async with session.transaction():
        claimed = await session.read("claim_import", run_id=run_id, token=token, now=now, stale_before=stale_before)
        if await first(session, "any_run", run_id=run_id) is not None:
            await session.read("end_import", run_id=run_id, token=token)
            return "exists"
        if not claimed:
            return "busy"
        for statement in ("clear_steps", "clear_attempts", "clear_signals", "clear_forgotten_steps", "clear_purging"):
            await session.read(statement, run_id=run_id)
    return "open"


async def _known_runs(session: Session, namespace: str, run_ids: Sequence[str]) -> Sequence[str]:
    rows = await session.read("known_runs", run_ids=list(run_ids), namespace=namespace)
    return [row["run_id"] for row in rows]


async def _abandon_imports(session: Session, *, token: str = "", stale_before: Timestamp = 0) -> None:
    async with session.transaction():
        await session.read("purge_imports", token=token, stale_before=stale_before)
        await session.read("forget_imports", token=token, stale_before=stale_before)


class Transfers(Sessions):
    """Implements `store.protocol.TransferVerbs`, except the inserts of an imported run."""

    export_run = verb(Purpose.LOOKUP, _export_run)
    begin_import = verb(Purpose.WRITE, _begin_import)
    known_runs = verb(Purpose.READ, _known_runs)
    abandon_imports = verb(Purpose.WRITE, _abandon_imports)

    async def export_steps(self, run: RunKey, after_begun_seq: int, limit: int) -> Sequence[StepImage]:
        return await self._export(run, "export_steps", read_step_image, limit, after=after_begun_seq)

    async def export_attempts(self, run: RunKey, after: tuple[str, int], limit: int) -> Sequence[AttemptImage]:
        step_id, seq = after
        return await self._export(
            run, "export_attempts", read_attempt_image, limit, after_step_id=step_id, after_seq=seq
        )

    async def export_signals(self, run: RunKey, after_number: int, limit: int) -> Sequence[SignalImage]:
        return await self._export(run, "export_signals", read_signal_image, limit, after=after_number)

    async def export_links(self, run: RunKey, after_step_id: str, limit: int) -> Sequence[LinkImage]:
        return await self._export(
            run, "export_links", read_link_image, limit, after=after_step_id, namespace=run.namespace
        )

    async def export_forgotten_steps(self, run: RunKey, after: tuple[int, str], limit: int) -> Sequence[ForgottenImage]:
        retry_seq, step_id = after
        return await self._export(
            run,
            "export_forgotten_steps",
            read_forgotten_image,
            limit,
            after_retry_seq=retry_seq,
            after_step_id=step_id,
        )

    async def _export(
        self, run: RunKey, statement: str, read: Callable[[Row], Image], limit: int, /, **values: object
    ) -> Sequence[Image]:
        rows, _ = await self.run_scan(
            run.namespace, lambda session: session.page(statement, limit, run_id=run.run_id, **values)
        )
        return [read(row) for row in rows]
