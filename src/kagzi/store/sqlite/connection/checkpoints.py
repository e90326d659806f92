"""Folding the write-ahead log into the file, beside the thread that writes.

SQLite would do it inside a commit, and that commit would take as long as some thousand pages take to get to the disk. Here a
thread of its own folds while commits go on; what came meanwhile is little, and is folded by the thread that writes, so that the
log begins anew.
"""

import asyncio
import logging

from ....core.errors import KagziError
from .connection import Database, Lane, connect

logger = logging.getLogger("kagzi.store")

AIM_PAGES = 4_000
_FIRST_ROWS = 2_000
_LEAST_ROWS = 100
_MOST_ROWS = 50_000


class Folding:
    """`after_write` is called in the loop's thread, with how many rows the writer has changed in all its life."""

    def __init__(self, path: str, writing: Lane) -> None:
        self._path = path
        self._writing = writing
        self._lane = Lane("kagzi-sqlite-folder")
        self._database: Database | None = None
        self._writer: Database | None = None
        self._rows = _FIRST_ROWS  # so many make a log of about AIM_PAGES
        self._folded_rows = 0
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def open(self, writer: Database) -> None:
        self._writer = writer
        self._lane.start()
        self._database = await self._lane.call(connect, self._path)

    async def close(self) -> None:
        """Idempotent. What is being folded is finished first."""
        self._closed = True
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        await self._lane.close(self._database.close if self._database else None)

    def after_write(self, changed_rows: int) -> None:
        if changed_rows - self._folded_rows < self._rows or self._closed:
            return
        if self._task is None or self._task.done():
            self._folded_rows = changed_rows
            self._task = asyncio.create_task(self._fold(), name="kagzi-sqlite-fold")

    async def _fold(self) -> None:
        database, writer = self._database, self._writer
        if database is None or writer is None:
            return
        try:
            pages = await self._lane.call(database.fold)
            await self._writing.call(writer.fold)
        except KagziError as error:  # the writer folds a log that has become too long by itself
            logger.warning("the write-ahead log could not be folded into the file and is tried again: %s", error)
            return
        if pages > AIM_PAGES * 2:
            self._rows = max(_LEAST_ROWS, self._rows // 2)
        elif pages < AIM_PAGES // 2:
            self._rows = min(_MOST_ROWS, self._rows * 2)
