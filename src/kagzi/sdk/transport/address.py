"""The address of a server, as users write it.

host:50051   http://host:50051   https://host   host-a:50051,host-b:50051   unix:/run/kagzi.sock     a server
grpc://host:50051                                                       the same, but never by WebSocket
sqlite:///relative.db   sqlite:////absolute.db   :memory:                                         embedded
"""

import ipaddress
import re
from collections.abc import Mapping

import msgspec

from ...core.errors import InvalidArgument

DEFAULT_ADDRESS = "localhost:50051"
DEFAULT_PORT = 50051
DEFAULT_TLS_PORT = 443
ADDRESS_VARIABLE = "KAGZI_ADDRESS"
MEMORY = ":memory:"

_FORMS = '"host:50051", "https://host", "sqlite:///file.db" or ":memory:"'
_HOST = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.%\w]+)\]|(?P<name>[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?))(?::(?P<port>\d+))?"
)
_DATABASES = ("postgres", "postgresql", "mysql")
_MEMORY_FORMS = (MEMORY, "sqlite://", f"sqlite://{MEMORY}", f"sqlite:///{MEMORY}")


class Address(msgspec.Struct, frozen=True):
    """Either `targets` (of servers, tried in turn) or `embedded` (the argument of `kagzi.embedded`) is set. `plain`:
    the address excludes TLS."""

    text: str
    targets: tuple[str, ...] = ()
    secure: bool = False
    embedded: str = ""
    grpc_only: bool = False
    plain: bool = False

    @property
    def leaves_machine(self) -> bool:
        """Whether messages can be read outside this machine."""
        return not all(map(is_local, self.targets))


def parse_address(text: str | None, environment: Mapping[str, str]) -> Address:
    """The address in `text`, else $KAGZI_ADDRESS, else localhost:50051. Raises InvalidArgument, which names the
    remedy."""
    address = text if text is not None else environment.get(ADDRESS_VARIABLE) or DEFAULT_ADDRESS
    if not isinstance(address, str):  # pyright: ignore[reportUnnecessaryIsInstance]  callers are users
        raise _wrong(address, f"is not a string. Write {_FORMS}.")
    stripped = address.strip()
    if not stripped:
        raise _wrong(address, f"is empty. Write {_FORMS}.")
    if stripped in _MEMORY_FORMS:
        return Address(text=stripped, embedded=MEMORY)
    if stripped.startswith("sqlite:"):
        return _embedded(stripped)
    return _remote(stripped)


def _embedded(text: str) -> Address:
    path = text.removeprefix("sqlite:///")
    if path == text:
        raise _wrong(text, 'lacks a slash. Write "sqlite:///relative.db" or "sqlite:////absolute/file.db".')
    if "?" in path or not path.strip("/"):
        raise _wrong(text, 'does not name a file. Write "sqlite:///relative.db" or "sqlite:////absolute/file.db".')
    return Address(text=text, embedded=text)


def _remote(text: str) -> Address:
    targets: list[str] = []
    schemes: set[str] = set()
    for part in text.split(","):
        scheme, target = _server(text, part.strip())
        schemes.add(scheme)
        targets.append(target)
    if "https" in schemes and len(schemes) > 1:
        raise _wrong(text, "mixes hosts with and without TLS. Write https:// before each, or before none.")
    if "grpc" in schemes and len(schemes) > 1:
        raise _wrong(text, "has grpc:// before some hosts only. Write it before each, or before none.")
    return Address(
        text=text,
        targets=tuple(dict.fromkeys(targets)),
        secure="https" in schemes,
        grpc_only="grpc" in schemes,
        plain="http" in schemes,
    )


def _server(whole: str, part: str) -> tuple[str, str]:
    """Scheme ("" if none is written) and gRPC target of one server."""
    if part.startswith("unix:"):
        return "http", part
    scheme, separator, rest = part.rpartition("://")
    if separator and scheme in _DATABASES:
        raise _wrong(
            whole,
            f"is a database ({scheme}). Run `kagzi server --db URL` with it and connect to that server.",
            hide=True,
        )
    if separator and scheme not in ("http", "https", "grpc"):
        raise _wrong(whole, f"has the unknown scheme {scheme!r}. Write {_FORMS}.")
    if "@" in rest:
        raise _wrong(whole, "contains a credential. Pass it as api_key= or in KAGZI_API_KEY.", hide=True)
    match = _HOST.fullmatch(rest.removesuffix("/"))
    if match is None:
        raise _wrong(whole, f"is not an address ({part!r} is not host:port). Write {_FORMS}.")
    secure = scheme == "https"
    port = int(match["port"] or (DEFAULT_TLS_PORT if secure else DEFAULT_PORT))
    if not 0 < port < 65536:
        raise _wrong(whole, f"has port {port}. A port is 1..65535.")
    host = f"[{match['six']}]" if match["six"] else match["name"]
    return scheme, f"{host}:{port}"


def is_local(target: str) -> bool:
    """Whether a gRPC target is on this machine."""
    if target.startswith("unix:"):
        return True
    host = target.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _wrong(text: object, why: str, *, hide: bool = False) -> InvalidArgument:
    """`hide`: the text may contain a password, so it is not repeated."""
    named = "address" if hide else f"address={text!r}"
    return InvalidArgument(f"{named} {why}", field="address")
