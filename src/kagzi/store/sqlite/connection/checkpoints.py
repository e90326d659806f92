"""Runs WAL checkpoints on a separate thread.

SQLite would do it inside a commit, and that commit would take as long as some thousand pages take to reach the disk.
Here a separate thread runs the checkpoint while commits continue; what came meanwhile is little, and the thread that
writes checkpoints it, so that the WAL begins anew.
"""

import asyncio
import logging

from ....core.errors import KagziError
from .connection import Database, DatabaseThread, connect

logger = logging.getLogger("kagzi.store")

AIM_PAGES = 4_000
_FIRST_ROWS = 2_000
_LEAST_ROWS = 100
_MOST_ROWS = 50_000


class Checkpoints:
    """`after_write` is called in the loop's thread, with how many rows the writer has changed in all its life."""

    def __init__(self, path: str, writing: DatabaseThread) -> None:
        self._path = path
        self._writing = writing
        self._thread = DatabaseThread("kagzi-sqlite-checkpoints")
        self._database: Database | None = None
        self._writer: Database | None = None
        self._rows = _FIRST_ROWS  # so many make a log of about AIM_PAGES
        self._checkpointed_rows = 0
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

    def after_write(self, changed_rows: int) -> None:
        if changed_rows - self._checkpointed_rows < self._rows or self._closed:
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
