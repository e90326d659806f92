"""Export and import of runs as lines of JSON: see core/transfers for the format."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from ...core import limits
from ...core.checks.refused_requests import error_of
from ...core.errors import (
    AlreadyExists,
    InvalidArgument,
    PreconditionFailed,
    ResourceExhausted,
    Unavailable,
    limit_reached,
)
from ...core.ids import is_of, made_of
from ...core.limits import Settings
from ...core.providers import Clock, Ids
from ...core.records import RunFilter, RunKey
from ...core.run.outcomes import Refused
from ...core.states import OPEN
from ...core.text.lines import LineBuffer
from ...core.text.plurals import counted
from ...core.times import US_PER_S, Timestamp
from ...core.transfers.images import (
    AttemptImage,
    Digest,
    End,
    ForgottenImage,
    LinkImage,
    Part,
    RunImage,
    SignalImage,
    StepImage,
    as_imported,
    read_line,
    write_end_line,
    write_part_line,
    write_run_line,
)
from ...core.transfers.renaming import Rename, renamed, runs_named
from ...core.workflow_types.names import canonical_type
from ...store.protocol import Store
from ..checks import requests as checks
from ..checks.transfers import Checker, on_line
from ..commit.dispatcher import Dispatcher
from .namespaces import Namespaces

STALE_S = 60.0
_TRIES = 5
_ORDER = (StepImage, AttemptImage, SignalImage, LinkImage, ForgottenImage)

Image = TypeVar("Image", bound=Part)


class ImportAnswer(msgspec.Struct, frozen=True):
    run_id: str
    already_exists: bool


class Transfers:
    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        ids: Ids,
        settings: Settings,
        namespaces: Namespaces,
        dispatcher: Dispatcher,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._payload_bytes = settings.payload_bytes
        self._namespaces = namespaces
        self._dispatcher = dispatcher

    # --- export -------------------------------------------------------------------------------------------------------

    async def export(self, namespace: str, run_id: str) -> AsyncIterator[bytes]:
        """Yields lines. Raises NotFound, PreconditionFailed if the run changes during the export."""
        run = checks.key(namespace, run_id)
        for _ in range(_TRIES):
            image = await self._store.export_run(run)
            if image is None:
                raise checks.no_run(run_id)
            lines = self._lines(run, image)
            leased: list[bytes] = []
            size = 0
            async for line in lines:
                leased.append(line)
                size += len(line)
                if size > limits.TRANSFER_BYTES:
                    break
            else:
                if await self._moved(run, image):
                    continue  # nothing was sent yet: start over
                for line in leased:
                    yield line
                return
            for line in leased:
                yield line
            async for line in lines:
                if line.startswith(b'{"end"') and await self._moved(run, image):
                    raise _moved(run_id)
                yield line
            return
        raise _moved(run_id)

    async def _moved(self, run: RunKey, before: RunImage) -> bool:
        """Every change to a run's history changes its seq, every claim or release its lease or status."""
        now = await self._store.export_run(run)
        return now is None or (now.last_seq, now.lease, now.status) != (before.last_seq, before.lease, before.status)

    async def _lines(self, run: RunKey, image: RunImage) -> AsyncIterator[bytes]:
        counts = dict.fromkeys(_ORDER, 0)
        yield write_run_line(image)
        async for part in self._parts(run):
            counts[type(part)] += 1
            yield write_part_line(part)
        yield write_end_line(End(**dict(zip(End.__struct_fields__, counts.values(), strict=True))))

    async def _parts(self, run: RunKey) -> AsyncIterator[Part]:
        store = self._store
        async for step in _paged(lambda last, rows: store.export_steps(run, last.begun_seq if last else 0, rows)):
            yield step
        async for attempt in _paged(
            lambda last, rows: store.export_attempts(run, (last.step_id, last.seq) if last else ("", 0), rows)
        ):
            yield attempt
        async for signal in _paged(lambda last, rows: store.export_signals(run, last.number if last else 0, rows)):
            yield signal
        async for link in _paged(lambda last, rows: store.export_links(run, last.step_id if last else "", rows)):
            yield link
        async for discarded in _paged(
            lambda last, rows: store.export_forgotten_steps(
                run, (last.retry_seq, last.step_id) if last else (0, ""), rows
            )
        ):
            yield discarded

    # --- import -------------------------------------------------------------------------------------------------------

    async def import_run(self, namespace: str, chunks: AsyncIterator[bytes]) -> ImportAnswer:
        """Imports one run. Raises InvalidArgument, AlreadyExists (its id exists with other content, or its workflow_id
        is active), ResourceExhausted, PreconditionFailed, Unavailable; then nothing is imported.

        Every id is mapped to this namespace (core/ids): it refers to a run here or to none, and whether an id exists in
        another namespace is neither checked nor revealed.
        """
        await self._namespaces.check(namespace)
        incoming = _Incoming(chunks, self._payload_bytes, _Renaming(self._store, namespace))
        image = await incoming.run()
        run = RunKey(namespace, image.run_id)
        await self._refuse_full(namespace, image)
        token = self._ids.token()
        entrance = await self._store.begin_import(image.run_id, token, *self._times())
        if entrance == "busy":
            raise Unavailable(f"run {image.run_id} is being imported by another client. Try again later.")
        if entrance == "exists":
            return await self._compare(run, incoming)
        try:
            return await self._bring_in(run, token, image, incoming)
        except BaseException:
            # Also if the caller disconnects: staged rows must not stay.
            await asyncio.shield(self._store.abandon_imports(token=token))
            raise

    async def _bring_in(self, run: RunKey, token: str, image: RunImage, incoming: "_Incoming") -> ImportAnswer:
        async for parts in incoming.batches():
            staged = await self._store.import_parts(run, token, parts, self._clock.now())
            if staged is None:
                raise Unavailable(f"the import of run {run.run_id} took too long between two pieces. Try again.")
            if staged != len(parts):
                raise InvalidArgument(
                    f"lines up to {incoming.number} contain the same step, attempt or signal twice.",
                    field=f"line {incoming.number}",
                )
        imported, effects = await self._store.finish_import(run, token, as_imported(image), self._clock.now())
        if imported is None:
            raise Unavailable(f"the import of run {run.run_id} took too long. Try again.")
        if isinstance(imported, Refused):
            raise error_of(imported.error)
        self._dispatcher.dispatch(effects)
        return ImportAnswer(run.run_id, already_exists=False)

    async def _compare(self, run: RunKey, incoming: "_Incoming") -> ImportAnswer:
        """The same run may be imported twice: its content decides."""
        async for _ in incoming.batches():
            pass
        there = await self._store.export_run(run)
        if there is not None:
            digest = Digest()
            digest.add(there)
            async for part in self._parts(run):
                digest.add(part)
            if digest == incoming.digest:
                return ImportAnswer(run.run_id, already_exists=True)
        raise AlreadyExists(
            f"run {run.run_id} already exists with other content: it has continued here or there. "
            "Delete it first to replace it.",
            subject="run",
            subject_id=run.run_id,
        )

    async def _refuse_full(self, namespace: str, image: RunImage) -> None:
        record = await self._store.get_namespace(namespace)
        if record is None:
            return
        if not record.enabled or record.deleting:
            raise PreconditionFailed(
                f"namespace {namespace} is disabled. Enable it first.", subject="namespace", subject_id=namespace
            )
        limit = record.open_runs_limit
        if limit is None or image.status.ended:
            return
        if await self._store.count_runs(namespace, RunFilter(statuses=tuple(OPEN)), limit) >= limit:
            raise ResourceExhausted(
                f"namespace {namespace} has {counted(limit, 'open run')}, its limit (open_runs_limit). "
                "Wait until some have ended, or raise the limit.",
                metadata=limit_reached("open_runs_limit", limit),
            )

    async def sweep(self, now: Timestamp) -> bool:
        """A chore: abandons imports whose server died."""
        await self._store.abandon_imports(stale_before=now - int(10 * STALE_S * US_PER_S))
        return False

    def _times(self) -> tuple[Timestamp, Timestamp]:
        now = self._clock.now()
        return now, now - int(STALE_S * US_PER_S)


