"""Lets one process at a time open a SQLite file: an OS lock on a file beside it, held for the life of the process, and
a file with the address that the process serves.

file.db.lock      locked while a process serves the file; contains the pid of the last holder, and its workers
file.db.server    target and secret of the serving process (mode 0600); absent when there is none
"""

import fcntl
import os
from pathlib import Path

import msgspec

from ..store.private_files import PRIVATE, database_files, make_private
from .startup import CannotStart

_NETWORK_FILE_SYSTEMS = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "fuse.sshfs",
        "fuse.glusterfs",
        "ncpfs",
    }
)
_MOUNTS = Path("/proc/mounts")
_MOST_BYTES = 1 << 20  # the largest lock file that is read


Place = tuple[str, str]
"""The namespace and id of a worker."""


class Endpoint(msgspec.Struct, frozen=True):
    """Where the holder of the lock serves, and the secret it requires (empty: none)."""

    pid: int
    target: str
    secret: str = ""


class FileLock:
    """Held from `acquire` to `release`, or until the process ends. Forked children do not inherit it."""

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(f"{database.name}.lock")
        self._endpoint_path = database.with_name(f"{database.name}.server")
        self._descriptor: int | None = None
        self._workers: set[Place] = set()
        self.died: tuple[Place, ...] = ()
        """Workers in the last holder's process, if that ended without `release`. Having the lock proves that the
        process is gone: only then does the operating system free it."""

    @property
    def files(self) -> tuple[Path, Path]:
        return self._path, self._endpoint_path

    def make_private(self, database: Path) -> None:
        """Makes the file and its companions accessible to their owner only. SQLite copies the mode to files it adds."""
        os.close(os.open(database, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE))
        make_private((*database_files(database), *self.files))

    def acquire(self) -> bool:
        """Returns whether the lock is now ours. Raises OSError if the directory does not exist or is not writable."""
        if self._descriptor is not None:
            return True
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except BaseException:
            os.close(descriptor)
            raise
        self.died = _workers_in(os.pread(descriptor, _MOST_BYTES, 0))
        self._descriptor = descriptor
        self._write_pid()
        _locks.add(self)
        self._endpoint_path.unlink(missing_ok=True)
        return True

    def note_worker(self, place: Place) -> None:
        """Notes a worker that lives in this process and ends with it. Only while the lock is held."""
        if self._descriptor is not None and place not in self._workers:
            self._workers.add(place)
            os.write(self._descriptor, msgspec.json.encode(place) + b"\n")

    def _write_pid(self) -> None:
        if self._descriptor is not None:
            self._workers.clear()
            os.ftruncate(self._descriptor, 0)
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            os.write(self._descriptor, f"{os.getpid()}\n".encode())

    def publish(self, endpoint: Endpoint) -> None:
        """Publishes where to connect. Atomic: written to a temporary file, then renamed."""
        aside = self._endpoint_path.with_name(f"{self._endpoint_path.name}.{os.getpid()}")
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE)
        try:
            os.fchmod(descriptor, PRIVATE)  # if it existed already
            os.write(descriptor, msgspec.json.encode(endpoint))
        finally:
            os.close(descriptor)
        aside.replace(self._endpoint_path)

    def published(self) -> Endpoint | None:
        """Where the holder serves; None if it has not published that."""
        try:
            return msgspec.json.decode(self._endpoint_path.read_bytes(), type=Endpoint)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None

    def holder_pid(self) -> int | None:
        """The pid of the current or last holder of the lock."""
        try:
            return int(self._path.read_text().partition("\n")[0])
        except (OSError, ValueError):
            return None

    def release(self) -> None:
        self._write_pid()  # without workers: an orderly release, nothing has died
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            _locks.discard(self)
            self._endpoint_path.unlink(missing_ok=True)
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def forget_in_child(self) -> None:
        """In a forked child: closes the inherited descriptor, so that the lock belongs to the parent alone again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _workers_in(data: bytes) -> tuple[Place, ...]:
    """The workers noted in a lock file. Skips a line that was incomplete when its process ended."""
    workers: list[Place] = []
    for line in data.split(b"\n")[1:-1]:
        try:
            workers.append(msgspec.json.decode(line, type=Place))
        except msgspec.MsgspecError:
            continue
    return tuple(workers)


_locks: set[FileLock] = set()


def _after_fork_in_child() -> None:
    for lock in _locks:
        lock.forget_in_child()
    _locks.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)


def lock_or_refuse(database: Path) -> FileLock:
    """For commands that must open the file themselves. Raises CannotStart with the pid of the process that has it."""
    refuse_bad_place(database)
    lock = FileLock(database)
    try:
        acquired = lock.acquire()
    except OSError as error:
        raise CannotStart(
            f"{database} cannot be opened: {error.strerror}. Check the directory's permissions."
        ) from error
    if not acquired:
        pid = lock.holder_pid()
        who = "another process" if pid is None else f"process {pid}"
        raise CannotStart(
            f"{database} is in use by {who}. Stop it, connect to it, or choose another database (--db, or --data for "
            "kagzi dev and kagzi demo)."
        )
    return lock


def refuse_bad_place(database: Path) -> None:
    """Raises CannotStart for a missing directory, or one on a network file system, where locks and WAL do not work."""
    if not database.parent.is_dir():
        raise CannotStart(f"the directory of {database} does not exist. Create it: mkdir -p {database.parent}")
    kind = _file_system(database.parent.resolve())
    if kind in _NETWORK_FILE_SYSTEMS:
        raise CannotStart(
            f"{database} is on a network file system ({kind}), where locks cannot be trusted. "
            "Use a local disk, or PostgreSQL."
        )


def _file_system(directory: Path) -> str:
    """The type of file system that a directory is on; empty if unknown."""
    try:
        lines = _MOUNTS.read_text().splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    for line in lines:
        _, mount_point, mount_kind, *_ = line.split(" ")
        decoded = mount_point.replace(r"\040", " ")
        if directory.is_relative_to(decoded) and len(decoded) >= len(best):
            best, kind = decoded, mount_kind
    return kind
