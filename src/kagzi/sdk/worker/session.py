"""A worker's stream to a server: kept open while the worker lives, to any server that can be reached.

After a break the worker registers again with all its leased runs, and resends unanswered messages. One write is in
flight at a time; operations that the runs produce meanwhile form the next message.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Iterator

import grpc.aio

from ...core import limits
from ...core.errors import InternalError, KagziError, ResourceExhausted, Unavailable
from ...v1 import common_pb2
from ...v1 import worker_pb2 as pb
from ...wire.enums import PARTS, RECORD_STEP
from ...wire.requests import write_diagnostics
from ..transport.calls import StreamOver, receive, write
from ..transport.connection import BARE_STATUS, Connection
from ..transport.link import Link
from ..transport.tries import Backoff, Waiting
from ..transport.unreachable import Outage
from .diagnostics import Diagnostics
from .history import fetch_history
from .leased_runs import LeasedRuns, SendAgain
from .outbox import HEARTBEAT_TAG, RECEIVED_TAG, Message, Outbox, field
from .ports import Executor
from .streams.both_ways import PARTING_S, both_ways
from .streams.writing import Writing
from .unsent import encode_update

logger = logging.getLogger("kagzi.worker")

HOLD_S = 0.005
WELCOME_S = 10.0
LASTING_S = 30.0  # a stream that lasted this long does not count as a failed attempt

_TRIAL_S = 5.0  # how long to wait for the answer to a message that is resent alone
_TOO_LARGE_LONGEST_S = 60.0

_Call = grpc.aio.StreamStreamCall[bytes, pb.SessionResponse]


class Session:
    """Start it, then watch `ended`: it ends by itself only when a server refuses the worker for good."""

    def __init__(
        self,
        connection: Connection,
        register: pb.RegisterRequest,
        executor: Executor,
        *,
        on_welcome: Callable[[pb.SessionWelcome], None],
        on_drain: Callable[[], None],
        diagnostics: Diagnostics | None = None,
    ) -> None:
        self._connection = connection
        self._register = register
        self._on_welcome = on_welcome
        self._on_drain = on_drain
        self._diagnostics = diagnostics or Diagnostics()
        self._diagnostics_due = False
        self._wake = asyncio.Event()
        self._outbox = Outbox(self._wake.set, self._start_hold, connection.codec)
        self.leased = LeasedRuns(self._outbox, executor, self._fetch_history)
        self._received: list[bytes] = []
        self._hello_at = 0.0
        self._heartbeat_due = False
        self._heartbeat_s = 0.0
        self._heartbeat_timer: asyncio.TimerHandle | None = None
        self._hold_timer: asyncio.TimerHandle | None = None
        self._draining = self._drain_due = False
        self._closed_to_tasks = False
        self._goodbye_due = self._goodbye_sent = False
        self._server_stops = False
        self._is_open = False
        self._progress = False
        self._last_problem: KagziError | None = None
        self._outage: Waiting | None = None
        self._one_by_one = False
        self._on_trial: Message | None = None
        self._welcomed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._writing = Writing(self._outbox, self._due, self._beside, lambda: self._is_written)

    # --- life ---------------------------------------------------------------------------------------------------------

    async def start(self, *, timeout_s: float = WELCOME_S) -> None:
        """Returns when a server has accepted the worker. Raises the error with which a server refuses it, or
        Unavailable after `timeout_s`."""
        self._task = asyncio.create_task(self._live(), name="kagzi-session")
        welcomed = asyncio.ensure_future(self._welcomed.wait())
        try:
            await asyncio.wait((self._task, welcomed), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if self._task.done():
                self._task.result()
            elif not self._welcomed.is_set():
                problem, self._last_problem = self._last_problem, None
                name = _capital(self._connection.server)
                raise problem or Unavailable(f"{name} did not accept the worker within {timeout_s:g} s.")
        except BaseException:
            await self.close()
            raise
        finally:
            welcomed.cancel()

    @property
    def ended(self) -> "asyncio.Task[None]":
        """Done when the session is over. Raises the error if a server refused the worker."""
        if self._task is None:
            raise AssertionError("the session was not started")
        return self._task

    @property
    def problem(self) -> str | None:
        """Why the worker gets no work; None if it does."""
        if self._draining or self.ended.done():
            return "the worker is draining" if self._draining else "the worker can no longer serve; its log says why"
        return None if self._is_open else "the worker is not connected to a server"

    def drain(self) -> None:
        """Request no more work. Leased runs continue."""
        self._draining = self._drain_due = True
        self._wake.set()

    def report_diagnostics(self) -> None:
        self._diagnostics_due = True
        self._wake.set()

    def refuse_tasks(self) -> None:
        """Tasks that still arrive are not acknowledged: the server takes them back when the stream closes."""
        self._closed_to_tasks = True

    async def leave(self) -> None:
        """All runs were handed back: send goodbye, and wait briefly for the server to receive it."""
        self._goodbye_due = True
        self._wake.set()
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=PARTING_S)
        await self.close()

    async def close(self) -> None:
        for timer in (self._heartbeat_timer, self._hold_timer):
            if timer is not None:
                timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,), timeout=PARTING_S)
        if self._outage is not None:
            self._connection.notices.end(self._outage, answered=False)
            self._outage = None

    async def _live(self) -> None:
        time = asyncio.get_running_loop().time
        backoff = Backoff(self._connection.rng)
        patient = Backoff(self._connection.rng, longest_s=_TOO_LARGE_LONGEST_S)
        while True:
            link = self._connection.link
            self._progress = self._is_open = False
            opened_at = time()
            self._on_trial = None
            outcome = await self._one_stream(link)
            if self._goodbye_sent or self._goodbye_due:
                return
            problem = self._note_outage(outcome)
            if not isinstance(problem, (Unavailable, InternalError, ResourceExhausted)):
                raise problem
            if isinstance(problem, ResourceExhausted) and not self._welcomed.is_set():
                raise problem
            too_large = _is_too_large(problem)
            if too_large:
                self._answer_too_large(problem)
            elif self._progress or time() - opened_at > LASTING_S:
                backoff.reset()
                patient.reset()
            if self._is_open:
                level = (
                    logging.INFO if isinstance(outcome, Outage) else logging.WARNING
                )  # an outage is logged if it lasts
                logger.log(level, "the session was interrupted: %s", problem)
            self._last_problem = problem
            await self._connection.move(link)
            await asyncio.sleep((patient if too_large else backoff).next_s())

    async def _one_stream(self, link: Link) -> "KagziError | Outage":
        """From hello to the end of the stream. Returns why it ended."""
        try:
            with link:
                await self._converse(link)
        except grpc.aio.AioRpcError as error:
            return self._connection.problem_of(error)
        except StreamOver:
            return self._connection.broken("closed the session")
        except SendAgain as refusal:
            return self._connection.broken(f"could not record an operation: {refusal}")
        except TimeoutError:
            return self._connection.broken(f"did not respond to the worker's hello within {WELCOME_S:g} s")
        return self._connection.broken("closed the session")

    def _note_outage(self, outcome: "KagziError | Outage") -> KagziError:
        """Log the outage if it lasts. Returns it as an error."""
        if not isinstance(outcome, Outage):
            return outcome
        if self._outage is None:
            self._outage = self._connection.notices.begin(None)
        self._outage.failed(outcome, asyncio.get_running_loop().time())
        return outcome.error()

    # --- one stream ---------------------------------------------------------------------------------------------------

    async def _converse(self, link: Link) -> None:
        call = link.session(metadata=link.metadata)
        try:
            async with asyncio.timeout(WELCOME_S):
                await write(call, self._hello())
                first = await call.read()
            if not isinstance(first, pb.SessionResponse):
                return
            self._take_in(first)
            await both_ways(receive(call, self._take_in), self._write(call))
        finally:
            call.cancel()

    def _hello(self) -> bytes:
        self._received.clear()
        self._server_stops = False
        self._drain_due = self._draining
        self._hello_at = self.leased.clock.now()
        proofs = [pb.LeasedRun.FromString(proof) for proof in self.leased.proofs()]
        return pb.SessionRequest(hello=pb.SessionHello(register=self._register, leased=proofs)).SerializeToString()

    async def _write(self, call: _Call) -> None:
        writing = self._writing
        for message in self._outbox.unanswered():
            await writing.again(call, message.data)
            if self._one_by_one:
                await self._tried(message)
        self._one_by_one = False
        self._wake.set()
        while not (self._goodbye_sent or self._server_stops):  # _is_written, without a call for each message
            await self._wake.wait()
            for data in self._due():
                await write(call, data)
            if self._outbox.has_large:
                await writing.large(call)
        await call.done_writing()

    @property
    def _is_written(self) -> bool:
        """Whether nothing more may be written to this stream."""
        return self._goodbye_sent or self._server_stops

    def _due(self) -> Iterator[bytes]:
        """Messages with everything that is due now, but large operations."""
        self._wake.clear()
        messages = self._outbox.take()
        if self._outbox.has_refusals:
            self.leased.refuse(self._outbox.take_refusals())
        for data in messages:
            beside = self._beside()
            if beside and len(beside) + len(data) > limits.MESSAGE_UNCOUNTED_BYTES:
                yield beside
                beside = b""
            yield data + beside if beside else data
        # The messages took what was due with them. Whatever became due since has set _wake.
        if (not messages or self._wake.is_set()) and (beside := self._beside()):
            yield beside

    async def _tried(self, message: Message) -> None:
        """Returns when the message is answered. If the stream breaks meanwhile because of a response that is too large,
        the response belongs to this message."""
        self._on_trial = message
        message.settled = asyncio.Event()
        try:
            async with asyncio.timeout(_TRIAL_S):
                await message.settled.wait()
        except TimeoutError:
            pass
        self._on_trial = None

    def _answer_too_large(self, problem: KagziError) -> None:
        """The server sent a response that is too large to read, and would send it again after each reconnect. Resending
        the messages one by one shows which run it belongs to; that run is abandoned, the others continue."""
        message = self._on_trial
        ports = [] if message is None else self._outbox.ports_of(message)
        if not ports:
            logger.error(
                "the server sent more than this worker reads at once: %s. Looking for the run it was for.", problem
            )
            self._one_by_one = True
            return
        for port in ports:
            logger.error(
                "run %s is abandoned by this worker: a response is larger than the %d bytes that can be read (%s). Use "
                "a server of this version or newer.",
                port.run_id,
                limits.MESSAGE_READ_BYTES,
                problem,
            )
            self.leased.abandon(port, "a response was too large to be read")

    def _beside(self) -> bytes:
        """What is sent beside operations and never resent: receipts, heartbeats, diagnostics and counts of the
        worker."""
        is_update_due = self._heartbeat_due or self._drain_due or self._goodbye_due or self._diagnostics_due
        if not (self._received or is_update_due):
            return b""
        parts = [field(RECEIVED_TAG, proof) for proof in self._received]
        self._received.clear()
        if self._heartbeat_due:
            self.leased.clock.renewed(self.leased.clock.now())
            parts.extend(field(HEARTBEAT_TAG, proof) for proof in self.leased.proofs())
        if is_update_due:
            update = pb.SessionUpdate(
                drain=self._draining,
                completed_delta=self.leased.completed,
                failed_delta=self.leased.failed,
                goodbye=self._goodbye_due,
                diagnostics=write_diagnostics(self._diagnostics.take()),
                step_logs=self._diagnostics.take_logs(),
            )
            encode_update(self._connection.codec, update)
            parts.append(pb.SessionRequest(update=update).SerializeToString())
            self.leased.completed = self.leased.failed = 0
            self._goodbye_sent = self._goodbye_due
            self._heartbeat_due = self._drain_due = self._diagnostics_due = False
        return b"".join(parts)

    def _take_in(self, response: pb.SessionResponse) -> None:
        if response.acknowledged or response.answers:
            self._progress = True
            self.leased.answers(response)
            if self.leased:
                self._wake.set()  # the writer runs after the runs that continue, in the same turn of the loop
        if response.tasks and not self._closed_to_tasks:
            self._received.extend(self.leased.accept(task) for task in response.tasks)
            self._wake.set()
        for notice in response.notices:
            self.leased.notice(notice)
        if response.HasField("welcome"):
            self._take_welcome(response.welcome)
        if response.HasField("notice"):
            if response.notice.should_drain:
                self.drain()
                self._on_drain()
            if response.notice.server_stopping:
                self._server_stops = True
                self._wake.set()

    def _take_welcome(self, welcome: pb.SessionWelcome) -> None:
        self._is_open = True
        if self._outage is not None:
            self._connection.notices.end(self._outage, answered=True)
            self._outage = None
        self._outbox.records_whole_steps = RECORD_STEP in welcome.features
        self._writing.sends_parts = PARTS in welcome.features
        self.leased.clock.lease_s = welcome.lease_ms / 1_000 or math.inf
        self.leased.clock.renewed(self._hello_at)
        self._heartbeat_s = max(welcome.heartbeat_ms, 1) / 1_000
        self.leased.lost(welcome.lost)
        self._on_welcome(welcome)
        if self._welcomed.is_set():
            logger.info("the session is open again; leased runs: %d", len(self.leased))
        else:
            self._welcomed.set()
            self._beat()

    # --- timers -------------------------------------------------------------------------------------------------------

    def _start_hold(self) -> None:
        """One timer for all: everything that is held is sent when it fires, however briefly it was held."""
        if self._hold_timer is None:
            self._hold_timer = asyncio.get_running_loop().call_later(HOLD_S, self._end_hold)

    def _end_hold(self) -> None:
        self._hold_timer = None
        self._outbox.release_waiting()

    def _beat(self) -> None:
        self._heartbeat_due = True
        self._wake.set()
        self._heartbeat_timer = asyncio.get_running_loop().call_later(self._heartbeat_s, self._beat)

    async def _fetch_history(
        self, run_id: str, lease: common_pb2.Lease, after: int, known_seq: int
    ) -> "list[pb.HistoryStep]":
        where = self._register.namespace_id, run_id
        return list(await fetch_history(self._connection, *where, lease, after, known_seq=known_seq))


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def _is_too_large(problem: KagziError) -> bool:
    """Whether gRPC in this process refused a received message."""
    is_refused = isinstance(problem, ResourceExhausted) and "larger than max" in problem.message
    return is_refused and BARE_STATUS in problem.metadata
