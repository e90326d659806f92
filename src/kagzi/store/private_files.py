"""File permissions: runs may store secrets, so the files that hold them or give access to them are private to their
owner."""

import logging
import os
import stat
from collections.abc import Iterable
from pathlib import Path

logger = logging.getLogger("kagzi.store")

PRIVATE = stat.S_IRUSR | stat.S_IWUSR
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def database_files(path: Path) -> list[Path]:
    """A SQLite file and its companions, whether or not they exist."""
    return [path, *(path.with_name(f"{path.name}{ending}") for ending in ("-wal", "-shm", "-journal"))]


def make_private(paths: Iterable[Path]) -> None:
    """Remove all permissions of group and others from those of these files that exist and that we own. Logs each file
    that was accessible to others, and each that still is."""
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue  # missing; any other problem is reported when the file is opened
        mode = stat.S_IMODE(status.st_mode)
        if not mode & _OTHERS:
            continue
        if status.st_uid != os.geteuid():
            _complain(path, mode, f"it belongs to user {status.st_uid}, not to this one")
            continue
        try:
            path.chmod(mode & ~_OTHERS)
        except OSError as error:
            _complain(path, mode, str(error))
        else:
            logger.warning("%s was readable by other users (mode %04o); only its owner can read it now", path, mode)


def _complain(path: Path, mode: int, reason: str) -> None:
    logger.error(
        "%s is OPEN TO OTHER USERS of this machine (mode %04o), who may read or change what runs store, and this could "
        "not be changed: %s. As its owner, run: chmod go= %s",
        path,
        mode,
        reason,
        path,
    )
