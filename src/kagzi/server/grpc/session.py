"""A worker's session: a stream with many operations per message, and responses sent in batches by a single writer."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import grpc

from ...core import limits
from ...core.errors import InvalidArgument, PreconditionFailed
from ...core.limits import Settings
from ...core.pages.sizes import answers_bytes, outcome_bytes, task_bytes
from ...core.providers import Clock
from ...core.records import ClaimedRun, RunKey
from ...core.run.commands import Command
from ...core.run.outcomes import Outcome, Refused
from ...core.times import Timestamp
from ...engine import Notice, Session, Sessions
from ...v1 import worker_pb2 as pb
from ...wire.common import read_lease, read_leased, write_lease, write_leased
from ...wire.operations import read_operation, write_answers
from ...wire.schemas import read_schemas
from ...wire.steps import read_step_logs
from ...wire.tasks import write_task
from ...wire.workers import read_diagnostics, read_register
from .features import SESSION_FEATURES
from .incomplete import IncompleteMessages, Parts
from .interceptor import Context, read_message
from .outbound_queue import OutboundQueue
from .run_both import first_of
from .unread import Unread, UnreadStream

_NOTICE_KINDS = {
    "lease_lost": pb.RUN_NOTICE_KIND_LEASE_LOST,
    "cancel_requested": pb.RUN_NOTICE_KIND_CANCEL_REQUESTED,
    "pause_requested": pb.RUN_NOTICE_KIND_PAUSE_REQUESTED,
    "result": pb.RUN_NOTICE_KIND_RESULT,
    "warning": pb.RUN_NOTICE_KIND_WARNING,
}
_LINGER_S = 10.0  # how long a worker may wait for responses after its last message
_NOTICE_BYTES = 128  # size of a notice without its reason
_READ_AT_ONCE = 2 * limits.SESSION_OPERATIONS  # operations of one message, and runs that they are for

_Answers = Sequence[tuple[int, Outcome]]
_Part = tuple[int, Callable[[pb.SessionResponse], None]]
"""The most bytes that something adds to a message, and the function that adds it."""


class Outlet:
    """Collects the engine's messages to one worker; `take` serialises everything collected so far."""

    def __init__(self, clock: Clock, unread: Unread | None = None) -> None:
        self._clock = clock
        self._tasks: list[tuple[int, ClaimedRun]] = []
        self._answers: list[tuple[int, _Answers]] = []
        self._notices: dict[Notice, None] = {}  # a repeated notice adds nothing
        self.unread = UnreadStream(unread or Unread())
        self._notice: pb.SessionNotice | None = None
        self._stopping = False
        self._last_words = False
        self._unanswered = 0
        self.outbound = OutboundQueue(self._take)

    # --- called by the engine: fast, never raises ---------------------------------------------------------------------

    @property
    def sent(self) -> int:
        return self.outbound.sent

    def tasks(self, claimed: Sequence[ClaimedRun]) -> None:
        for run in claimed:
            size = task_bytes(run)
            self._tasks.append((size, run))
            self.unread.add(size)
        self.outbound.notify()

    def answers(self, answers: _Answers) -> None:
        size = answers_bytes(answers)
        self._answers.append((size, answers))
        self.unread.add(size)
        self._unanswered -= len(answers)
        self.outbound.notify()
        self._finish_if_answered()

    def notices(self, notices: Sequence[Notice]) -> None:
        self._notices.update(dict.fromkeys(notices))
        self.outbound.notify()

    def drain(self) -> None:
        self._session_notice().should_drain = True
        self.outbound.notify()

    def stopping(self) -> None:
        """Notifies the worker, and ends the stream once all its operations have been answered."""
        if not self._stopping:
            self._stopping = True
            self._session_notice().server_stopping = True
            self.outbound.notify()
            self.finish_when_answered()

    # --- called by the stream -----------------------------------------------------------------------------------------

    def add_operations(self, operations: int) -> None:
        self._unanswered += operations

    def finish_when_answered(self) -> None:
        self._last_words = True
        self._finish_if_answered()

    def _session_notice(self) -> pb.SessionNotice:
        if self._notice is None:
            self._notice = pb.SessionNotice()
        return self._notice

    def _finish_if_answered(self) -> None:
        if self._last_words and self._unanswered <= 0:
            self.outbound.finish()

    def _take(self) -> Iterator[bytes]:
        """Splits messages at the soft limit; a single task or answer may exceed it. Each message counts as read when
        the next one is requested."""
        notice, self._notice = self._notice, None
        response, size, waited = pb.SessionResponse(notice=notice), 0, 0
        for counted, (part_bytes, add) in self._parts():
            if size and size + part_bytes > limits.MESSAGE_SOFT_BYTES:
                yield response.SerializeToString()
                self.unread.read(waited)
                response, size, waited = pb.SessionResponse(), 0, 0
            add(response)
            size += part_bytes
            waited += counted
        data = response.SerializeToString()
        if data:
            yield data
        self.unread.read(waited)

    def _parts(self) -> Iterator[tuple[int, _Part]]:
        """The collected parts, each with the bytes that count as unread."""
        tasks, self._tasks = self._tasks, []
        answers, self._answers = self._answers, []
        notices, self._notices = self._notices, {}
        now = self._clock.now()
        for notice in notices:
            yield 0, (_NOTICE_BYTES + 4 * len(notice.reason), partial(_add_notice, notice))
        for size, commit in answers:
            for part_bytes, part in ((size, commit),) if size <= limits.MESSAGE_SOFT_BYTES else _split(commit):
                yield part_bytes, (part_bytes, partial(_add_answers, part, now))
        for size, claimed in tasks:
            yield size, (size, partial(_add_task, claimed))


