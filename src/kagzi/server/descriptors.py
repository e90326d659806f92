"""File descriptors: how many this process may open, and how many of them connections may use.

Each incoming connection uses a descriptor. If connections could use all of them, the store could not open its files
and no other client could connect. So each port has a share, and some descriptors are reserved for everything else.
"""

import logging
import resource
from typing import NamedTuple

logger = logging.getLogger("kagzi.server")

MOST = 1 << 20  # enough even if the process has no limit
FEW = 4_096
_KEPT = 64  # for the store, logs and pipes: the minimum; otherwise an eighth of all
_HTTP_MOST = 1_024
_SHARE = 8


class ConnectionLimits(NamedTuple):
    grpc: int
    http: int
    websocket: int


def raise_soft_limit() -> int:
    """Raises the soft limit, often 1,024, towards the hard limit. Returns the limit that now applies."""
    soft, hard = (_finite(limit) for limit in resource.getrlimit(resource.RLIMIT_NOFILE))
    if soft < hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        except (OSError, ValueError) as error:
            logger.warning("the file descriptor limit stays at %d: %s", soft, error)
        else:
            soft = hard
    limits = connection_limits(soft)
    if soft < FEW:
        logger.warning(
            "this process may use %d file descriptors: %d gRPC, %d WebSocket and %d HTTP connections. If that is not "
            "enough, raise the hard limit: `ulimit -Hn 65536`, LimitNOFILE=65536 of systemd, or "
            "--ulimit nofile=65536 of a container",
            soft,
            limits.grpc,
            limits.websocket,
            limits.http,
        )
    else:
        logger.info(
            "file descriptors: %d; connections: %d by gRPC, %d by WebSocket, %d by HTTP",
            soft,
            limits.grpc,
            limits.websocket,
            limits.http,
        )
    return soft


def connection_limits(descriptors: int | None = None) -> ConnectionLimits:
    """`descriptors` None: the current limit of the process."""
    if descriptors is None:
        descriptors = _finite(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    kept = max(_KEPT, descriptors // _SHARE)
    http = max(min(_HTTP_MOST, descriptors // _SHARE), 1)
    rest = max(descriptors - kept - http, 2)
    # Each client opens one connection of each kind.
    return ConnectionLimits(grpc=rest - rest // 2, http=http, websocket=rest // 2)


def _finite(limit: int) -> int:
    return MOST if limit == resource.RLIM_INFINITY else min(limit, MOST)
