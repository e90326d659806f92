"""Whether this server serves: for load balancers (grpc.health.v1), for people (HealthCheck), for probes (/readyz)."""

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
    """`ask` answers None, or why the engine is not healthy. Unhealthy also while starting and from the moment of
    stopping, and while one of the `peers` cannot serve what it accepts."""

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
        """Raises NotFound for a service that is not here."""
        if not self.knows(service):
            raise not_found("service", service)
        return self.own_problem() or self.peers.problem()

    def own_problem(self) -> str | None:
        """Of this process."""
        return "the server is stopping" if self._deadlines.over else self._ask()


class HealthService:
    """grpc.health.v1.Health"""

    def __init__(self, health: Health, deadlines: Deadlines) -> None:
        self._health = health
        self._deadlines = deadlines

    async def Check(self, request: health_pb2.HealthCheckRequest) -> Message:
        return self._answer(request.service)

    async def List(self, _: Message) -> Message:
        """The status of every service. Releases of the library before 1.85 do not know the message."""
        statuses = {name: self._answer(name) for name in self._health.service_names}
        return cast("Message", cast("Any", health_pb2).HealthListResponse(statuses=statuses))

    async def Watch(self, context: Context) -> None:
        """The status now, and again whenever it has changed. A service that is not here is SERVICE_UNKNOWN."""
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
