"""SqliteStore: lifecycle, and each verb handed to the thread that does it."""

from collections.abc import Callable, Sequence
from typing import Concatenate, ParamSpec, TypeVar

from ...core.commands import Command, SignalGiven
from ...core.cursor import Cursor
from ...core.errors import Unavailable
from ...core.outcomes import Existing, Outcome, Refused, Started
from ...core.records import (
    ClaimedRun,
    Held,
    HistoryPage,
    Lease,
    NamespaceRecord,
    Rows,
    RunEnd,
    RunFilter,
    RunKey,
    RunRecord,
    Served,
    StepRecord,
    WorkerRecord,
)
from ...core.seams import Dice
from ...core.states import RunStatus, WorkerStatus
from ...core.times import Timestamp
from ..protocol import (
    Cancelled,
    Cascaded,
    Changed,
    Fired,
    Fork,
    Horizon,
    LeaseTerms,
    Renewal,
    Signalled,
    TypeKey,
    Want,
    WorkerBeat,
)
from . import children, claims, control, leases, namespaces, rewind, signals, steps, timers, workers
from . import runs as run_rows
from .connection import MEMORY, Database, Lane, check_library, connect
from .migrate import apply_migrations, behind, check_schema, file_exists, schema_status
from .wave import Writer
from .write import write

Answer = TypeVar("Answer")
Given = ParamSpec("Given")


