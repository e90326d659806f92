"""Runs WAL checkpoints on a separate thread, and lets commits write over the log rather than lengthen it.

SQLite would do it inside a commit, and that commit would take as long as some thousand pages take to reach the disk.
Here a separate thread runs the checkpoint while commits continue; what came meanwhile is little, and the thread that
writes checkpoints it, so that the WAL begins anew.

A commit that lengthens the log waits for more than one that writes over what is there: the file system has to record
the new length, too. Once begun anew, the log is written over. Before that it is lengthened in pieces, ahead of commits.
See docs/adr/0050.
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
"""A page in the log."""
AIM_BYTES = AIM_PAGES * FRAME_BYTES
PIECE_BYTES = 128 * FRAME_BYTES
SMALL_LOG_BYTES = 64 * FRAME_BYTES
"""A store with a shorter one is hardly used: it is not worth a piece."""
_FIRST_ROWS = 2_000
_LEAST_ROWS = 100
_MOST_ROWS = 50_000


class Checkpoints:
    """`after_write` is called in the loop's thread, with how many rows the writer has changed in all its life, and the
    length of the log."""

    def __init__(self, path: str, writing: DatabaseThread) -> None:
        self._path = path
        self._writing = writing
        self._thread = DatabaseThread("kagzi-sqlite-checkpoints")
        self._database: Database | None = None
        self._writer: Database | None = None
        self._rows = _FIRST_ROWS  # so many make a log of about AIM_PAGES
        self._checkpointed_rows = 0
        self._log_bytes = 0
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def open(self, writer: Database) -> None:
        self._writer = writer
        self._thread.start()
        self._database = await self._thread.call(connect, self._path)

    async def close(self) -> None:
        """Idempotent. A checkpoint that runs is finished first."""
        self._closed = True
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        await self._thread.close(self._database.close if self._database else None)

    def after_write(self, changed_rows: int, log_bytes: int) -> None:
        # Rows tell the time before; if they changed more pages than others did, the log says so by growing.
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
        except KagziError as error:  # the writer checkpoints a WAL that has become too long by itself
            logger.warning("a WAL checkpoint failed and is tried again: %s", error)
            return
        if pages > AIM_PAGES * 2:
            self._rows = max(_LEAST_ROWS, self._rows // 2)
        elif pages < AIM_PAGES // 2:
            self._rows = min(_MOST_ROWS, self._rows * 2)


class LogSpace:
    """Lengthens the log ahead of commits, up to what a checkpoint aims at. `after_commit` is called by whoever uses the
    writer, when `files` were checked."""

    def __init__(self, files: FileWatch) -> None:
        self._files = files
        self._bytes = 0

    def after_commit(self, writer: Database) -> None:
        """Only a log that has just grown has no space left."""
        log_bytes = self._files.log_bytes
        if log_bytes <= self._bytes or not SMALL_LOG_BYTES <= log_bytes < AIM_BYTES:
            self._bytes = max(self._bytes, log_bytes)
            return
        self._bytes = log_bytes
        try:
            writer.begin()  # whoever may write to the database may write to its log: nobody else does now
            try:
                self._bytes = self._lengthen()
            finally:
                writer.rollback()
        except (OSError, sqlite3.Error) as error:  # what was committed is on the disk; commits lengthen it themselves
            logger.debug("%s could not be lengthened: %s", self._files.log, error)

    def _lengthen(self) -> int:
        """What follows the last frame of a log means nothing to SQLite: what an earlier, longer log has left is there,
        too."""
        descriptor = os.open(self._files.log, os.O_WRONLY)
        try:
            status = os.fstat(descriptor)
            if not self._files.is_log(status):
                return status.st_size  # the next check says so
            return status.st_size + os.pwrite(descriptor, bytes(PIECE_BYTES), status.st_size)
        finally:
            os.close(descriptor)
