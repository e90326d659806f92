"""Writes log lines of steps to the store: collected briefly, written in batches, dropped under pressure.

Nothing waits for them. Lines that are unwritten when a server dies are lost, and so are lines that arrive during a long
outage of the store.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence

import msgspec

from ...core import limits
from ...core.errors import KagziError
from ...core.pages.counting import Counted
from ...core.pages.cursor import Cursor
from ...core.run.step_logs import StepLog, StepLogLines
from ...store.protocol import Store
from ..checks import requests as checks
from ..commit.outages import backoff_s
from ..services.paging import Page, PageAsk, page_cursor, page_of, page_size, with_total

logger = logging.getLogger("kagzi.engine")

_GATHERED_S = 0.25
_WRITTEN_AT_ONCE = 100  # steps
_CALL_TIMEOUT_S = 30.0
_TRIES = 100  # for the same lines; after that, the problem is not temporary


class StepLogs:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[tuple[str, str], StepLogLines] = {}
        self._bytes = 0
        self._added = asyncio.Event()
        self.dropped = 0  # lines, since the server started

    def add(self, lines: Iterable[StepLogLines]) -> None:
        """Queues lines, or drops and counts them if too many wait. Invalid names are ignored: no run has them."""
        for each in lines:
            if not 0 < len(each.step_id.encode()) <= limits.NAME_BYTES or "\0" in each.step_id:
                continue
            key = (each.run.run_id, each.step_id)
            waiting = self._waiting.get(key)
            if self._bytes + each.size > limits.STEP_LOGS_QUEUED_BYTES:
                self.dropped += len(each.lines)
                if waiting is not None:
                    dropped = waiting.dropped + each.dropped + len(each.lines)
                    self._waiting[key] = msgspec.structs.replace(waiting, dropped=dropped)
                continue
            self._bytes += each.size
            if waiting is not None:
                each = msgspec.structs.replace(  # noqa: PLW2901  both together
                    each, lines=(*waiting.lines, *each.lines), dropped=waiting.dropped + each.dropped
                )
            self._waiting[key] = each
            self._added.set()

    async def run(self) -> None:
        failures = 0
        while True:
            await self._added.wait()
            await asyncio.sleep(_GATHERED_S)
            self._added.clear()
            while self._waiting:
                some = self._take_some()
                try:
                    async with asyncio.timeout(_CALL_TIMEOUT_S):
                        await self._store.add_step_logs(some)
                    failures = 0
                except (KagziError, TimeoutError) as error:
                    failures += 1
                    self._failed(some, error, again=failures % _TRIES != 0)
                    await asyncio.sleep(backoff_s(failures))

    def _take_some(self) -> list[StepLogLines]:
        keys = list(self._waiting)[:_WRITTEN_AT_ONCE]
        some = [self._waiting.pop(key) for key in keys]
        self._bytes -= sum(each.size for each in some)
        return some

    def _failed(self, some: Sequence[StepLogLines], error: Exception, *, again: bool) -> None:
        """Puts the lines back, before newer ones, as far as there is space; after too many tries drops them."""
        if not again:
            lost = sum(len(each.lines) for each in some)
            self.dropped += lost
            logger.warning("%d log lines of steps were not written, because it failed many times: %s", lost, error)
            return
        newer, self._waiting, self._bytes = self._waiting, {}, 0
        self.add(some)
        self.add(newer.values())

    async def list(self, namespace: str, run_id: str, *, step_id: str = "", page: PageAsk) -> Page[StepLog]:
        """The last lines of each step of the run, by step id; or of one step. Raises NotFound, InvalidArgument."""
        run = checks.key(namespace, run_id)
        checks.optional_name(step_id, "step_id")
        bound_to = msgspec.json.encode(("step logs", namespace, run_id, step_id)).decode()
        cursor = page_cursor(page, bound_to)
        rows = await self._store.list_step_logs(run, step_id=step_id or None, cursor=cursor, limit=page_size(page))
        if rows is None:
            raise checks.no_run(run_id)
        result = page_of(rows, cursor, bound_to, lambda log: Cursor(0, log.step_id))
        result = msgspec.structs.replace(result, prev_token="")  # only pages forward, like the list of steps
        what = Counted(rows="step_logs", namespace=namespace, key=run_id, step_name=step_id)
        return await with_total(result, page, self._store, what)