class _Renaming:
    """Maps run ids to one namespace. Ids of its existing runs stay unchanged: older ids do not contain a hash of the
    namespace."""

    def __init__(self, store: Store, namespace: str) -> None:
        self._store = store
        self._namespace = namespace
        self._keeps_all = False

    async def run(self, image: RunImage) -> RunImage:
        """If the run exists here under exactly this id, its lines are only compared, without renaming."""
        rename = await self._for([image])
        self._keeps_all = rename(image.run_id) == image.run_id and not is_of(self._namespace, image.run_id)
        return image if self._keeps_all else renamed(image, rename)

    async def parts(self, parts: Sequence[Part]) -> Sequence[Part]:
        if self._keeps_all:
            return parts
        rename = await self._for(parts)
        return [renamed(part, rename) for part in parts]

    async def _for(self, items: Sequence[RunImage | Part]) -> Rename:
        foreign = sorted({each for item in items for each in runs_named(item) if not is_of(self._namespace, each)})
        known = frozenset(await self._store.known_runs(self._namespace, foreign)) if foreign else frozenset[str]()
        return lambda run_id: run_id if run_id in known else made_of(self._namespace, run_id)


class _Incoming:
    """The lines of an incoming run: checked, counted, and held in memory only as long as needed."""

    def __init__(self, chunks: AsyncIterator[bytes], payload_bytes: int, renaming: _Renaming) -> None:
        self._lines = _lines_of(chunks)
        self._renaming = renaming
        self._checker = Checker(payload_bytes)
        self.number = 0
        self.digest = Digest()

    async def run(self) -> RunImage:
        item = await self._next()
        if not isinstance(item, RunImage):
            raise InvalidArgument(
                "line 1 is not a run: an export begins with one. Import files that `kagzi export` made.", field="line 1"
            )
        with on_line(self.number):
            self._checker.run(item)
        item = msgspec.structs.replace(item, workflow_type=canonical_type(item.workflow_type))
        item = await self._renaming.run(item)
        self.digest.add(item)
        return item

    async def batches(self) -> AsyncIterator[Sequence[Part]]:
        """Up to its end line. Raises InvalidArgument."""
        batch: list[Part] = []
        place, size = 0, 0
        while not isinstance(item := await self._next(), End):
            if isinstance(item, RunImage):
                raise self._refused("is another run, but the one before has no end line: its export was cut off.")
            with on_line(self.number):
                self._checker.part(item)
            if _ORDER.index(type(item)) < place:
                raise self._refused(
                    "is out of order: steps, attempts, signals, links and forgotten steps come in this order."
                )
            place = _ORDER.index(type(item))
            batch.append(item)
            size += self._size
            if len(batch) >= limits.TRANSFER_ROWS or size >= limits.TRANSFER_BYTES:
                yield await self._taken_in(batch)
                batch, size = [], 0
        with on_line(self.number):
            self._checker.end(item)
        if (await anext(self._lines, None)) is not None:
            self.number += 1
            raise self._refused("comes after the end of the run.")
        if batch:
            yield await self._taken_in(batch)

    async def _taken_in(self, batch: Sequence[Part]) -> Sequence[Part]:
        parts = await self._renaming.parts(batch)
        for part in parts:
            self.digest.add(part)
        return parts

    async def _next(self) -> RunImage | Part | End:
        data = await anext(self._lines, None)
        self.number += 1
        if data is None:
            raise InvalidArgument(
                f"the run ends after line {self.number - 1} without an end line: it was cut off. Export it again.",
                field=f"line {self.number}",
            )
        self._size = len(data)
        return read_line(data, self.number)

    def _refused(self, message: str) -> InvalidArgument:
        return InvalidArgument(f"line {self.number} {message}", field=f"line {self.number}")


async def _lines_of(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Splits chunks into lines. Skips empty lines. Raises InvalidArgument for a line that is too long."""
    buffer = LineBuffer(skips_white=True)
    async for chunk in chunks:
        for line in buffer.add(chunk):
            yield line.strip()
        await asyncio.sleep(0)  # chunks that have arrived may be many, and contain nothing to wait for
        if len(buffer) > limits.TRANSFER_LINE_BYTES:
            raise InvalidArgument(
                f"a line has more than {limits.TRANSFER_LINE_BYTES} bytes, the limit. "
                "Import files that `kagzi export` made.",
                field="json",
            )
    if stripped := buffer.last().strip():
        yield stripped


async def _paged(
    read: Callable[[Image | None, int], Awaitable[Sequence[Image]]],
) -> AsyncIterator[Image]:
    """Reads all pages: the store limits a page by its size in bytes."""
    page = await read(None, limits.TRANSFER_ROWS)
    while page:
        for each in page:
            yield each
        page = await read(page[-1], limits.TRANSFER_ROWS)


def _moved(run_id: str) -> PreconditionFailed:
    return PreconditionFailed(
        f"run {run_id} changed while it was exported. Pause it, or stop its workers, and export it again.",
        subject="run",
        subject_id=run_id,
    )