def _split(answers: _Answers) -> Iterator[tuple[int, _Answers]]:
    """Splits the answers of one commit into parts that fit into a message or are a single answer."""
    part: list[tuple[int, Outcome]] = []
    part_bytes = 0
    for answer in answers:
        answer_bytes = outcome_bytes(answer[1])
        if part and part_bytes + answer_bytes > limits.MESSAGE_SOFT_BYTES:
            yield part_bytes, part
            part, part_bytes = [], 0
        part.append(answer)
        part_bytes += answer_bytes
    yield part_bytes, part


def _add_notice(notice: Notice, response: pb.SessionResponse) -> None:
    response.notices.append(_write_notice(notice))


def _add_answers(answers: _Answers, now: Timestamp, response: pb.SessionResponse) -> None:
    write_answers(response, answers, now)


def _add_task(claimed: ClaimedRun, response: pb.SessionResponse) -> None:
    response.tasks.append(write_task(claimed))


def _write_notice(notice: Notice) -> pb.RunNotice:
    return pb.RunNotice(
        run_id=notice.leased.run.run_id,
        lease=write_lease(notice.leased.lease),
        kind=_NOTICE_KINDS[notice.kind],
        reason=notice.reason,
    )


class SessionStream:
    """Reads the worker's messages until it leaves, its stream ends, or the server stops. Pauses while the worker has
    too much unread data."""

    def __init__(
        self,
        sessions: Sessions,
        context: Context,
        *,
        clock: Clock,
        settings: Settings,
        version: str,
        unread: Unread,
        incomplete: IncompleteMessages,
    ) -> None:
        self._sessions = sessions
        self._context = context
        self._clock = clock
        self._settings = settings
        self._version = version
        self._outlet = Outlet(clock, unread)
        self._parts = Parts(incomplete)
        self._namespace = ""
        self._is_leaving = False

    def close(self) -> None:
        """Stops counting its unread data, and drops an incomplete message."""
        self._outlet.unread.close()
        self._parts.drop()

    async def serve(self) -> None:
        hello = await self._hello()
        session = await self._open(hello.hello)
        # The session can receive runs from here on, so it must be closed in any case.
        session.set_reading(not self._outlet.unread.is_full)
        self._outlet.unread.on_change = lambda full: session.set_reading(not full)
        try:
            await self._welcome(session)
            await self._handle(session, hello)
            await first_of(self._read(session), self._outlet.outbound.deliver(self._context.write))
        finally:
            # In a task of its own: if the stream is cancelled, the session must still be closed.
            await asyncio.shield(asyncio.ensure_future(self._close(session)))

    async def _hello(self) -> pb.SessionRequest:
        request = read_message(await self._context.read(), pb.SessionRequest)
        if not request.HasField("hello"):
            raise InvalidArgument("the first message of a session must be hello.", field="hello")
        return request

    async def _open(self, hello: pb.SessionHello) -> Session:
        worker = read_register(hello.register)
        self._namespace = worker.namespace
        leased = [read_leased(run, worker.namespace) for run in hello.leased]
        return await self._sessions.open(worker, leased, self._outlet, read_schemas(hello.register))

    async def _welcome(self, session: Session) -> None:
        welcome = pb.SessionWelcome(
            worker_id=session.worker_id,
            lease_ms=self._settings.lease_ms,
            heartbeat_ms=self._settings.heartbeat_ms,
            server_version=self._version,
            now_us=self._clock.now(),
            lost=[write_leased(run) for run in session.lost],
            features=SESSION_FEATURES,
        )
        await self._context.write(pb.SessionResponse(welcome=welcome).SerializeToString())

    async def _read(self, session: Session) -> None:
        """Reads to the last message; then the writer ends the stream, within a time limit."""
        while not self._is_leaving:
            if self._outlet.unread.is_full:
                await self._outlet.unread.readable()
            data = await self._context.read()
            if data is grpc.aio.EOF:
                break
            request = read_message(data, pb.SessionRequest)
            if request.HasField("hello"):
                raise InvalidArgument("hello is only the first message of a session.", field="hello")
            if request.part:
                await self._take_part(session, request)
            else:
                await self._handle(session, request)
        self._outlet.finish_when_answered()
        await asyncio.sleep(_LINGER_S)

    async def _take_part(self, session: Session, request: pb.SessionRequest) -> None:
        session.note_contact()
        whole = self._parts.add(request.part, is_last=request.is_last_part)
        if whole is not None:
            request = read_message(whole, pb.SessionRequest)
            if request.part or request.HasField("hello"):
                raise InvalidArgument("what is sent in parts is neither a part nor hello.", field="part")
            await self._handle(session, request)

    async def _handle(self, session: Session, request: pb.SessionRequest) -> None:
        if session.closed:
            raise PreconditionFailed("this session is over: its worker has opened another one, or has left.")
        if request.received:
            session.received([read_leased(run, self._namespace) for run in request.received])
        if request.runs:
            for turn, (operations, refused) in enumerate(self._read_operations(request)):
                self._outlet.add_operations(len(operations) + len(refused))
                if refused:
                    self._outlet.answers(refused)
                if turn:
                    await asyncio.sleep(0)  # others are served between the parts of a long message
                if operations:
                    await session.submit(operations)
                    # The writer runs after the journal, in the same turn: after a commit inline, the answers are there.
                    self._outlet.outbound.notify()
        if request.heartbeat:
            await session.heartbeat([read_leased(run, self._namespace) for run in request.heartbeat])
        if request.HasField("update"):
            await self._update(session, request.update)

    def _read_operations(
        self, request: pb.SessionRequest
    ) -> Iterator[tuple[list[tuple[int, Command]], list[tuple[int, Outcome]]]]:
        """The operations that can be read, and the answers to the others, in parts of at most _READ_AT_ONCE."""
        operations: list[tuple[int, Command]] = []
        refused: list[tuple[int, Outcome]] = []
        read = 0
        now = self._clock.now()
        for part in request.runs:
            run, lease = RunKey(self._namespace, part.run_id), read_lease(part.lease)
            read += 1
            for operation in part.operations:
                command = read_operation(operation, run, lease, now)
                if isinstance(command, Refused):
                    refused.append((operation.id, command))
                else:
                    operations.append((operation.id, command))
                read += 1
                if read >= _READ_AT_ONCE:
                    yield operations, refused
                    operations, refused, read = [], [], 0
        yield operations, refused

    async def _update(self, session: Session, update: pb.SessionUpdate) -> None:
        await session.update(
            drain=update.drain,
            completed_delta=update.completed_delta,
            failed_delta=update.failed_delta,
            diagnostics=read_diagnostics(update),
            step_logs=read_step_logs(update.step_logs, self._namespace),
        )
        self._is_leaving = update.goodbye

    async def _close(self, session: Session) -> None:
        if self._is_leaving:
            await session.goodbye()
        else:
            await session.close()
