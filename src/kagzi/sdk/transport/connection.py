"""The connection to a server: to one of those in the address at a time, to another when that one fails.

Every unary call can be repeated, so every one is retried: with backoff, for a bounded time.
"""

import asyncio
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

import grpc
import grpc.aio

from ...core import limits
from ...core.errors import DOWN_SERVER, KagziError, PreconditionFailed, Unavailable
from ...core.outages import database_down
from ...core.providers import Clock, Rng
from ...core.records import DEFAULT_NAMESPACE
from ...core.run.addresses import LAST_SERVER
from ...core.times import US_PER_S, Timestamp
from ...core.version import __version__
from ...system import SystemClock, SystemRng
from ...v1 import admin_pb2
from ...wire.calls.call import Metadata
from ...wire.common import read_time_if
from ...wire.status import from_rpc_error
from ..tracing.tracing import trace_metadata
from .address import Address, parse_address
from .calls import CallChannel
from .channel import blocking_channel, grpc_channel
from .credentials import KEY_VARIABLE, Tls, call_metadata, channel_credentials, ssl_context, tls_of
from .embedding import Embedded, open_embedded
from .leaving import Leaving
from .link import Link
from .payload_codec import Codec, MessageCodec, message_codec
from .tries import OutageNotices, Tries
from .unreachable import Outage, reported_by_server, unreachable
from .websocket import PreferredChannel, websocket_allowed

if TYPE_CHECKING:
    from google.protobuf.message import Message

Request = TypeVar("Request")
Response = TypeVar("Response")

NAMESPACE_VARIABLE = "KAGZI_NAMESPACE"
CALL_TIMEOUT_S = 30.0
"""How long a call is tried, unless the client sets another time."""
CONNECT_S = 10.0  # for a host that does not respond at all
REFUSED_S = 3.0  # for a host that refuses connections
_PROBE_S = 2.0  # how long a server may take to report its state
_SHUNNED_US = 30 * US_PER_S  # how long a server that was left is not used, unless no other is there
API_VERSION = "v1"
BARE_STATUS = "grpc_status"  # in the metadata of errors without Kagzi's details


