import errno
import os
from pathlib import Path

import pytest

from kagzi.store.sqlite.connection import file_status
from kagzi.store.sqlite.connection.file_status import FileStatus, identity_of, status_reader


def _expected(path: Path | str) -> FileStatus:
    status = os.stat(path)  # noqa: PTH116  what is compared
    return identity_of(status), status.st_size


@pytest.fixture(params=["statx", "stat"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the system call, and as on machines without it."""
    if request.param == "stat":
        monkeypatch.setattr(file_status, "_C_LIBRARY", None)
    return request.param


@pytest.mark.parametrize("name", ["kagzi.db", "mit Umlaut ä.db"])
def test_device_inode_and_size(tmp_path: Path, how: str, name: str) -> None:
    path = tmp_path / name
    read = status_reader(str(path))
    assert read() is None, how

    path.write_bytes(b"x" * 70_000)
    first = read()
    assert first == _expected(path)

    with path.open("ab") as file:
        file.write(b"y")
    assert read() == (identity_of(path.stat()), 70_001)

    (tmp_path / "other").write_bytes(b"z")
    (tmp_path / "other").replace(path)
    other = read()
    assert first is not None
    assert other is not None
    assert other == _expected(path)
    assert other[0] != first[0]

    path.unlink()
    assert read() is None


def test_links_are_followed(tmp_path: Path, how: str) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert status_reader(str(tmp_path / "link"))() == _expected(tmp_path / "file"), how


def test_devices_are_told_apart(how: str) -> None:
    for path in ("/dev/null", "/proc/self/status", "/"):
        read = status_reader(path)()
        assert read is not None, how
        assert read[0] == _expected(path)[0]


def test_other_errors_are_those_of_stat(tmp_path: Path, how: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError) as raised:
        status_reader(str(tmp_path / "file" / "below"))()
    assert raised.value.errno == errno.ENOTDIR, how


def test_a_refused_statx_is_replaced_by_stat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sandboxes refuse system calls they do not know."""
    calls = []

    class Library:
        def statx(self, *arguments: object) -> int:
            calls.append(arguments)
            return -1

    monkeypatch.setattr(file_status, "_C_LIBRARY", Library())
    monkeypatch.setattr(file_status.ctypes, "get_errno", lambda: errno.EPERM)
    assert status_reader(str(tmp_path))() == _expected(tmp_path)
    assert calls


def test_times_are_not_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Since Linux 6.13, reading them makes the next commit slower (ADR 0084)."""
    masks = []
    library = file_status._C_LIBRARY
    if getattr(library, "statx", None) is None:
        pytest.fail("this machine has no statx")

    class Library:
        def statx(self, *arguments: object) -> int:
            masks.append(arguments[3])
            return library.statx(*arguments)

    monkeypatch.setattr(file_status, "_C_LIBRARY", Library())
    assert status_reader(str(tmp_path))() == _expected(tmp_path)
    (mask,) = masks
    times = 0x20 | 0x40 | 0x80 | 0x800  # of access, change of contents, change of attributes, birth
    assert not mask & times
