"""Watches Python files for changes, to restart a worker."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path


class Watched:
    """The Python files beside `source` (in the working directory without one), watched from construction on."""

    def __init__(self, source: Path | None) -> None:
        self._source = source
        self._modified_ns = _modified_ns(source)
        self.directory = (source.parent if source else Path.cwd()).resolve()
        # Never watch a whole home directory or /tmp.
        broad = {Path.home().resolve(), Path("/"), Path(tempfile.gettempdir()).resolve()}
        self.recursive = self.directory not in broad

    async def changes(self, stop: asyncio.Event) -> AsyncIterator[list[str]]:
        """Names of changed files, in batches, as an editor writes more than once. Ends with `stop`."""
        from watchfiles import PythonFilter, awatch  # pyright: ignore[reportUnknownVariableType]  trio's type is absent

        watch = awatch(self.directory, watch_filter=PythonFilter(), recursive=self.recursive, stop_event=stop)
        first = asyncio.ensure_future(anext(watch, None))
        await asyncio.sleep(0)  # it watches from here on, and does not report earlier changes
        if self._source is not None and _modified_ns(self._source) != self._modified_ns:
            yield [self._source.name]
        changes = await first
        while changes is not None:
            yield sorted({Path(path).name for _, path in changes})
            changes = await anext(watch, None)


def _modified_ns(source: Path | None) -> int:
    try:
        return 0 if source is None else source.stat().st_mtime_ns
    except OSError:
        return 0
