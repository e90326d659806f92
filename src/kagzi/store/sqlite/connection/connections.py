"""The threads of a store on SQLite, and its lifecycle. The classes of verbs build on this one."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from ....core import limits
from ....core.errors import Contended, Unavailable
from ....core.providers import Rng
from ...private_files import database_files, make_private
from ...scans import ScanTurns
from ...sessions import Purpose, Sessions
from ..migrate import apply_migrations, behind, check_schema, file_exists, status_of
from ..write.fast_path import Writer
from .checkpoints import Checkpoints, LogSpace
from .connection import MEMORY, READER_CACHE_KIB, SCAN_CACHE_KIB, Database, DatabaseThread, check_library, connect
from .file_watch import FileWatch
from .inline import InlineCalls
from .session import Session, WriterSession, run_to_end

Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")


class Connections(Sessions):
    """One thread writes; for a file another one reads, a few scan, and one runs checkpoints.

    `fast_path=False`, for tests and debugging: load, decide and save every command by itself.
    """

    def __init__(self, path: str, *, rng: Rng, fast_path: bool = True) -> None:
        self._path = path
        self._rng = rng
        self._fast_path = fast_path
        self._writing = DatabaseThread("kagzi-sqlite-writer")
        self._reading = self._writing if path == MEMORY else DatabaseThread("kagzi-sqlite-reader")
        self._checkpoints = None if path == MEMORY else Checkpoints(path, self._writing)
        self._files = None if path == MEMORY else FileWatch(path)
        self._log_space = None if self._files is None else LogSpace(self._files)
        self._inline, self._inline_reads = InlineCalls(), InlineCalls()
        self._writer: Writer | None = None
        self._reader: Database | None = None
        self._scanners = [] if path == MEMORY else [_Scanner(n) for n in range(limits.SCANS_AT_ONCE)]
        self._idle = list(self._scanners)
        self._scans = ScanTurns(len(self._scanners) or 1)

    async def open(self) -> None:
        if self._writer is not None:
            return
        check_library()
        if self._path != MEMORY and not file_exists(self._path):
            raise behind(self._path, status_of(self._path))
        self._writing.start()
        try:
            database = await self._writing.call(self._open_database)
            self._writer = Writer(database, self._rng, fast_path=self._fast_path)
            self._reader = database
            if self._reading is not self._writing:
                self._reading.start()
                self._reader = await self._reading.call(_open_reader, self._path, READER_CACHE_KIB)
            for scanner in self._scanners:
                scanner.thread.start()
                scanner.database = await scanner.thread.call(_open_reader, self._path, SCAN_CACHE_KIB)
            if self._checkpoints is not None:
                await self._checkpoints.open(database)
            if self._files is not None:
                self._files.begin()
        except BaseException:
            await self.close()
            raise

    def _open_database(self) -> Database:
        if self._path != MEMORY:
            make_private(database_files(Path(self._path)))
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
        """Finish the queued calls, checkpoint the WAL, end the threads. Idempotent."""
        if self._checkpoints is not None:
            await self._checkpoints.close()
        for scanner in self._scanners:
            await scanner.close()
        if self._reading is not self._writing:
            await self._reading.close(self._reader.close if self._reader else None)
        database = None if self._writer is None else self._writer.database
        if database is not None and self._files is not None and not self._files.may_close(database):
            database = None
        await self._writing.close(None if database is None else database.checkpoint_and_close)

    async def run(self, purpose: Purpose, act: Callable[[Session], Coroutine[Any, Any, Answer]]) -> Answer:
        if purpose in (Purpose.READ, Purpose.LOOKUP):
            return await self._read(lambda database: run_to_end(act(Session(database))))
        return await self._write_with(act)

    async def run_scan(self, namespace: str, act: Callable[[Session], Coroutine[Any, Any, Answer]]) -> Answer:
        return await self._scan(namespace, lambda database: run_to_end(act(Session(database))))

    async def _write_with(self, act: Callable[[WriterSession], Coroutine[Any, Any, Answer]]) -> Answer:
        return await self._change(lambda writer: run_to_end(act(WriterSession(writer))))

    async def _change(
        self, act: Callable[Concatenate[Writer, Arguments], Answer], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Answer:
        """Run `act` in one transaction, in the writer's thread."""
        return await self._write(lambda writer: _transact(writer, act, *args, **kwargs))

    async def _write(self, act: Callable[[Writer], Answer], *, small: bool = False) -> Answer:
        """`small`: the write may run inline, see `inline`."""
        if (writer := self._writer) is None:
            raise _not_open()
        try:
            if small:
                return await self._write_small(act, writer)
            return await self._writing.call(self._write_and_check, act, writer)
        finally:
            if self._checkpoints is not None and self._files is not None:
                self._checkpoints.after_write(writer.database.changed_rows, self._files.log_bytes)

    async def _write_small(self, act: Callable[[Writer], Answer], writer: Writer) -> Answer:
        if self._inline.allowed:
            try:
                if self._writing.borrow():
                    self._inline.begin()
                    return self._writing.inline(self._timed_write, act, writer, wait=False)
            except Contended:
                pass  # nothing was changed; the writer's thread waits for the lock
        return await self._writing.call(self._timed_write, act, writer, wait=True)

    def _timed_write(self, act: Callable[[Writer], Answer], writer: Writer, *, wait: bool) -> Answer:
        begun_at = self._inline.timer()
        try:
            return self._write_and_check(act, writer, wait=wait)
        finally:
            self._inline.took_since(begun_at)

    def _write_and_check(self, act: Callable[[Writer], Answer], writer: Writer, *, wait: bool = True) -> Answer:
        """`wait`: for locks of other processes. Does not acknowledge commits to files that were deleted or replaced."""
        writer.database.wait_for_locks(wait)
        if self._files is None or self._log_space is None:
            return act(writer)
        self._files.refuse_if_lost()
        answer = act(writer)
        self._files.check(writer.database)
        self._log_space.after_commit(writer.database)
        return answer

    async def _check_files(self) -> None:
        """Raises StoreLost if the files were deleted or replaced."""
        if self._files is not None:
            await self._write(lambda _: None)

    async def _read(
        self, act: Callable[Concatenate[Database, Arguments], Answer], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Answer:
        """Run `act` on one snapshot, in the reader's thread."""
        if self._files is not None:
            self._files.refuse_if_lost()
        if (reader := self._reader) is None:
            raise _not_open()
        return await self._reading.call(lambda: _snapshot(reader, act, *args, **kwargs))

    async def _read_small(
        self, act: Callable[Concatenate[Database, Arguments], Answer], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Answer:
        """Like `_read`, for a few rows by key: it may run inline."""
        if self._files is not None:
            self._files.refuse_if_lost()
        if (reader := self._reader) is None:
            raise _not_open()

        def timed() -> Answer:
            begun_at = self._inline_reads.timer()
            try:
                return _snapshot(reader, act, *args, **kwargs)
            finally:
                self._inline_reads.took_since(begun_at)

        if self._inline_reads.allowed and self._reading.borrow():
            self._inline_reads.begin()
            return self._reading.inline(timed)
        return await self._reading.call(timed)

    async def _scan(
        self,
        namespace: str,
        act: Callable[Concatenate[Database, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        """Like `_read`, for reads that may take long: in turn, and in a separate thread. In memory there is one thread
        for everything, and one scan at a time. Cancelling the caller interrupts its scan."""
        if self._files is not None:
            self._files.refuse_if_lost()
        await self._scans.enter(namespace)
        scanner = self._idle.pop() if self._idle else None
        database = self._reader if scanner is None else scanner.database
        if database is None:
            self._scans.leave(namespace)
            raise _not_open()
        thread = self._reading if scanner is None else scanner.thread
        scan = asyncio.ensure_future(thread.call(lambda: _snapshot(database, act, *args, **kwargs)))

        def done(ended: asyncio.Future[Answer]) -> None:
            if not ended.cancelled():
                ended.exception()  # marks the exception as retrieved, even if the caller is gone
            if scanner is not None:
                self._idle.append(scanner)
            self._scans.leave(namespace)

        scan.add_done_callback(done)
        try:
            return await asyncio.shield(scan)
        except asyncio.CancelledError:
            if scanner is not None and not scan.done():
                database.interrupt()
            raise

    @property
    def connections(self) -> Mapping[str, int]:
        if self._writer is None:
            return {"used": 0, "idle": 0}
        threads = {self._writing, self._reading, *(scanner.thread for scanner in self._scanners)}
        used = sum(thread.busy for thread in threads)
        return {"used": used, "idle": len(threads) - used}

    @property
    def transactions(self) -> int:
        return 0 if self._writer is None else self._writer.database.transactions

    @property
    def statements(self) -> int:
        databases = {self._writer.database} if self._writer is not None else set[Database]()
        databases.update(each for each in (self._reader, *(scanner.database for scanner in self._scanners)) if each)
        return sum(database.statements for database in databases)


class _Scanner:
    """A thread for scans, and its connection."""

    def __init__(self, number: int) -> None:
        self.thread = DatabaseThread(f"kagzi-sqlite-scanner-{number}")
        self.database: Database | None = None

    async def close(self) -> None:
        """Makes a running scan fail. Idempotent."""
        database, self.database = self.database, None
        if database is not None:
            database.interrupt()
        await self.thread.close(database.close if database is not None else None)


def _not_open() -> Unavailable:
    return Unavailable("the SQLite store is not open")


def _open_reader(path: str, cache_kib: int) -> Database:
    database = connect(path, cache_kib)
    database.execute("PRAGMA query_only = ON")
    return database


def _transact(
    writer: Writer,
    act: Callable[Concatenate[Writer, Arguments], Answer],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
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
    database: Database,
    act: Callable[Concatenate[Database, Arguments], Answer],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Answer:
    database.begin_snapshot()
    try:
        return act(database, *args, **kwargs)
    finally:
        database.rollback()
