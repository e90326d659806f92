"""Health checks: for load balancers (grpc.health.v1), for people (HealthCheck) and for probes (/readyz)."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2

from ..core.errors import not_found
from .grpc.deadlines import Deadlines
from .grpc.interceptor import Context, read_message
from .peers import Peers

_RECHECK_S = 5.0


class Health:
    """`ask` returns why the engine is unhealthy, or None. The server also counts as unhealthy while it starts or stops,
    and while one of its `peers` accepts connections that it cannot serve."""

    def __init__(
        self, ask: Callable[[], str | None], service_names: frozenset[str], deadlines: Deadlines, peers: Peers
    ) -> None:
        self.peers = peers
        self._ask = ask
        self.service_names = service_names
        self._deadlines = deadlines

    def knows(self, service: str) -> bool:
        return not service or service in self.service_names

    def problem(self, service: str = "") -> str | None:
        """Raises NotFound for an unknown service."""
        if not self.knows(service):
            raise not_found("service", service)
        return self.own_problem() or self.peers.problem()

    def own_problem(self) -> str | None:
        """The problem of this process, without its peers."""
        return "the server is stopping" if self._deadlines.over else self._ask()


class HealthService:
    """grpc.health.v1.Health"""

    def __init__(self, health: Health, deadlines: Deadlines) -> None:
        self._health = health
        self._deadlines = deadlines

    async def Check(self, request: health_pb2.HealthCheckRequest) -> Message:
        return self._answer(request.service)

    async def List(self, _: Message) -> Message:
        """The status of every service. Releases of the library before 1.85 do not have this message."""
        statuses = {name: self._answer(name) for name in self._health.service_names}
        return cast("Message", cast("Any", health_pb2).HealthListResponse(statuses=statuses))

    async def Watch(self, context: Context) -> None:
        """Sends the current status and every change of it. An unknown service is SERVICE_UNKNOWN."""
        request = read_message(await context.read(), health_pb2.HealthCheckRequest)
        sent: Message | None = None
        while True:
            now = self._answer(request.service) if self._health.knows(request.service) else _unknown()
            if now != sent:
                await context.write(now.SerializeToString())
                sent = now
            if self._deadlines.over:
                return
            await self._change()

    async def _change(self) -> None:
        try:
            await asyncio.wait_for(self._deadlines.ended(), _RECHECK_S)
        except TimeoutError:
            return

    def _answer(self, service: str) -> health_pb2.HealthCheckResponse:
        healthy = self._health.problem(service) is None
        statuses = health_pb2.HealthCheckResponse
        return health_pb2.HealthCheckResponse(status=statuses.SERVING if healthy else statuses.NOT_SERVING)


def _unknown() -> health_pb2.HealthCheckResponse:
    return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)


def health_descriptor() -> ServiceDescriptor:
    return cast("ServiceDescriptor", health_pb2.DESCRIPTOR.services_by_name["Health"])
