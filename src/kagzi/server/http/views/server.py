"""The server itself."""

from typing import Literal, NamedTuple

from ....core.times import Timestamp, moment_text
from ...info import ServerInfo
from ..route import Input
from .common import Moment, View


class HealthQuery(Input, frozen=True, kw_only=True):
    """`service`: one of them, by its full name; default: all."""

    service: str = ""


class HealthView(View, frozen=True, kw_only=True):
    """`message`: "serving", or why it does not serve."""

    status: Literal["serving", "not_serving"]
    message: str
    at: Moment


class ServerView(View, frozen=True, kw_only=True):
    """`store_problem`: why the database does not do what it is asked; null: all is well. `http_url`, `websocket_url`:
    where pages, and calls as WebSocket messages, are served; null: nowhere. `listener_id`: of who listens there.
    `schema_version`: of the database when the server came; null: it is in memory. `loop_lag_ms`: how long this process
    needed just now before it went on with this request. `store_lag_ms`: how long the database took to answer the last
    poll, which comes every few seconds; null: it has not answered yet."""

    version: str
    api_version: str
    min_sdk_version: str
    supported_features: tuple[str, ...]
    store: str
    store_problem: str | None
    schema_version: int | None
    loop_lag_ms: float
    store_lag_ms: float | None
    server_id: str
    http_url: str | None
    websocket_url: str | None
    websocket_version: int
    listener_id: str | None
    max_payload_bytes: int
    now: Moment


class Lags(NamedTuple):
    """How long what is asked for has to wait: in this process, and for the store (None: not known)."""

    loop_lag_ms: float
    store_lag_ms: float | None


def server_view(info: ServerInfo, *, store_problem: str, now: Timestamp, lags: Lags) -> ServerView:
    return ServerView(
        version=info.version,
        api_version=info.api_version,
        min_sdk_version=info.min_sdk_version,
        supported_features=info.features,
        store=info.store,
        store_problem=store_problem or None,
        schema_version=info.schema_version or None,
        loop_lag_ms=lags.loop_lag_ms,
        store_lag_ms=lags.store_lag_ms,
        server_id=info.server_id,
        http_url=info.http_url or None,
        websocket_url=info.websocket_url or None,
        websocket_version=info.websocket_version,
        listener_id=info.listener_id or None,
        max_payload_bytes=info.max_payload_bytes,
        now=moment_text(now),
    )
