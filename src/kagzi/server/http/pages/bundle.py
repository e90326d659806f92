"""The built dashboard (`make web`): a few files with stable names, checked on every request, so that a new build is
served at once."""

import asyncio
import hashlib
import re
from html import escape
from pathlib import Path
from typing import NamedTuple

DIRECTORY = Path(__file__).parent.parent / "static"
INDEX = "index.html"
BUILD = "build.txt"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".map": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_NAME = re.compile(r"[a-z]+(\.[a-z]+)+")


class File(NamedTuple):
    """`zipped`: the gzip encoding; empty if there is none."""

    content: bytes
    zipped: bytes
    etag: str
    media_type: str


class Bundle:
    def __init__(self) -> None:
        self._files: dict[str, tuple[int, int, File]] = {}

    @property
    def is_there(self) -> bool:
        return (DIRECTORY / INDEX).is_file()

    async def file(self, name: str, build: str | None = None) -> File | None:
        """None: not a file of the bundle, or of another build than requested."""
        if not _NAME.fullmatch(name) or Path(name).suffix not in TYPES:
            return None
        if build is not None:
            ours = await self._read(DIRECTORY / BUILD)
            if ours is None or ours.content.decode().strip() != build:
                return None
        return await self._read(DIRECTORY / name)

    async def page(self, base: str, auth: str) -> File | None:
        """The page that loads the other files from below `base`. `auth`: the server's setting. None: the bundle was not
        built."""
        file = await self._read(DIRECTORY / INDEX)
        if file is None:
            return None
        text = file.content.decode().replace("{{base}}", escape(base)).replace("{{auth}}", escape(auth))
        content = text.encode()
        return File(content, b"", _etag(content), "text/html; charset=utf-8")

    async def _read(self, path: Path) -> File | None:
        return await asyncio.to_thread(self._current, path)

    def _current(self, path: Path) -> File | None:
        try:
            state = path.stat()
            known = self._files.get(path.name)
            if known is None or known[:2] != (state.st_mtime_ns, state.st_size):
                known = self._files[path.name] = state.st_mtime_ns, state.st_size, _read(path)
        except OSError:
            return None
        return known[2]


def _read(path: Path) -> File:
    content = path.read_bytes()
    zipped = path.with_name(f"{path.name}.gz")
    return File(
        content, zipped.read_bytes() if zipped.is_file() else b"", _etag(content), TYPES.get(path.suffix, "text/html")
    )


def _etag(content: bytes) -> str:
    """Weak, as both encodings have the same tag."""
    return f'W/"{hashlib.sha256(content).hexdigest()[:24]}"'
