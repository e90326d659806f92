"""Assembles every gRPC method of a server: the services on the engine, behind one interceptor."""

from typing import TYPE_CHECKING

import grpc

from ..core.providers import Clock
from ..core.version import __version__
from ..engine import Engine
from .config import ServerConfig
from .grpc.deadlines import Deadlines
from .grpc.incidents import Incidents
from .grpc.interceptor import Interceptor
from .grpc.registration import LONG_POLLS, SERVICES, check_served, handlers, path_of, streams_of
from .grpc.services.admin import AdminService
from .grpc.services.keys import KeyService
from .grpc.services.namespaces import NamespaceService
from .grpc.services.schedules import WorkflowScheduleService
from .grpc.services.workers import WorkerService
from .grpc.services.workflows import WorkflowService
from .health import Health, HealthService, health_descriptor
from .info import ServerInfo
from .metrics.calls import measured_handlers

if TYPE_CHECKING:  # needs OpenTelemetry
    from .tracing.spans import ServerTracing


def grpc_handlers(
    engine: Engine,
    interceptor: Interceptor,
    *,
    clock: Clock,
    config: ServerConfig,
    deadlines: Deadlines,
    incidents: Incidents,
    health: Health,
    info: ServerInfo,
    tracing: "ServerTracing | None" = None,
) -> list[grpc.GenericRpcHandler]:
    """Raises CannotStart if a method has no declared scope."""
    services: dict[str, object] = {
        "kagzi.v1.WorkflowService": WorkflowService(
            engine,
            url_of=info.url_of,
            deadlines=deadlines,
            incidents=incidents,
            answers=interceptor.answers,
            exports=interceptor.exports,
        ),
        "kagzi.v1.WorkerService": WorkerService(
            engine,
            clock=clock,
            settings=config.settings,
            deadlines=deadlines,
            answers=interceptor.answers,
            connections=interceptor.connections,
            version=__version__,
        ),
        "kagzi.v1.WorkflowScheduleService": WorkflowScheduleService(engine.schedules, engine.served),
        "kagzi.v1.AdminService": AdminService(engine, clock=clock, health=health, info=info),
        "kagzi.v1.NamespaceService": NamespaceService(engine),
        "kagzi.v1.KeyService": KeyService(engine),
        "grpc.health.v1.Health": HealthService(health, deadlines),
    }
    descriptors = (*SERVICES, health_descriptor())
    if config.reflection:
        from .reflection import NAME, ReflectionService, reflection_descriptor  # noqa: PLC0415  few need it

        services[NAME] = ReflectionService(each.full_name for each in descriptors)
        descriptors = (*descriptors, reflection_descriptor())
    check_served(services, descriptors)
    streams = streams_of(descriptors)
    measured = measured_handlers(handlers(interceptor, services, descriptors), engine.measurements, streams)
    if tracing is None:
        return measured
    from .tracing.calls import traced_handlers  # noqa: PLC0415  few need it

    own = frozenset(path_of(method) for service in SERVICES for method in service.methods)
    return traced_handlers(measured, tracing, own - streams - LONG_POLLS)
