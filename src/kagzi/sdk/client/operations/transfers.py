"""Exports and imports runs as lines of JSON."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc.aio

from ....core import limits
from ....core.errors import InvalidArgument
from ....core.public import exported
from ....core.text.lines import LineBuffer
from ....core.transfers.images import begins_run
from ....v1 import workflow_pb2 as pb
from ...transport.connection import CALL_TIMEOUT_S, Connection
from ...transport.unreachable import Outage

if TYPE_CHECKING:
    from tempfile import SpooledTemporaryFile

TRANSFER_S = 3_600.0
AT_ONCE = 8
"""How many runs the command line exports or imports at the same time."""
MOST_AT_ONCE = 64
_LINES_AHEAD = 4  # a line has up to 2 MiB
_SPOOL_BYTES = 8 * limits.MIB  # a run kept for resending; larger ones are kept on disk


@exported
@dataclass(frozen=True, slots=True)
class ImportedRun:
    """A run that was imported."""

    id: str  #: its run id
    created: bool  #: False if the identical run existed already


class Transfers:
    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection = connection
        self._namespace = namespace

    async def export(self, run_id: str) -> AsyncIterator[bytes]:
        """The lines of one run, with their line ends. Raises NotFound, PreconditionFailed, Unavailable."""
        async with aclosing(self._chunks(run_id)) as chunks:
            async for line in lines_of(chunks):
                yield line

    async def _chunks(self, run_id: str) -> AsyncGenerator[bytes]:
        request = pb.ExportWorkflowRequest(namespace_id=self._namespace, run_id=run_id)
        with self._connection.tries(TRANSFER_S, last_try_s=CALL_TIMEOUT_S) as tries:
            while True:
                link = self._connection.link
                has_begun = False
                try:
                    with link:
                        stream = link.workflows.ExportWorkflow(
                            request, timeout=tries.next_timeout_s(), metadata=link.metadata
                        )
                        async for answer in stream:
                            has_begun = True
                            yield answer.json
                    return
                except grpc.aio.AioRpcError as error:
                    problem = self._connection.problem_of(error)
                if has_begun:  # yielded lines cannot be taken back
                    raise problem.error() if isinstance(problem, Outage) else problem
                await self._connection.try_again(tries, link, problem)

    async def import_runs(self, lines: AsyncIterable[bytes], at_once: int) -> AsyncIterator[ImportedRun]:
        """Imports the runs, each completely or not at all, and yields them in order."""
        if not 0 < at_once <= MOST_AT_ONCE:
            raise InvalidArgument(f"at_once={at_once!r} must be from 1 to {MOST_AT_ONCE}.", field="at_once")
        importing: deque[asyncio.Task[ImportedRun]] = deque()
        try:
            async with aclosing(_runs_in(lines)) as runs:
                async for spool, first_line in runs:
                    importing.append(asyncio.create_task(self._import(spool, first_line)))
                    if len(importing) == at_once:
                        yield await importing.popleft()
            while importing:
                yield await importing.popleft()
        finally:
            for task in importing:
                task.cancel()
            await asyncio.gather(*importing, return_exceptions=True)

    async def _import(self, spool: "SpooledTemporaryFile[bytes]", first_line: int) -> ImportedRun:
        with spool, self._connection.tries(TRANSFER_S, last_try_s=CALL_TIMEOUT_S) as tries:
            while True:
                link = self._connection.link
                try:
                    with link:
                        call = link.workflows.ImportWorkflow(
                            self._requests(spool), timeout=tries.next_timeout_s(), metadata=link.metadata
                        )
                        answer = await call
                    return ImportedRun(answer.run_id, created=not answer.already_exists)
                except grpc.aio.AioRpcError as error:
                    problem = self._connection.problem_of(error)
                if isinstance(problem, InvalidArgument) and first_line > 1:
                    raise InvalidArgument(
                        f"the run that begins on line {first_line} was refused. In it, {problem.message}",
                        field=problem.field,
                    )
                await self._connection.try_again(tries, link, problem)

    def _requests(self, spool: "SpooledTemporaryFile[bytes]") -> Iterator[pb.ImportWorkflowRequest]:
        spool.seek(0)
        namespace = self._namespace
        while data := spool.read(limits.MESSAGE_SOFT_BYTES):
            yield pb.ImportWorkflowRequest(namespace_id=namespace, json=data)
            namespace = ""


async def _runs_in(lines: AsyncIterable[bytes]) -> "AsyncGenerator[tuple[SpooledTemporaryFile[bytes], int]]":
    """The lines of one run after the other, and the number of its first line. The caller closes the spool."""
    spool: SpooledTemporaryFile[bytes] | None = None
    first_line = number = 0
    try:
        async for line in lines:
            number += 1
            if spool is not None and begins_run(line):
                complete, spool = spool, None
                yield complete, first_line
            if spool is None:
                spool, first_line = _spool(), number
            spool.write(line if line.endswith(b"\n") else line + b"\n")
        if spool is not None:
            complete, spool = spool, None
            yield complete, first_line
    finally:
        if spool is not None:
            spool.close()


class Export:
    """The lines of a run, read a little ahead of whoever consumes them, so that several exports overlap."""

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue(_LINES_AHEAD)
        self._reading = asyncio.create_task(self._read(lines))

    async def _read(self, lines: AsyncIterator[bytes]) -> None:
        try:
            async for line in lines:
                await self._lines.put(line)
        finally:
            await self._lines.put(None)

    async def lines(self) -> AsyncIterator[bytes]:
        """Raises what the export raised."""
        while (line := await self._lines.get()) is not None:
            yield line
        await self._reading

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)


def _spool() -> "SpooledTemporaryFile[bytes]":
    from tempfile import SpooledTemporaryFile  # noqa: PLC0415  loaded only by programs that import runs

    return SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # closed by the caller


async def lines_of(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Lines with their line ends, however the chunks are divided."""
    buffer = LineBuffer()
    async for chunk in chunks:
        for line in buffer.add(chunk):
            yield line
    if buffer:
        yield buffer.last()


async def as_lines(source: "Iterable[bytes | str] | AsyncIterable[bytes | str]") -> AsyncIterator[bytes]:
    """Accepts an open file, a list of lines, or the result of `client.export`. Raises InvalidArgument."""
    if isinstance(source, (str, bytes)):
        raise InvalidArgument("import_runs needs lines: pass an open file, or a list of lines.", field="lines")
    if isinstance(source, AsyncIterable):
        async for line in source:
            yield line.encode() if isinstance(line, str) else line
    else:
        for line in source:
            yield line.encode() if isinstance(line, str) else line
