"""File descriptors: how many this process may have, and how many of them connections may take.

Connections come from outside and each is a descriptor. If they could have all of them, the store could not open its
files and nobody else could connect: so each port has its share, and some are kept for everything else.
"""

import logging
import resource
from typing import NamedTuple

logger = logging.getLogger("kagzi.server")

MOST = 1 << 20  # an unlimited process needs no more
FEW = 4_096
_KEPT = 64  # for the store, logs, pipes: at least, and an eighth of all
_HTTP_MOST = 1_024
_SHARE = 8


class ConnectionLimits(NamedTuple):
    grpc: int
    http: int
    websocket: int


def raise_soft_limit() -> int:
    """The limit a process begins with is often 1,024, however much it may have. Returns what it has now."""
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
    """`descriptors`: None: what the process may have now."""
    if descriptors is None:
        descriptors = _finite(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    kept = max(_KEPT, descriptors // _SHARE)
    http = max(min(_HTTP_MOST, descriptors // _SHARE), 1)
    rest = max(descriptors - kept - http, 2)
    # A client has a connection of each kind.
    return ConnectionLimits(grpc=rest - rest // 2, http=http, websocket=rest // 2)


def _finite(limit: int) -> int:
    return MOST if limit == resource.RLIM_INFINITY else min(limit, MOST)
