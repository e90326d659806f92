"""What changed on disk, for those who start something anew because of it."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path


def watched(source: Path | None) -> tuple[Path, bool]:
    """The directory to watch, and whether with all below it: never the whole of a home directory or /tmp."""
    directory = (source.parent if source else Path.cwd()).resolve()
    broad = {Path.home().resolve(), Path("/"), Path(tempfile.gettempdir()).resolve()}
    return directory, directory not in broad


async def changes(source: Path | None, stop: asyncio.Event) -> AsyncIterator[list[str]]:
    """Names of changed Python files, gathered: an editor writes more than once."""
    from watchfiles import PythonFilter, awatch  # pyright: ignore[reportUnknownVariableType]  a type of trio, absent here

    directory, recursive = watched(source)
    async for found in awatch(directory, watch_filter=PythonFilter(), recursive=recursive, stop_event=stop):
        yield sorted({Path(path).name for _, path in found})
