"""From what a user or the environment says to a connection."""

import os

from ...core.records import DEFAULT_NAMESPACE
from ...system import SystemClock, SystemRng
from .address import parse_address
from .connection import CALL_TIMEOUT_S, Connection
from .credentials import KEY_VARIABLE, Tls, tls_of

NAMESPACE_VARIABLE = "KAGZI_NAMESPACE"


def checked_namespace(namespace: str | None) -> str:
    """The namespace given, else $KAGZI_NAMESPACE, else "default"."""
    return namespace or os.environ.get(NAMESPACE_VARIABLE) or DEFAULT_NAMESPACE


def open_connection(
    address: str | None, *, api_key: str | None, tls: bool | Tls | None, call_timeout_s: float = CALL_TIMEOUT_S
) -> Connection:
    """A connection as the arguments and the environment say; not yet opened. Raises InvalidArgument."""
    where = parse_address(address, os.environ)
    return Connection(
        where,
        tls=tls_of(where, tls),
        api_key=api_key if api_key is not None else os.environ.get(KEY_VARIABLE),
        clock=SystemClock(),
        rng=SystemRng(),
        call_timeout_s=call_timeout_s,
    )
