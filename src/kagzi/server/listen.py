"""Addresses to listen on, as people write them."""

import errno
import ipaddress
import socket

import msgspec

from ..core.errors import InvalidArgument
from .startup import CannotStart

_PORTS = 65_536


class ListenAddress(msgspec.Struct, frozen=True):
    """A host and port, or the path of a Unix socket. Port 0: any free one."""

    host: str = ""
    port: int = 0
    unix_path: str = ""

    def __str__(self) -> str:
        if self.unix_path:
            return f"unix:{self.unix_path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        if self.unix_path:
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def parse_listen(text: str, *, field: str) -> ListenAddress:
    """Raises InvalidArgument."""
    if text.startswith("unix:") and len(text) > len("unix:"):
        return ListenAddress(unix_path=text.removeprefix("unix:"))
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) >= _PORTS:
        raise InvalidArgument(f'{field}={text!r} is not HOST:PORT. Write for example "127.0.0.1:50051".', field=field)
    return ListenAddress(host, int(port))


def bind(address: ListenAddress, *, field: str) -> socket.socket:
    """A bound TCP socket. Nobody else's port is shared: a taken one is an error. Raises CannotStart."""
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        bound = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise cannot_listen(address, error, field=field) from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((address.host, address.port))
    except OSError as error:
        bound.close()
        raise cannot_listen(address, error, field=field) from error
    return bound


def cannot_listen(address: ListenAddress, error: OSError, *, field: str) -> CannotStart:
    if error.errno == errno.EADDRINUSE:
        return CannotStart(
            f"port {address} is in use: another program listens there, perhaps another Kagzi server. "
            f"Stop it, or choose another port with --{field} {address.host}:PORT (port 0 picks a free one)."
        )
    reason = error.strerror or str(error)
    return CannotStart(f"cannot listen on {address}: {reason}. Choose another address with --{field} HOST:PORT.")
