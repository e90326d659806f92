"""Which file has a name now, and how long it is, without reading its times.

Since version 6.13, Linux gives a file whose times were read a precise time at its next change, and records that in the
journal of the file system. So a commit takes longer if `stat` has read the times of the log since the last one.
`statx` reads only what it is asked for; where it is missing, `stat` is used. See docs/adr/0084.
"""

import ctypes
import errno
import os
from collections.abc import Callable
from struct import Struct
from typing import TypeAlias

_CURRENT_DIRECTORY = -100
_INODE_AND_SIZE = 0x100 | 0x200
_LAYOUT = Struct("=32xQQ88xII112x")  # struct statx: inode, size, and the device as major and minor number


Identity: TypeAlias = tuple[int, int, int]
"""The inode, and the major and minor number of its device."""

FileStatus: TypeAlias = tuple[Identity, int]
"""Which file it is, and its size. A plain tuple: two are read after every commit."""


def status_reader(path: str) -> Callable[[], FileStatus | None]:
    """Returns a function that reads the status of the file that has this name; None: there is none. It is used by one
    thread at a time."""
    statx = getattr(_C_LIBRARY, "statx", None)
    if statx is None:
        return lambda: _by_stat(path)
    name, buffer = os.fsencode(path), ctypes.create_string_buffer(_LAYOUT.size)
    address = ctypes.addressof(buffer)

    def read() -> FileStatus | None:
        if not statx(_CURRENT_DIRECTORY, name, 0, _INODE_AND_SIZE, address):
            inode, size, major, minor = _LAYOUT.unpack_from(buffer)
            return (inode, major, minor), size
        if ctypes.get_errno() == errno.ENOENT:
            return None
        return _by_stat(path)  # the kernel or a sandbox refuses `statx`; any other error is raised there

    return read


def _by_stat(path: str) -> FileStatus | None:
    try:
        status = os.stat(path)  # noqa: PTH116  Path.stat takes twice as long
    except FileNotFoundError:
        return None
    return identity_of(status), status.st_size


def identity_of(status: os.stat_result) -> Identity:
    return status.st_ino, os.major(status.st_dev), os.minor(status.st_dev)


_C_LIBRARY = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
if (_statx := getattr(_C_LIBRARY, "statx", None)) is not None:
    _statx.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