class SqliteStore:
    """Keeps `store.protocol.Store` in one SQLite file, or in memory. One thread writes; for a file another one reads."""

    name = "sqlite"

    def __init__(self, path: str, *, dice: Dice) -> None:
        self._path = path
        self._dice = dice
        self._writing = Lane("kagzi-sqlite-writer")
        self._reading = self._writing if path == MEMORY else Lane("kagzi-sqlite-reader")
        self._writer: Writer | None = None
        self._reader: Database | None = None
        self.statements = 0
        self.transactions = 0

    async def open(self) -> None:
        if self._writer is not None:
            return
        check_library()
        if self._path != MEMORY and not file_exists(self._path):
            raise behind(self._path, schema_status([], self._path))
        self._writing.start()
        try:
            database = await self._writing.call(self._open_database)
            self._writer = Writer(database, self._dice)
            self._reader = database
            if self._reading is not self._writing:
                self._reading.start()
                self._reader = await self._reading.call(_open_reader, self._path)
        except BaseException:
            await self.close()
            raise

    def _open_database(self) -> Database:
        database = connect(self._path)
        try:
            if self._path == MEMORY:
                apply_migrations(database, self._path)
            check_schema(database, self._path)
        except BaseException:
            database.close()
            raise
        return database

    async def close(self) -> None:
        """Finish what is queued, fold the write-ahead log into the file, end the threads. Idempotent."""
        if self._reading is not self._writing:
            await self._reading.close(self._reader.close if self._reader else None)
        await self._writing.close(self._writer.database.checkpoint_and_close if self._writer else None)

    async def _change(
        self, act: Callable[Concatenate[Writer, Given], Answer], *args: Given.args, **kwargs: Given.kwargs
    ) -> Answer:
        """In one transaction, in the thread that writes."""
        return await self._write(lambda writer: _transact(writer, act, *args, **kwargs))

    async def _write(self, act: Callable[[Writer], Answer]) -> Answer:
        if (writer := self._writer) is None:
            raise _not_open()
        try:
            return await self._writing.call(act, writer)
        finally:
            self._count()

    async def _read(
        self, act: Callable[Concatenate[Database, Given], Answer], *args: Given.args, **kwargs: Given.kwargs
    ) -> Answer:
        """From one snapshot, in the thread that reads."""
        if (reader := self._reader) is None:
            raise _not_open()
        try:
            return await self._reading.call(lambda: _snapshot(reader, act, *args, **kwargs))
        finally:
            self._count()

    def _count(self) -> None:
        writer, reader = self._writer, self._reader
        if writer is not None and reader is not None:
            self.transactions = writer.database.transactions
            self.statements = writer.database.statements
            if reader is not writer.database:
                self.statements += reader.statements

    # --- hot ---------------------------------------------------------------------------------------------------------

    async def write(self, batch: Sequence[Command], now: Timestamp, terms: LeaseTerms) -> Sequence[Outcome]:
        return await self._write(lambda writer: write(writer, batch, now, terms)) if batch else []

    async def claim(self, wants: Sequence[Want], nonce: int, now: Timestamp, until: Timestamp) -> Sequence[ClaimedRun]:
        return await self._change(claims.claim, wants, nonce, now, until) if wants else []

    async def history(self, run: RunKey, lease: Lease, after: int) -> HistoryPage | None:
        return await self._read(claims.history, run, lease, after)

    async def renew(self, held: Sequence[Held], now: Timestamp, until: Timestamp) -> Renewal:
        return await self._change(leases.renew, held, until) if held else Renewal((), ())

    async def cut(self, held: Sequence[Held], until: Timestamp) -> None:
        if held:
            await self._change(leases.cut, held, until)

    async def release(self, held: Sequence[Held], now: Timestamp) -> Sequence[TypeKey]:
        return await self._change(leases.release, held, now) if held else ()

    async def fire(self, now: Timestamp, *, end_leases: bool, limit: int, claim_cap: int = 10) -> Fired:
        return await self._change(timers.fire, now, end_leases, limit, claim_cap)

    async def look(self, beats: Sequence[WorkerBeat], now: Timestamp) -> Horizon:
        if beats:
            await self._change(timers.note_beats, beats)
        return await self._read(timers.look)

    # --- runs --------------------------------------------------------------------------------------------------------

    async def get_run(self, namespace: str, *, run_id: str = "", workflow_id: str = "") -> RunRecord | None:
        return await self._read(run_rows.get_run, namespace, run_id, workflow_id)

    async def list_runs(self, namespace: str, where: RunFilter, cursor: Cursor | None, limit: int) -> Rows[RunRecord]:
        return await self._read(run_rows.list_runs, namespace, where, cursor, limit)

    async def count_runs(self, namespace: str, where: RunFilter, cap: int) -> int:
        return await self._read(run_rows.count_runs, namespace, where, cap)

    async def ends_of(self, runs: Sequence[RunKey]) -> Sequence[RunEnd | RunStatus | None]:
        return await self._read(run_rows.ends_of, runs) if runs else []

    async def cancel_run(self, run: RunKey, reason: str, now: Timestamp, cancel_by: Timestamp) -> Cancelled | None:
        return await self._change(run_rows.cancel_run, run, reason, now, cancel_by)

    async def signal_run(
        self, namespace: str, *, run_id: str = "", workflow_id: str = "", signal: SignalGiven, now: Timestamp
    ) -> Signalled | Refused | None:
        return await self._change(signals.signal_run, namespace, run_id, workflow_id, signal, now)

    async def terminate_run(self, run: RunKey, reason: str, now: Timestamp) -> Changed | None:
        return await self._change(control.terminate_run, run, reason, now)

    async def pause_run(self, run: RunKey, reason: str, now: Timestamp) -> Changed | None:
        return await self._change(control.pause_run, run, reason, now)

    async def resume_run(self, run: RunKey, now: Timestamp) -> Changed | None:
        return await self._change(control.resume_run, run, now)

    async def retry_run(self, run: RunKey, from_step: str, request_id: str, now: Timestamp) -> Changed | Refused | None:
        return await self._change(rewind.retry_run, run, from_step, request_id, now)

    async def fork_run(self, fork: Fork, now: Timestamp) -> Started | Existing | Refused | None:
        return await self._change(rewind.fork_run, fork, now)

    async def resume_diverged(
        self, namespace: str, served: Sequence[Served], build_id: str, now: Timestamp
    ) -> Sequence[TypeKey]:
        return await self._change(control.resume_diverged, namespace, served, build_id, now) if served else ()

    async def cascade(self, now: Timestamp, cancel_by: Timestamp, limit: int) -> Cascaded:
        return await self._change(children.cascade, now, cancel_by, limit)

    # --- steps -------------------------------------------------------------------------------------------------------

    async def list_steps(
        self, run: RunKey, *, name: str | None, after_begun_seq: int, limit: int, payloads: bool
    ) -> Rows[StepRecord] | None:
        return await self._read(
            steps.list_steps, run, name=name, after_begun_seq=after_begun_seq, limit=limit, payloads=payloads
        )

    async def get_step(self, run: RunKey, step_id: str) -> StepRecord | None:
        return await self._read(steps.get_step, run, step_id)

    # --- workers and namespaces --------------------------------------------------------------------------------------

    async def register_worker(self, worker: WorkerRecord, now: Timestamp) -> None:
        await self._change(workers.register_worker, worker, now)

    async def set_worker_status(self, namespace: str, worker_id: str, status: WorkerStatus, now: Timestamp) -> bool:
        return await self._change(workers.set_worker_status, namespace, worker_id, status, now)

    async def worker_left(
        self, namespace: str, worker_id: str, now: Timestamp, *, hand_back: bool
    ) -> Sequence[TypeKey] | None:
        return await self._change(workers.worker_left, namespace, worker_id, now, hand_back)

    async def get_worker(self, namespace: str, worker_id: str) -> WorkerRecord | None:
        return await self._read(workers.get_worker, namespace, worker_id)

    async def list_workers(
        self,
        namespace: str,
        *,
        workflow_type: str | None,
        status: WorkerStatus | None,
        cursor: Cursor | None,
        limit: int,
    ) -> Rows[WorkerRecord]:
        return await self._read(
            workers.list_workers, namespace, workflow_type=workflow_type, status=status, cursor=cursor, limit=limit
        )

    async def get_namespace(self, namespace: str) -> NamespaceRecord | None:
        return await self._read(namespaces.find_namespace, namespace)

    async def put_namespace(self, record: NamespaceRecord, now: Timestamp) -> None:
        await self._change(_put_namespace, record, now)


def _put_namespace(writer: Writer, record: NamespaceRecord, now: Timestamp) -> None:
    writer.namespaces.put(record, now)


def _not_open() -> Unavailable:
    return Unavailable("the SQLite store is not open")


def _open_reader(path: str) -> Database:
    database = connect(path)
    database.execute("PRAGMA query_only = ON")
    return database


def _transact(
    writer: Writer, act: Callable[Concatenate[Writer, Given], Answer], *args: Given.args, **kwargs: Given.kwargs
) -> Answer:
    writer.database.begin()
    try:
        answer = act(writer, *args, **kwargs)
        writer.database.commit()
    except BaseException:
        writer.forget_all()
        writer.database.rollback()
        raise
    return answer


def _snapshot(
    database: Database, act: Callable[Concatenate[Database, Given], Answer], *args: Given.args, **kwargs: Given.kwargs
) -> Answer:
    database.begin_snapshot()
    try:
        return act(database, *args, **kwargs)
    finally:
        database.rollback()
