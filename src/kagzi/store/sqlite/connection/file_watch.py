"""Detects that the files of an open database were deleted or replaced, and saves what only this process still has. Also
measures the log.

SQLite continues with the files it opened, whatever happened to their names, without an error: what it commits from then
on is lost when the process ends. So after every commit, and on every poll, the names are compared with the opened
files. A difference is final: the store refuses everything until the server is restarted on complete files.
"""

import logging
import os
import sqlite3
from collections.abc import Iterator

from ....core.errors import KagziError, StoreLost
from .connection import Database, create_file
from .file_status import Identity, identity_of, status_reader

logger = logging.getLogger("kagzi.store")

_ABANDONED: list[Database] = []
"""Never closed: SQLite would delete the log by name, and that may belong to another database by now."""


class FileWatch:
    """Call `begin` once the files are open, and `check` in the writer's thread. `lost` may be read from any thread.
    `log`: the name of the log; `log_bytes`: its length when last checked."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.log = f"{path}-wal"
        self.log_bytes = 0
        self._file_now, self._log_now = status_reader(path), status_reader(self.log)
        self._opened_file: Identity | None = None
        self._opened_log: Identity | None = None
        self.lost = False
        self._in_place = False

    def begin(self) -> None:
        self._opened_file, self._opened_log = self._identities()

    def check(self, writer: Database) -> None:
        """Raises StoreLost if the files are gone. The first time, it saves what can be saved."""
        if not self.lost:
            if self._are_in_place():
                return
            problems = list(self._problems())
            if not problems:
                return
            self.lost = True
            self._save(" and ".join(problems), writer)
        self.refuse_if_lost()

    def refuse_if_lost(self) -> None:
        if self.lost:
            raise StoreLost(
                "the files of the SQLite store were deleted or replaced while it was open; see the server's log"
            )

    def may_close(self, database: Database) -> bool:
        if not self.lost or self._in_place:
            return True
        _ABANDONED.append(database)
        return False

    def is_log(self, status: os.stat_result) -> bool:
        """Whether a file is the log that was opened, whatever has that name now."""
        return self._opened_log == identity_of(status)

    def _are_in_place(self) -> bool:
        """Runs after every commit, so it makes only two system calls."""
        file, log = self._file_now(), self._log_now()
        if file is None or log is None:
            return False
        log_identity, self.log_bytes = log
        return file[0] == self._opened_file and log_identity == self._opened_log

    def _identities(self) -> tuple[Identity | None, Identity | None]:
        """Those of the files that have the names now. None: there is no such file."""
        file, log = self._file_now(), self._log_now()
        return None if file is None else file[0], None if log is None else log[0]

    def _problems(self) -> Iterator[str]:
        opened = (self._opened_file, self._opened_log)
        for name, before, current in zip((self._path, self.log), opened, self._identities(), strict=True):
            if before is not None and current != before:
                yield f"{name} was {'deleted' if current is None else 'replaced'}"

    def _save(self, problem: str, writer: Database) -> None:
        logger.critical(
            "%s while the server had it open. The server accepts nothing more, so that nothing more can be lost. Do "
            "not stop this process before the next line says what was saved",
            problem,
        )
        try:
            writer.rollback()
            if self._checkpoint_in_place(writer):
                self._in_place = True
                logger.critical(
                    "everything that was committed was saved to %s. Restart the server, and do not touch %s-wal: it is "
                    "part of the database",
                    self._path,
                    self._path,
                )
                return
            copy = f"{self._path}.saved-{os.getpid()}"
            create_file(copy)  # readable by its owner only
            writer.copy_into(copy)
        except (sqlite3.Error, OSError, KagziError) as error:
            logger.critical(
                "what was committed could not be saved: %s. While process %d is alive, its open files are in "
                "/proc/%d/fd: copy them before it ends",
                error,
                os.getpid(),
                os.getpid(),
            )
        else:
            logger.critical(
                "everything that was committed was saved to %s. Stop the server, put that file in the place of %s, "
                "remove %s-wal and %s-shm, and start the server again",
                copy,
                self._path,
                self._path,
                self._path,
            )

    def _checkpoint_in_place(self, writer: Database) -> bool:
        """If only the log has lost its name, and no other file has it, a checkpoint can still write it to the
        database."""
        file, log = self._identities()
        return file == self._opened_file and log is None and writer.checkpoint_all()