class Connection:
    """Opened once, closed once; any number of tasks may use it concurrently. `websocket`: use WebSocket where a server
    offers it. `codec`: for payloads; calls encode and decode, the streams of a link decode. `embedded`: the server in
    this process, if it is already running; otherwise an embedded address opens it."""

    def __init__(
        self,
        address: Address,
        *,
        tls: Tls | None,
        api_key: str | None,
        clock: Clock,
        rng: Rng,
        call_timeout_s: float = CALL_TIMEOUT_S,
        websocket: bool = True,
        codec: MessageCodec | None = None,
        embedded: Embedded | None = None,
    ) -> None:
        self.codec = codec
        self.address = address
        self.server = f"the {'process that serves' if address.embedded else 'server at'} {address.text}"
        self.call_timeout_s = call_timeout_s
        self.notices = OutageNotices(self._probe, clock.now)
        self.clock = clock
        self.rng = rng
        self.http_url = ""
        self.start_batches = 1
        self.max_payload_bytes = limits.PAYLOAD_BYTES
        self._key_metadata = call_metadata(address, tls, api_key)
        self._credentials = None if tls is None else channel_credentials(tls)
        self._ssl_context = None if tls is None or not websocket else ssl_context(tls)
        self._websocket = websocket
        self._embedded = embedded
        self._link: Link | None = None
        self._retired: list[Link] = []
        self._turn = 0
        self._shunned: dict[str, Timestamp] = {}  # servers that were left because others were ready, and until when
        self._leaving = Leaving(self)
        self._moving = asyncio.Lock()
        self._in_flight = asyncio.Semaphore(limits.CLIENT_CALLS)
        self._was_reached = False
        self._process = os.getpid()

    @property
    def link(self) -> Link:
        """The server in use. Raises PreconditionFailed if the connection is closed, or was opened before a fork."""
        if self._link is None:
            raise PreconditionFailed("This client is closed. Connect again.")
        if self._process != os.getpid():
            raise PreconditionFailed("This client was connected before a fork. Connect again in the child process.")
        return self._link

    async def open(self, *, timeout_s: float | None = None) -> None:
        """Returns when a server has responded. Raises Unavailable within `timeout_s` (if not given: within seconds, and
        sooner if nothing listens), PreconditionFailed if the versions are not compatible."""
        if self.address.embedded and self._embedded is None:
            self._embedded = await open_embedded(self.address.embedded)
        try:
            self._link = self._new_link()
            requested_at = self.clock.now()
            info = await self.call(
                lambda link: link.admin.GetServerInfo,
                admin_pb2.GetServerInfoRequest(),
                last_try_s=REFUSED_S if timeout_s is None else timeout_s,
                timeout_s=CONNECT_S if timeout_s is None else timeout_s,
            )
            self._learn(info, requested_at)
            await self.link.settle(info)
            if len(self.address.targets) > 1:
                self._leaving.start()
        except BaseException:
            await self.close()
            raise

    def _learn(self, info: admin_pb2.GetServerInfoResponse, requested_at: Timestamp) -> None:
        if info.api_version not in ("", API_VERSION):
            raise PreconditionFailed(
                f"The server at {self.address.text} speaks {info.api_version}, this SDK speaks {API_VERSION}. "
                "Install the SDK of the server's version."
            )
        if _release(info.min_sdk_version) > _release(__version__):
            raise PreconditionFailed(
                f"The server at {self.address.text} needs SDK {info.min_sdk_version} or newer; this is {__version__}. "
                f"Run: pip install 'kagzi>={info.min_sdk_version}'"
            )
        self.http_url = LAST_SERVER.http_url = info.http_url.rstrip("/")
        self.start_batches = max(info.start_batches, 1)
        self.max_payload_bytes = info.max_payload_bytes or limits.PAYLOAD_BYTES
        server_now = read_time_if(info, "now")
        if server_now is not None:
            self.clock.follow(server_now, requested_at, self.clock.now())

    async def call(
        self,
        method: "Callable[[Link], grpc.aio.UnaryUnaryMultiCallable[Request, Response]]",
        request: Request,
        *,
        timeout_s: float | None = None,
        try_s: float | None = None,
        last_try_s: float | None = None,
        refused: "Callable[[Response], KagziError | None] | None" = None,
        trace: Metadata | None = None,
    ) -> Response:
        """One unary call, retried while the server or its database is unavailable, for `timeout_s` in all (default: the
        client's); each try may take `try_s`, and none begins after `last_try_s`. `refused`: returns the error that a
        response has for a part of the request; if it is Unavailable, the whole call is retried. `trace`: the trace
        metadata to send; None: of the current span.

        Raises the server's error as a KagziError; Unavailable, which names what is down, when the time is over.
        The time starts when the call is sent: calls queue here, because a server limits how many it serves at once.
        """
        if self.codec is not None:
            self.codec.encode(cast("Message", request))
        traced = trace_metadata() if trace is None else trace
        async with self._in_flight:
            tries = self.tries(timeout_s, last_try_s=last_try_s)
            return await self._call(method, request, tries, try_s=try_s, refused=refused, traced=traced)

    async def _call(
        self,
        method: "Callable[[Link], grpc.aio.UnaryUnaryMultiCallable[Request, Response]]",
        request: Request,
        tries: Tries,
        *,
        try_s: float | None,
        refused: "Callable[[Response], KagziError | None] | None",
        traced: Metadata,
    ) -> Response:
        with tries:
            while True:
                link = self.link
                try:
                    with link:
                        answer = await method(link)(
                            request, timeout=tries.next_timeout_s(try_s), metadata=(*link.metadata, *traced)
                        )
                    self._was_reached = True
                    refusal = None if refused is None else refused(answer)
                    if not isinstance(refusal, Unavailable):
                        return answer
                    problem: KagziError | Outage = reported_by_server(self.server, refusal)
                except grpc.aio.AioRpcError as error:
                    problem = self.problem_of(error)
                except asyncio.CancelledError:
                    self.raise_if_closed()
                    raise
                await self.try_again(tries, link, problem)

    async def try_again(self, tries: Tries, failed: Link, problem: "KagziError | Outage") -> None:
        """Returns when the next try is due, perhaps at another server. Raises the problem if no try is left."""
        pause_s = tries.pause_s(problem)
        await self.move(failed)
        await asyncio.sleep(pause_s)

    def tries(self, timeout_s: float | None = None, *, last_try_s: float | None = None, stream: bool = False) -> Tries:
        """The tries of a call or a stream, for `timeout_s` (the client's time limit, if not given)."""
        return Tries(
            self.notices,
            self.rng,
            timeout_s=self.call_timeout_s if timeout_s is None else timeout_s,
            last_try_s=last_try_s,
            stream=stream,
            # A name that resolved before, or a host that spoke TLS, will probably come back: keep trying.
            hopeless_after=0 if self._was_reached else max(len(self.address.targets), 1),
        )

    def raise_if_closed(self) -> None:
        """Closing a channel looks like a cancellation to the tasks that wait on it: distinguish the two."""
        task = asyncio.current_task()
        if self._link is None and task is not None and not task.cancelling():
            raise PreconditionFailed("This client was closed during the call.") from None

    def problem_of(self, error: grpc.aio.AioRpcError) -> "KagziError | Outage":
        """The meaning of a failed call: an Outage if it may be retried, else the error as users see it.

        Raises CancelledError for a call that was cancelled just after its response arrived, which fails with status OK.
        """
        task = asyncio.current_task()
        if error.code() is grpc.StatusCode.OK and task is not None and task.cancelling():
            raise asyncio.CancelledError from None
        problem = from_rpc_error(error)
        if not isinstance(problem, Unavailable):
            return problem
        if BARE_STATUS in problem.metadata:  # not an error of the Kagzi server itself
            details = error.details() or error.code().name.replace("_", " ").lower()
            new_to_tls = self._credentials is not None and not self._was_reached
            return unreachable(self.server, details, new_to_tls=new_to_tls)
        self._was_reached = True
        return reported_by_server(self.server, problem)

    def broken(self, what: str) -> Outage:
        """For a stream that ended early: `what` describes the server."""
        return Outage(f"{self.server} {what}", "", DOWN_SERVER)

    async def _probe(self) -> Outage | None:
        """Why the server in use cannot serve; None if it can. Makes a single try."""
        link = self._link
        if link is None:
            return None
        try:
            with link:
                info = await link.admin.GetServerInfo(
                    admin_pb2.GetServerInfoRequest(), timeout=_PROBE_S, metadata=link.metadata
                )
        except grpc.aio.AioRpcError as error:
            problem = self.problem_of(error)
            return problem if isinstance(problem, Outage) else None
        return reported_by_server(self.server, database_down(info.store_problem)) if info.store_problem else None

    async def move(self, failed: Link) -> None:
        """`failed` did not work: use another server, or find out which process serves the file now. May be called by
        many tasks at once."""
        async with self._moving:
            if failed is not self._link:
                return
            if self._embedded is not None:
                try:
                    await self._embedded.renew()
                except Unavailable:
                    return
                changed = self._embedded.target != failed.target
            else:
                self._turn = self._next_turn()
                changed = len(self.address.targets) > 1  # the channel itself reconnects to a single server
            if not changed:
                return
            link = self._new_link()
            left = link  # retired if this is cancelled or the connection closed meanwhile
            try:
                await link.settle()
                if failed is self._link:
                    self._link, left = link, failed
            finally:
                self._retired = [each for each in self._retired if not each.closed]
                self._retired.append(left)
                left.retire()

    def _next_turn(self) -> int:
        now = self.clock.now()
        others = range(self._turn + 1, self._turn + len(self.address.targets) + 1)
        return next((turn for turn in others if self._shunned.get(self._target(turn), 0) <= now), self._turn + 1)

    async def leave(self, unready: Link) -> bool:
        """Use another server that is ready, from now on and for the calls that are open at this one. Returns False if
        there is none: then nothing changes."""
        for turn in range(self._turn + 1, self._turn + len(self.address.targets)):
            link = self._new_link(turn)
            if await link.is_ready():
                await link.settle()
                async with self._moving:
                    if unready is self._link:
                        self._shunned[unready.target] = self.clock.now() + _SHUNNED_US
                        self._link, self._turn = link, turn
                        self._retired = [each for each in self._retired if not each.closed]
                        self._retired.append(unready)
                        unready.leave()
                        return True
            await link.close()
        return False

    def _target(self, turn: int) -> str:
        return self.address.targets[turn % len(self.address.targets)]

    def _new_link(self, turn: int | None = None) -> Link:
        target, metadata = self._whom(self._turn if turn is None else turn)
        if self._embedded is not None and self._embedded.open_call is not None:
            return Link(target, CallChannel(self._embedded.open_call), metadata, self.codec)
        channel = grpc_channel(target, self._credentials, self.address)
        if self._websocket:
            channel = PreferredChannel(target, channel, metadata, self._ssl_context)
        return Link(target, channel, metadata, self.codec)

    def _whom(self, turn: int) -> tuple[str, Metadata]:
        if self._embedded is not None:
            return self._embedded.target, tuple(self._embedded.metadata)
        return self._target(turn), self._key_metadata

    def note_worker(self, namespace: str, worker_id: str) -> None:
        """The server in use has accepted a worker of this process. Only matters for embedded servers."""
        if self._embedded is not None:
            self._embedded.note_worker(namespace, worker_id)

    def blocking_channel(self) -> tuple[grpc.Channel, Metadata]:
        """A separate channel to the server in use, for a thread. The caller closes it."""
        link = self.link
        return blocking_channel(link.target, self._credentials, self.address), link.metadata

    async def close(self) -> None:
        self.notices.close()
        self._leaving.close()
        link, self._link = self._link, None
        embedded, self._embedded = self._embedded, None
        for each in (*self._retired, *(() if link is None else (link,))):
            await each.close()
        self._retired.clear()
        if embedded is not None:
            await embedded.close()


def checked_namespace(namespace: str | None) -> str:
    """The namespace given, else $KAGZI_NAMESPACE, else "default"."""
    return namespace or os.environ.get(NAMESPACE_VARIABLE) or DEFAULT_NAMESPACE


def open_connection(
    address: str | None,
    *,
    api_key: str | None,
    tls: bool | Tls | None,
    call_timeout_s: float = CALL_TIMEOUT_S,
    websocket: bool = True,
    codec: Codec | MessageCodec | None = None,
) -> Connection:
    """A connection as the arguments and the environment define it; not yet opened. `websocket` False: for so few calls
    that a second connection is not worth it. Raises InvalidArgument."""
    where = parse_address(address, os.environ)
    return Connection(
        where,
        tls=tls_of(where, tls, os.environ),
        api_key=api_key if api_key is not None else os.environ.get(KEY_VARIABLE),
        clock=SystemClock(),
        rng=SystemRng(),
        call_timeout_s=call_timeout_s,
        websocket=websocket and not where.grpc_only and not where.embedded and websocket_allowed(os.environ),
        codec=message_codec(codec),
    )


def _release(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: "1.10.2rc1" is (1, 10, 2)."""
    release = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in release[0].split(".")) if release else ()
