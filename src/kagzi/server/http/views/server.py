"""The server itself."""

from typing import Literal, NamedTuple

from ....core.times import Timestamp, moment_text
from ...info import ServerInfo
from ..route import Input
from .common import Moment, View


class HealthQuery(Input, frozen=True, kw_only=True):
    """`service`: a service by its full name; default: all."""

    service: str = ""


class HealthView(View, frozen=True, kw_only=True):
    """`message`: "serving", or why the server does not serve."""

    status: Literal["serving", "not_serving"]
    message: str
    at: Moment


class ServerView(View, frozen=True, kw_only=True):
    """`store_problem`: why the database fails; null: no problem. `http_url`, `websocket_url`: where pages, and calls
    over WebSocket, are served; null: not at all. `listener_id`: of the WebSocket listener. `schema_version`: of the
    database when the server started; null: in-memory. `loop_lag_ms`: how long this request just waited for the event
    loop of the process. `store_lag_ms`: how long the database took for the last poll, which runs every few seconds;
    null: no response yet."""

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
    """How long requests wait: for the event loop, and for the store (None: unknown)."""

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
