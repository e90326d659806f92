"""Many waits on one stream: the client sends ids at any time, and each is answered once, when its run has ended.

A slow reader costs little memory: results are kept while there is space, and after that only the ids of ended runs,
whose results are read from the store when they can be sent.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import grpc
import msgspec

from ...core import limits
from ...core.errors import InvalidArgument, ResourceExhausted, ServerUnavailable, limit_reached
from ...core.records import RunEnd
from ...engine import Runs, Waits
from ...v1 import workflow_pb2 as pb
from ...wire.common import read_namespace
from ...wire.runs import write_outcome
from .answer_budget import Answers
from .deadlines import Deadlines
from .interceptor import RETRY_HINT, Admit, Context, read_message
from .outbound_queue import WholeWrites
from .run_both import first_of

_PAGE_RUNS = 500
_END_BYTES = 256  # a result without output and error
_ID_BYTES = 6  # overhead of an id in a message


class WaitStreams:
    """The open wait streams by name, so that a start can name the stream that waits for its run."""

    def __init__(self) -> None:
        self._streams: dict[tuple[str, str], WaitStream] = {}

    def subscribe(self, namespace: str, stream_id: str, run_ids: Sequence[str]) -> bool:
        """Returns whether that stream now waits for all these runs; otherwise none is added."""
        stream = self._streams.get((namespace, stream_id))
        return stream is not None and stream.add(run_ids)

    def open(self, namespace: str, stream_id: str, stream: "WaitStream") -> None:
        """Raises InvalidArgument."""
        if len(stream_id) > limits.NAME_BYTES:
            raise InvalidArgument(
                f"stream_id has {len(stream_id)} characters; the limit is {limits.NAME_BYTES}. Use a UUID.",
                field="stream_id",
                metadata=limit_reached("name_bytes", limits.NAME_BYTES),
            )
        if stream_id:
            self._streams[namespace, stream_id] = stream

    def close(self, namespace: str, stream_id: str, stream: "WaitStream") -> None:
        if self._streams.get((namespace, stream_id)) is stream:
            del self._streams[namespace, stream_id]


class WaitStream:
    """One client's waits. Ends when the client has sent its last request and every wait is answered."""

    def __init__(
        self,
        runs: Runs,
        context: Context,
        deadlines: Deadlines,
        admit: Admit,
        *,
        answers: Answers,
        streams: WaitStreams,
    ) -> None:
        self._runs = runs
        self._streams = streams
        self._stream_id = ""
        self._admit = admit
        self._context = context
        self._deadlines = deadlines
        self._answers = answers
        self._outcomes: deque[tuple[RunEnd, int]] = deque()  # results kept, with their bytes
        self._later: dict[str, None] = {}  # ended runs whose results are read when they can be sent
        self._missing: list[str] = []  # while it is long, no requests are read
        self._readable = asyncio.Event()
        self._readable.set()
        self._open: set[str] = set()
        self._is_complete = False
        self._changed = asyncio.Event()
        self._writes = WholeWrites(context.write)
        self._namespace: str | None = None
        self._waits: Waits | None = None

    async def serve(self) -> None:
        try:
            finished = await first_of(self._read(), self._writes.run(self._send()), self._deadlines.ended())
        finally:
            self._streams.close(self._namespace or "", self._stream_id, self)
            if self._waits is not None:
                self._waits.close()
            self._answers.release(sum(size for _, size in self._outcomes))
            self._outcomes.clear()
        if finished == _STOPPED:
            raise ServerUnavailable(f"the server is stopping. {RETRY_HINT}")

    # --- requests -----------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        """Reads to the end of the requests; then the writer alone ends the stream."""
        while (data := await self._context.read()) is not grpc.aio.EOF:
            request = read_message(data, pb.WaitStreamRequest)
            if self._waits is None:
                await self._admit(read_namespace(request.namespace_id))
            self._ask(request)
            await self._readable.wait()
        self._is_complete = True
        self._changed.set()
        await asyncio.Event().wait()

    def _ask(self, request: pb.WaitStreamRequest) -> None:
        waits = self._opened(request)
        if request.forget:
            self._open.difference_update(request.forget)
            for run_id in request.forget:
                self._later.pop(run_id, None)
            waits.forget(list(request.forget))
        known = self._open.union(self._later)
        wanted = [run_id for run_id in dict.fromkeys(request.run_ids) if run_id not in known]
        if len(known) + len(wanted) > limits.WAITS_PER_STREAM:
            raise ResourceExhausted(
                f"a stream waits for at most {limits.WAITS_PER_STREAM} runs. Open another stream.",
                field="run_ids",
                metadata=limit_reached("waits_per_stream", limits.WAITS_PER_STREAM),
            )
        if wanted:
            self._open.update(wanted)
            waits.add(wanted)

    def add(self, run_ids: Sequence[str]) -> bool:
        """Waits for these runs too, unless they are too many. Called for the client that started them."""
        known = self._open.union(self._later)
        wanted = [run_id for run_id in dict.fromkeys(run_ids) if run_id not in known]
        if self._waits is None or len(known) + len(wanted) > limits.WAITS_PER_STREAM:
            return False
        self._open.update(wanted)
        self._waits.add(wanted)
        return True

    def _opened(self, request: pb.WaitStreamRequest) -> Waits:
        if self._waits is None:
            self._namespace = read_namespace(request.namespace_id)
            self._waits = self._runs.open_waits(self._namespace, self._deliver)
            self._stream_id = request.stream_id
            self._streams.open(self._namespace, self._stream_id, self)
        elif request.namespace_id and request.namespace_id != self._namespace:
            raise InvalidArgument(
                f"namespace_id={request.namespace_id!r} differs from the stream's, {self._namespace!r}. "
                "Open another stream.",
                field="namespace_id",
            )
        return self._waits

    def _deliver(self, outcomes: Sequence[RunEnd], missing: Sequence[str]) -> None:
        for end in outcomes:
            run_id = end.run.run_id
            if run_id not in self._open:
                continue
            self._open.discard(run_id)
            if self._answers.keep(size := _bytes_of(end)):
                self._outcomes.append((end, size))
            else:
                self._later[run_id] = None
        self._missing.extend(run_id for run_id in missing if run_id in self._open)
        self._open.difference_update(missing)
        if len(self._missing) > limits.WAITS_PER_STREAM:
            self._readable.clear()
        self._changed.set()

    # --- responses ----------------------------------------------------------------------------------------------------

    async def _send(self) -> None:
        """Returns when the requests have ended and every wait is answered."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self._missing or self._outcomes or self._later:
                await self._send_kept()
                if self._later:
                    await self._send_later()
            if self._is_complete and not self._open:
                return

    async def _send_kept(self) -> None:
        while self._missing:
            self._missing, missing = _divided(self._missing)
            await self._write(pb.WaitStreamResponse(not_found=missing))
        self._readable.set()
        while self._outcomes:
            some = [self._outcomes.popleft()]
            size = some[0][1]
            while self._outcomes and size + self._outcomes[0][1] <= limits.MESSAGE_SOFT_BYTES:
                some.append(self._outcomes.popleft())
                size += some[-1][1]
            try:
                await self._write(pb.WaitStreamResponse(outcomes=[write_outcome(end) for end, _ in some]))
            finally:
                self._answers.release(size)

    async def _send_later(self) -> None:
        """Sends one page of the results that were not kept."""
        namespace = self._namespace or ""
        run_ids = list(self._later)[:_PAGE_RUNS]
        async with self._answers.reserve(namespace) as reservation:
            answered = dict(zip(run_ids, await self._runs.endings(namespace, run_ids), strict=False))
            outcomes = [end for end in answered.values() if isinstance(end, RunEnd)]
            reservation.use(sum(map(_bytes_of, outcomes)))
            wanted = [run_id for run_id in answered if run_id in self._later]  # others were forgotten meanwhile
            for run_id in wanted:
                del self._later[run_id]
                if answered[run_id] is None:
                    self._missing.append(run_id)  # it was deleted meanwhile
                elif not isinstance(answered[run_id], RunEnd):
                    self._wait_again(run_id)
            for message in _messages(end for end in outcomes if end.run.run_id in wanted):
                await self._write(message)

    def _wait_again(self, run_id: str) -> None:
        """Called for a run that had ended and was reopened by a retry."""
        self._open.add(run_id)
        if self._waits is not None:
            self._waits.add((run_id,))

    async def _write(self, message: pb.WaitStreamResponse) -> None:
        await self._writes.write(message.SerializeToString())


def _divided(run_ids: list[str]) -> tuple[list[str], list[str]]:
    """The remaining ids, and those that fit into a message."""
    size = count = 0
    for run_id in run_ids:
        size += len(run_id.encode(errors="replace")) + _ID_BYTES
        if count and size > limits.MESSAGE_SOFT_BYTES:
            break
        count += 1
    return run_ids[count:], run_ids[:count]


def _messages(outcomes: Iterable[RunEnd]) -> Iterator[pb.WaitStreamResponse]:
    message = pb.WaitStreamResponse()
    size = 0
    for end in outcomes:
        size += _bytes_of(end)
        if message.outcomes and size > limits.MESSAGE_SOFT_BYTES:
            yield message
            message = pb.WaitStreamResponse()
            size = _bytes_of(end)
        message.outcomes.append(write_outcome(end))
    if message.outcomes:
        yield message


def _bytes_of(end: RunEnd) -> int:
    size = _END_BYTES
    if end.output is not None:
        size += len(end.output.data)
    if end.error is not None:
        size += len(msgspec.json.encode(end.error))
    return size


_STOPPED = 2  # index of `ended()` among the coroutines of `first_of`
