"""What the pages and the API show, and whom they ask."""

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
    """`budgets`, `answers` and `exports` are those of gRPC: what a namespace may have of a server is one thing, however
    it is asked for. `hosts`: names by which browsers may reach this port beyond loopback. `base_path`: below which the
    site is, without a slash at its end. `proxies`: networks of those that may say it instead. `tracing`: makes spans of
    requests, if the server is to."""

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
