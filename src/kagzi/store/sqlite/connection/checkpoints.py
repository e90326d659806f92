"""Runs WAL checkpoints on a separate thread, and lets commits overwrite the log instead of extending it.

SQLite would run a checkpoint inside a commit, which would then take as long as writing thousands of pages to disk. Here
a separate thread runs the checkpoint while commits continue. The writer's thread then checkpoints the little that was
added meanwhile, so that the WAL restarts from its beginning.

A commit that extends the log takes longer than one that overwrites it: the file system has to record the new length,
too. Once restarted, the log is overwritten. Before that it is extended in pieces, ahead of commits. See docs/adr/0050.
"""

import asyncio
import logging
import os
import sqlite3

from ....core.errors import KagziError
from .connection import Database, DatabaseThread, connect
from .file_watch import FileWatch

logger = logging.getLogger("kagzi.store")

AIM_PAGES = 4_000
FRAME_BYTES = 4_096 + 24
"""A page in the log, with its header."""
AIM_BYTES = AIM_PAGES * FRAME_BYTES
PIECE_BYTES = 128 * FRAME_BYTES
SMALL_LOG_BYTES = 64 * FRAME_BYTES
"""A store with a shorter log is hardly used: extending it does not pay."""
_FIRST_ROWS = 2_000
_LEAST_ROWS = 100
_MOST_ROWS = 50_000


class Checkpoints:
    """`after_write` is called in the event loop's thread, with the total number of rows that the writer has changed,
    and the length of the log."""

    def __init__(self, path: str, writing: DatabaseThread) -> None:
        self._path = path
        self._writing = writing
        self._thread = DatabaseThread("kagzi-sqlite-checkpoints")
        self._database: Database | None = None
        self._writer: Database | None = None
        self._rows = _FIRST_ROWS  # about as many rows as fill AIM_PAGES of the log
        self._checkpointed_rows = 0
        self._log_bytes = 0
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def open(self, writer: Database) -> None:
        self._writer = writer
        self._thread.start()
        self._database = await self._thread.call(connect, self._path)

    async def close(self) -> None:
        """Idempotent. Waits for a running checkpoint."""
        self._closed = True
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        await self._thread.close(self._database.close if self._database else None)

    def after_write(self, changed_rows: int, log_bytes: int) -> None:
        # The number of rows tells when it is time; if rows changed more pages than usual, the log has grown too long.
        is_too_long = log_bytes > self._log_bytes and log_bytes > AIM_BYTES
        self._log_bytes = log_bytes
        if (not is_too_long and changed_rows - self._checkpointed_rows < self._rows) or self._closed:
            return
        if self._task is None or self._task.done():
            self._checkpointed_rows = changed_rows
            self._task = asyncio.create_task(self._checkpoint(), name="kagzi-sqlite-checkpoint")

    async def _checkpoint(self) -> None:
        database, writer = self._database, self._writer
        if database is None or writer is None:
            return
        try:
            pages = await self._thread.call(database.checkpoint)
            await self._writing.call(writer.checkpoint)
        except KagziError as error:  # the writer itself checkpoints a WAL that has become too long
            logger.warning("a WAL checkpoint failed and is tried again: %s", error)
            return
        if pages > AIM_PAGES * 2:
            self._rows = max(_LEAST_ROWS, self._rows // 2)
        elif pages < AIM_PAGES // 2:
            self._rows = min(_MOST_ROWS, self._rows * 2)


class LogSpace:
    """Extends the log ahead of commits, up to the length at which a checkpoint runs. The thread that uses the writer
    calls `after_commit`, once `files` were checked."""

    def __init__(self, files: FileWatch) -> None:
        self._files = files
        self._bytes = 0

    def after_commit(self, writer: Database) -> None:
        """Only a log that has just grown has no spare space."""
        log_bytes = self._files.log_bytes
        if log_bytes <= self._bytes or not SMALL_LOG_BYTES <= log_bytes < AIM_BYTES:
            self._bytes = max(self._bytes, log_bytes)
            return
        self._bytes = log_bytes
        try:
            writer.begin()  # the write lock of the database also protects its log
            try:
                self._bytes = self._lengthen()
            finally:
                writer.rollback()
        except (OSError, sqlite3.Error) as error:  # the commit itself is durable; commits extend the log themselves
            logger.debug("%s could not be lengthened: %s", self._files.log, error)

    def _lengthen(self) -> int:
        """SQLite ignores whatever follows the last frame of a log, such as the rest of an earlier, longer log."""
        descriptor = os.open(self._files.log, os.O_WRONLY)
        try:
            status = os.fstat(descriptor)
            if not self._files.is_log(status):
                return status.st_size  # the next check reports it
            return status.st_size + os.pwrite(descriptor, bytes(PIECE_BYTES), status.st_size)
        finally:
            os.close(descriptor)
