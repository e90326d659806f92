"""Many waits on one stream: ids come in at any time, each is answered once, when its run has ended."""

import asyncio
from collections.abc import Iterator, Sequence

import grpc

from ..core import limits
from ..core.errors import InvalidArgument, ResourceExhausted, ServerUnavailable, limit_reached
from ..core.records import RunEnd
from ..engine import Runs, Waits
from ..v1 import workflow_pb2 as pb
from ..wire.common import read_namespace
from ..wire.runs import write_outcome
from .duplex import first_of
from .gate import RETRY_HINT, Admit, Context, read_message
from .mailbox import Mailbox
from .patience import Patience


class WaitStream:
    """One client's waits. Ends when the client has nothing more to ask and everything is answered."""

    def __init__(self, runs: Runs, context: Context, patience: Patience, admit: Admit) -> None:
        self._runs = runs
        self._admit = admit
        self._context = context
        self._patience = patience
        self._mailbox = Mailbox(self._take)
        self._ends: list[RunEnd] = []
        self._not_found: list[str] = []
        self._open: set[str] = set()
        self._asked_all = False
        self._namespace: str | None = None
        self._waits: Waits | None = None

    async def serve(self) -> None:
        try:
            finished = await first_of(self._read(), self._mailbox.deliver(self._context.write), self._patience.ended())
        finally:
            if self._waits is not None:
                self._waits.close()
        if finished == _STOPPED:
            raise ServerUnavailable(f"the server is stopping. {RETRY_HINT}")

    async def _read(self) -> None:
        """Reads to the end of the requests; then only the writer decides when it is over."""
        while (data := await self._context.read()) is not grpc.aio.EOF:
            request = read_message(data, pb.WaitStreamRequest)
            if self._waits is None:
                await self._admit(read_namespace(request.namespace_id))
            self._ask(request)
        self._asked_all = True
        self._finish_if_answered()
        await asyncio.Event().wait()

    def _ask(self, request: pb.WaitStreamRequest) -> None:
        waits = self._opened(request)
        if request.forget:
            self._open.difference_update(request.forget)
            waits.forget(list(request.forget))
        wanted = [run_id for run_id in dict.fromkeys(request.run_ids) if run_id not in self._open]
        if len(self._open) + len(wanted) > limits.WAITS_PER_STREAM:
            raise ResourceExhausted(
                f"a stream waits for at most {limits.WAITS_PER_STREAM} runs. Open another stream.",
                field="run_ids",
                metadata=limit_reached("waits_per_stream", limits.WAITS_PER_STREAM),
            )
        if wanted:
            self._open.update(wanted)
            waits.add(wanted)

    def _opened(self, request: pb.WaitStreamRequest) -> Waits:
        if self._waits is None:
            self._namespace = read_namespace(request.namespace_id)
            self._waits = self._runs.open_waits(self._namespace, self._deliver)
        elif request.namespace_id and request.namespace_id != self._namespace:
            raise InvalidArgument(
                f"namespace_id={request.namespace_id!r} differs from the stream's, {self._namespace!r}. Open another stream.",
                field="namespace_id",
            )
        return self._waits

    def _deliver(self, ends: Sequence[RunEnd], not_found: Sequence[str]) -> None:
        self._ends.extend(end for end in ends if end.run.run_id in self._open)
        self._not_found.extend(run_id for run_id in not_found if run_id in self._open)
        self._open.difference_update(end.run.run_id for end in ends)
        self._open.difference_update(not_found)
        self._mailbox.notify()
        self._finish_if_answered()

    def _finish_if_answered(self) -> None:
        if self._asked_all and not self._open:
            self._mailbox.finish()

    def _take(self) -> Iterator[bytes]:
        ends, self._ends = self._ends, []
        not_found, self._not_found = self._not_found, []
        response = pb.WaitStreamResponse(not_found=not_found)
        size = response.ByteSize()
        for end in ends:
            outcome = write_outcome(end)
            size += outcome.ByteSize()
            if size > limits.MESSAGE_SOFT_BYTES and response.outcomes:
                yield response.SerializeToString()
                response = pb.WaitStreamResponse()
                size = outcome.ByteSize()
            response.outcomes.append(outcome)
        if response.outcomes or response.not_found:
            yield response.SerializeToString()


_STOPPED = 2  # which of the three ended first
