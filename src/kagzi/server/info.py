"""What a server reports about itself."""

import msgspec

from ..core.records import RunKey
from ..core.run.addresses import page_of
from ..v1 import admin_pb2 as pb
from ..wire.fields import writer
from .grpc.features import FEATURES

API_VERSION = "v1"
MIN_SDK_VERSION = "0.1.0"


class ServerInfo(msgspec.Struct, kw_only=True):
    """`http_url` and the next four are set once the HTTP listener is bound; empty without one. `http_url`: the URL of
    the pages for users; `listens_at`: the address that this process serves them on. `trace_url`: see ServerConfig.
    `schema_version`: of the database when this process started; 0 for an in-memory store."""

    version: str
    store: str
    server_id: str
    max_payload_bytes: int
    http_url: str = ""
    listens_at: str = ""
    websocket_url: str = ""
    websocket_version: int = 0
    listener_id: str = ""
    auth: str = "off"
    start_batches: int = 1
    trace_url: str = ""
    schema_version: int = 0
    api_version: str = API_VERSION
    min_sdk_version: str = MIN_SDK_VERSION
    features: tuple[str, ...] = tuple(sorted(FEATURES))

    def url_of(self, run: RunKey) -> str:
        """The URL of a run's page; empty without an HTTP listener."""
        return page_of(run, self.http_url)


write_info = writer(
    pb.GetServerInfoResponse,
    ServerInfo,
    names={"features": "supported_features"},
    unsent=("listens_at", "trace_url", "schema_version"),
    unset=("now", "store_problem"),
)
