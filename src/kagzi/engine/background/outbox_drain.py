"""Drains an outbox: rows that users wrote in their own transactions become runs, one each.

A row is deleted after its run was started. If that is uncertain, because a server died or a connection broke, the start
is repeated with the same request id, which returns the existing run.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

import msgspec

from ...core import limits
from ...core.errors import (
    InternalError,
    InvalidArgument,
    KagziError,
    PermissionDenied,
    ResourceExhausted,
    StatementFailed,
    Unavailable,
    limit_reached,
)
from ...core.run.commands import StartRequest
from ...core.run.outcomes import Existing, Started
from ...store.protocol.outbox import Fate, Outbox, OutboxCounts, OutboxRow, Postponed, Refused, Taken
from ..commit.outages import backoff_s
from ..measurements.measurements import Measurements
from ..services.runs import Runs

logger = logging.getLogger("kagzi.engine")

BATCH_ROWS = 100
_DEAF_INTERVAL_S = 1.0  # without notifications of new rows
_COUNT_INTERVAL_S = 30.0
_LONGEST_PAUSE_S = 30.0
_POSTPONED_FIRST_S = 1.0
_POSTPONED_MOST_S = 60.0

Read = Callable[[bytes], StartRequest]


class OutboxDrain:
    """`read` decodes a start from the bytes of a row; raises KagziError. `namespaces`: those in which the outbox may
    start runs; empty: all. `interval_s`: between two polls, for rows whose notification was missed."""

    def __init__(
        self,
        outbox: Outbox,
        runs: Runs,
        measurements: Measurements,
        *,
        read: Read,
        namespaces: frozenset[str],
        interval_s: float,
    ) -> None:
        self._outbox = outbox
        self._runs = runs
        self._measurements = measurements
        self._read = read
        self._namespaces = namespaces
        self._interval_s = interval_s
        self._changed = asyncio.Event()
        self._counts = OutboxCounts(0, 0)
        self._counted_s = float("-inf")
        self._is_absent = False
        measurements.gauge("kagzi_outbox_rows", lambda: {(name,): n for name, n in self._counts._asdict().items()})

    # --- two tasks ----------------------------------------------------------------------------------------------------

    async def listen(self) -> None:
        """Runs forever. Without it, rows are found by polling."""
        failures = 0
        while True:
            try:
                await self._outbox.listen(self._changed.set)
            except Unavailable as error:
                failures += 1
                logger.warning("new rows of the outbox are found by polling only: %s", error)
            else:
                failures = 0
            await asyncio.sleep(backoff_s(max(failures, 1), first_s=1.0, most_s=_LONGEST_PAUSE_S))

    async def run(self) -> None:
        """Runs forever."""
        failures = 0
        try:
            while True:
                self._changed.clear()
                try:
                    rows = await self._outbox.drain(BATCH_ROWS, self._start)
                    await self._count()
                except (Unavailable, StatementFailed) as error:
                    failures += 1
                    logger.warning("the outbox at %s is not drained; trying again: %s", self._outbox.place, error)
                    await asyncio.sleep(backoff_s(failures, first_s=0.5, most_s=_LONGEST_PAUSE_S))
                    continue
                failures = 0
                self._note_absence(rows)
                if rows < BATCH_ROWS:
                    await self._wait()
        finally:
            await self._outbox.close()

    async def _wait(self) -> None:
        pause_s = self._interval_s if self._outbox.listens else min(_DEAF_INTERVAL_S, self._interval_s)
        try:
            async with asyncio.timeout(pause_s):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _count(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._counted_s >= _COUNT_INTERVAL_S:
            self._counts = await self._outbox.counts()
            self._counted_s = now_s

    def _note_absence(self, rows: int) -> None:
        if (rows < 0) != self._is_absent:
            self._is_absent = rows < 0
            words = "has no table kagzi_outbox yet" if self._is_absent else "has the table kagzi_outbox now"
            logger.warning("the outbox at %s %s", self._outbox.place, words)

    # --- rows ---------------------------------------------------------------------------------------------------------

    async def _start(self, rows: Sequence[OutboxRow]) -> Sequence[Fate]:
        """Raises Unavailable if the store is unavailable; then the result is unknown for all rows."""
        fates: dict[int, Fate] = {}
        requests: dict[int, StartRequest] = {}
        for index, row in enumerate(rows):
            try:
                requests[index] = self._request(row)
            except KagziError as error:
                fates[index] = self._refused(row, error)
        answers = await self._runs.start_many(list(requests.values()))
        for index, answer in zip(requests, answers, strict=True):
            fates[index] = self._fate(rows[index], answer)
        return [fates[index] for index in range(len(rows))]

    def _request(self, row: OutboxRow) -> StartRequest:
        """Raises KagziError."""
        if row.request_bytes > limits.MESSAGE_HARD_BYTES:
            raise InvalidArgument(
                f"the column request has {row.request_bytes} bytes; the limit is {limits.MESSAGE_HARD_BYTES}. Write "
                "rows with client.start_in().",
                field="request",
                metadata=limit_reached("message_bytes", limits.MESSAGE_HARD_BYTES),
            )
        request = self._read(row.request)
        if not request.request_id:
            raise InvalidArgument(
                "request_id is empty, so that a repeated start could not be told from another one. Write rows with "
                "client.start_in().",
                field="request_id",
            )
        if self._namespaces and request.namespace not in self._namespaces:
            raise _foreign(request.namespace, self._namespaces)
        if request.delay_us is None:
            return request
        return msgspec.structs.replace(request, delay_us=max(request.delay_us - row.age_us, 0))

    def _fate(self, row: OutboxRow, answer: Started | Existing | KagziError) -> Fate:
        if isinstance(answer, Started | Existing):
            self._measurements.outbox["started" if isinstance(answer, Started) else "existing"] += 1
            return Taken()
        if isinstance(answer, Unavailable):
            raise answer
        if isinstance(answer, ResourceExhausted | InternalError):
            self._measurements.outbox["postponed"] += 1
            if not row.attempts:
                logger.warning("a start of the outbox has to wait: %s: %s", _words(row), answer.message)
            delay_s = backoff_s(row.attempts + 1, first_s=_POSTPONED_FIRST_S, most_s=_POSTPONED_MOST_S)
            wanted_s = 0.0 if answer.retry_after is None else answer.retry_after.total_seconds()
            return Postponed(answer.message, max(delay_s, wanted_s))
        return self._refused(row, answer)

    def _refused(self, row: OutboxRow, error: KagziError) -> Refused:
        self._measurements.outbox["refused"] += 1
        self._counted_s = float("-inf")
        logger.error("a start of the outbox is refused, and kept there: %s: %s", _words(row), error.message)
        return Refused(f"{error.code}: {error.message}")


def _words(row: OutboxRow) -> str:
    return f"{row.workflow_type} {row.workflow_id!r} in namespace {row.namespace!r}"


def _foreign(namespace: str, allowed: frozenset[str]) -> KagziError:
    return PermissionDenied(
        f"this outbox may start runs in {', '.join(sorted(allowed))}, not in {namespace}. Add it to "
        "--outbox-namespaces of the servers, or start the run elsewhere."
    )
