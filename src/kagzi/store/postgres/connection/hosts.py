"""The hosts of a PostgreSQL URL, and in which order they are tried: those that failed last come last (ADR 0092)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

_ONLY_S = 10.0
_EACH_S = 3.0  # an address that does not respond must not use up the time of the others


class Host(NamedTuple):
    """`name`: for messages. `url`: names this host only. `timeout_s`: how long a connection to it may take."""

    name: str
    url: str
    timeout_s: float


class Hosts:
    """Begins with the order of the URL. A host that fails becomes the last one, so the first is the last good one."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        urls = _urls(parts, options)
        if len(urls) > 1:
            self._order = [Host(name, each, _EACH_S) for name, each in urls]
        else:
            self._order = [Host(options.get("host") or parts.hostname or "localhost", url, _ONLY_S)]
        self.name = ",".join(host.name for host in self._order)
        self.on_failure: Callable[[Host], None] | None = None
        """Called when connections to a host should not be used any longer, because another one is preferred now."""

    def __len__(self) -> int:
        return len(self._order)

    @property
    def order(self) -> Sequence[Host]:
        return tuple(self._order)

    def note_failure(self, host: Host, error: BaseException) -> None:
        """A connection to it could not be opened, or was lost. Errors that say that the server works change nothing."""
        if len(self._order) == 1 or not _is_of_host(error):
            return
        self._order.remove(host)
        self._order.append(host)
        if self.on_failure is not None:
            self.on_failure(host)


def _urls(parts: SplitResult, options: dict[str, str]) -> list[tuple[str, str]]:
    """Each host with its port, if it has one, and the URL with this host only."""
    # Kagzi writes: of several hosts, a standby is of no use, even if the URL does not say so.
    others = {"target_session_attrs": "read-write", **options}
    ports = others.pop("port", "").split(",")
    names = others.pop("host", "").split(",")
    user, at, hosts = parts.netloc.rpartition("@")
    if hosts:
        query = urlencode(others, safe="/")
        return [
            (name, urlunsplit(parts._replace(netloc=f"{user}{at}{name}", query=query))) for name in hosts.split(",")
        ]
    if len(ports) == 1:
        ports *= len(names)
    each: list[tuple[str, str]] = []
    for name, port in zip(names, ports, strict=False):
        only = {**others, "host": name}
        if port:
            only["port"] = port
        url = urlunsplit(parts._replace(query=urlencode(only, safe="/")))
        each.append((f"{name}:{port}" if port else name, url))
    return each


_RESPONDS = ("08", "57P0", "25006")
"""Errors with which a server says that it is not the one to use: shut down, or read-only."""


def _is_of_host(error: BaseException) -> bool:
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "").startswith(_RESPONDS)
    return True
