"""What a server says about itself."""

from urllib.parse import urlencode

import msgspec

from ..core.records import DEFAULT_NAMESPACE, RunKey
from ..v1 import admin_pb2 as pb
from ..wire.fields import writer
from .grpc.features import FEATURES

API_VERSION = "v1"
MIN_SDK_VERSION = "0.1.0"


class ServerInfo(msgspec.Struct, kw_only=True):
    """`http_url` is known once the HTTP listener is bound; empty if there is none."""

    version: str
    store: str
    server_id: str
    max_payload_bytes: int
    http_url: str = ""
    api_version: str = API_VERSION
    min_sdk_version: str = MIN_SDK_VERSION
    features: tuple[str, ...] = tuple(sorted(FEATURES))

    def url_of(self, run: RunKey) -> str:
        """The page of a run; empty without an HTTP listener."""
        if not self.http_url:
            return ""
        suffix = "" if run.namespace == DEFAULT_NAMESPACE else f"?{urlencode({'namespace': run.namespace})}"
        return f"{self.http_url}/runs/{run.run_id}{suffix}"


write_info = writer(
    pb.GetServerInfoResponse,
    ServerInfo,
    names={"features": "supported_features"},
    unset=("now", "store_problem"),
)
