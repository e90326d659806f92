"""Finds runs by what people type: a run id, the beginning of one, or a workflow id."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

from ...core.errors import NotFound, not_found
from ...core.ids import is_uuid
from ...sdk.client.client import Kagzi
from ...sdk.client.filters import Matching
from ...sdk.client.run import Run
from ...sdk.client.run_records import RunInfo
from ..exits import Exit, Stop

_PREFIX = re.compile(r"[0-9a-f-]{4,35}")
_UUID7_TIME_DIGITS = 12
_CLOCK_SLACK_MS = 1_000
_LATEST_MS = 253_402_300_799_000  # the wire ends with the year 9999
_SCAN_ROWS = 100_000


async def find_run(client: Kagzi, name: str) -> Run[Any]:
    """The run as it is now (`last_info`). A workflow id means its latest run. Raises NotFound, and Stop for an
    ambiguous prefix."""
    prefix = name.lower()
    for each in dict.fromkeys((prefix if is_uuid(prefix) else name, name)):  # a UUID may be the user's own workflow id
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
    """The same, with its record."""
    run = await find_run(client, name)
    return run, run.last_info or await run.info()


async def list_infos(client: Kagzi, matching: Matching, limit: int) -> AsyncIterator[RunInfo]:
    """Newest first, without their payloads."""
    async for run in client.list(limit=limit, **matching):
        yield run.last_info or await run.info()


async def _find_by_prefix(client: Kagzi, prefix: str) -> Run[Any]:
    """A run id begins with the milliseconds of its creation, so that a prefix limits when that was."""
    digits = prefix.replace("-", "")[:_UUID7_TIME_DIGITS]
    since = _moment(int(digits.ljust(_UUID7_TIME_DIGITS, "0"), 16) - _CLOCK_SLACK_MS)
    until = _moment(int(digits.ljust(_UUID7_TIME_DIGITS, "f"), 16) + _CLOCK_SLACK_MS)
    matches: list[str] = []
    async for run in client.list(since=since, until=until, limit=_SCAN_ROWS):
        if run.id.startswith(prefix):
            matches.append(run.id)
            if len(matches) > 5:
                break
    if not matches:
        raise not_found("run", prefix)
    if len(matches) > 1:
        some = "\n  ".join(matches[:5])
        raise Stop(Exit.USAGE, f"{prefix!r} is the beginning of more than one run id:\n  {some}", "write more digits")
    run = client.get(matches[0])
    await run.info()
    return run


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=min(max(ms, 0), _LATEST_MS))
