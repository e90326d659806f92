"""A channel to one server, with the methods that are called on it."""

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING, Self, cast

import grpc
import grpc.aio

from ...v1 import admin_pb2, worker_pb2
from ...v1.admin_pb2_grpc import AdminServiceStub
from ...v1.worker_pb2_grpc import WorkerServiceStub
from ...v1.workflow_pb2_grpc import WorkflowServiceStub
from ...wire.calls.call import Metadata
from .channel import Channel
from .payload_codec import DecodingChannel, MessageCodec
from .websocket import PreferredChannel

if TYPE_CHECKING:
    from ...v1.admin_pb2_grpc import AdminServiceAsyncStub
    from ...v1.namespace_pb2_grpc import NamespaceServiceAsyncStub
    from ...v1.worker_pb2_grpc import WorkerServiceAsyncStub
    from ...v1.workflow_pb2_grpc import WorkflowServiceAsyncStub
    from ...v1.workflow_schedule_pb2_grpc import WorkflowScheduleServiceAsyncStub


_READY_S = 2.0
_LEFT = "Socket closed"  # as a server that goes away looks


class Link:
    """A channel to one server. Closed once it is retired and has no more calls: closing it earlier would cancel
    them."""

    def __init__(self, target: str, channel: Channel, metadata: Metadata, codec: MessageCodec | None = None) -> None:
        self.target = target
        self.channel = channel
        self.metadata = metadata
        called: Channel = channel if codec is None else DecodingChannel(channel, codec)
        self._stubs = stubs = cast("grpc.aio.Channel", called)  # stubs use only these methods of it
        self.workflows: WorkflowServiceAsyncStub = WorkflowServiceStub(stubs)
        self.workers: WorkerServiceAsyncStub = WorkerServiceStub(stubs)
        self.admin: AdminServiceAsyncStub = AdminServiceStub(stubs)
        # The outbox encodes requests, once.
        self.session: grpc.aio.StreamStreamMultiCallable[bytes, worker_pb2.SessionResponse] = called.stream_stream(
            "/kagzi.v1.WorkerService/Session",
            request_serializer=None,
            response_deserializer=worker_pb2.SessionResponse.FromString,
        )
        self._calls = 0
        self._retired = self._is_left = False
        self._closing: asyncio.Task[None] | None = None

    @cached_property
    def schedules(self) -> "WorkflowScheduleServiceAsyncStub":
        from ...v1.workflow_schedule_pb2_grpc import WorkflowScheduleServiceStub  # noqa: PLC0415  few programs need it

        return WorkflowScheduleServiceStub(self._stubs)

    @cached_property
    def namespaces(self) -> "NamespaceServiceAsyncStub":
        from ...v1.namespace_pb2_grpc import NamespaceServiceStub  # noqa: PLC0415  as above

        return NamespaceServiceStub(self._stubs)

    def __enter__(self) -> Self:
        self._calls += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        self._calls -= 1
        self._close_if_idle()
        task = asyncio.current_task()
        if self._is_left and kind is asyncio.CancelledError and task is not None and not task.cancelling():
            raise grpc.aio.AioRpcError(
                grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), details=_LEFT
            ) from None

    async def settle(self, info: admin_pb2.GetServerInfoResponse | None = None) -> None:
        """Returns when it is known which transport calls use. `info`: the server's latest response. Never raises."""
        if isinstance(self.channel, PreferredChannel):
            await self.channel.settle(info)

    async def is_ready(self) -> bool | None:
        """Whether its server can use its database; None if it does not respond."""
        try:
            with self:
                info = await self.admin.GetServerInfo(
                    admin_pb2.GetServerInfoRequest(), timeout=_READY_S, metadata=self.metadata
                )
        except grpc.aio.AioRpcError:
            return None
        return not info.store_problem

    @property
    def closed(self) -> bool:
        return self._closing is not None and self._closing.done()

    def retire(self) -> None:
        self._retired = True
        self._close_if_idle()

    def leave(self) -> None:
        """Another server is used instead: open calls fail with UNAVAILABLE, and are repeated there."""
        self._is_left = self._retired = True
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self.channel.close())

    def _close_if_idle(self) -> None:
        if self._retired and not self._calls and self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self.channel.close())

    async def close(self) -> None:
        self._retired = True
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self.channel.close())
        await self._closing
