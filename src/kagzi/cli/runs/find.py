"""Finds a run by run id, the beginning of one, or workflow id."""

import re
from collections.abc import AsyncIterator
from typing import Any

from ...core import limits
from ...core.errors import NotFound, not_found
from ...core.ids import is_uuid
from ...core.records import RunOrder
from ...sdk.client.client import Kagzi
from ...sdk.client.filters import Matching
from ...sdk.client.run import Run
from ...sdk.client.run_records import RunInfo
from ..exits import Exit, Stop

_PREFIX = re.compile(r"[0-9a-f-]{4,35}")


async def find_run(client: Kagzi, name: str) -> Run[Any]:
    """The run with its current state (`last_info`). A workflow id means its latest run. Raises NotFound, and Stop for
    an ambiguous prefix."""
    prefix = name.lower()
    for each in dict.fromkeys((prefix if is_uuid(prefix) else name, name)):  # a UUID may also be a workflow id
        run = client.get(each)
        try:
            await run.info()
        except NotFound:
            continue
        return run
    if not _PREFIX.fullmatch(prefix):
        raise not_found("run", name)
    return await _find_by_prefix(client, prefix)


async def find_info(client: Kagzi, name: str) -> tuple[Run[Any], RunInfo]:
    """The run, with its record."""
    run = await find_run(client, name)
    return run, run.last_info or await run.info()


async def list_infos(
    client: Kagzi, matching: Matching, limit: int, *, order: RunOrder | None = None
) -> AsyncIterator[RunInfo]:
    """Newest first, without their payloads."""
    async for run in client.list(limit=limit, order=order, **matching):
        yield run.last_info or await run.info()


async def _find_by_prefix(client: Kagzi, prefix: str) -> Run[Any]:
    runs = client.list(id_prefix=prefix, limit=limits.PAGE_MAX_ROWS)
    matches = [run.id async for run in runs if run.id.startswith(prefix)]  # workflow ids may match too
    if not matches:
        raise not_found("run", prefix)
    if len(matches) > 1:
        some = "\n  ".join(matches[:5])
        raise Stop(Exit.USAGE, f"{prefix!r} is the beginning of more than one run id:\n  {some}", "write more digits")
    run = client.get(matches[0])
    await run.info()
    return run
