"""What the pages and the API need from the server."""

from typing import TYPE_CHECKING, NamedTuple

from ...core.providers import Clock, Ids
from ...engine import Engine
from ..access.access import Access
from ..grpc.answer_budget import Answers
from ..grpc.budgets import Budgets
from ..grpc.deadlines import Deadlines
from ..grpc.incidents import Incidents
from ..health import Health
from ..info import ServerInfo
from .run_counts import CountedRuns

if TYPE_CHECKING:  # needs OpenTelemetry
    from ..tracing.spans import ServerTracing


class PageData(NamedTuple):
    """`budgets`, `answers` and `exports` are shared with gRPC, so that the limits of a namespace hold across both.
    `hosts`: host names, besides loopback, that browsers may use for this port. `base_path`: the path prefix of the
    site, without a trailing slash. `proxies`: networks of proxies that may set it instead. `tracing`: creates spans of
    requests, if it is on."""

    engine: Engine
    health: Health
    info: ServerInfo
    grpc_address: str
    store_url: str
    incidents: Incidents
    clock: Clock
    ids: Ids
    deadlines: Deadlines
    budgets: Budgets
    answers: Answers
    exports: Answers
    run_counts: CountedRuns
    access: Access
    hosts: tuple[str, ...] = ()
    base_path: str = ""
    proxies: tuple[str, ...] = ()
    tracing: "ServerTracing | None" = None
