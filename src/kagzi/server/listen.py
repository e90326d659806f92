"""Parses and binds the addresses to listen on."""

import errno
import ipaddress
import os
import socket

import msgspec

from ..core.errors import InvalidArgument
from .startup import CannotStart

_PORTS = 65_536


class ListenAddress(msgspec.Struct, frozen=True):
    """A host and port, or the path of a Unix socket. Port 0: any free port.

    `shared`: other processes of this server listen there too. `fd`: a socket that the supervisor has already bound
    there, from which all of them accept; -1 if there is none.
    """

    host: str = ""
    port: int = 0
    unix_path: str = ""
    shared: bool = False
    fd: int = -1

    def __str__(self) -> str:
        if self.unix_path:
            return f"unix:{self.unix_path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the address."""
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


def reachable(url: str) -> str:
    """Replaces a wildcard address, which a browser cannot open, with that of this machine."""
    return url.replace("//0.0.0.0:", "//localhost:", 1).replace("//[::]:", "//localhost:", 1)


def bind(address: ListenAddress, *, field: str) -> socket.socket:
    """A bound TCP socket, or the inherited one. Never shares a port with another program: a port in use is an error.
    Raises CannotStart."""
    if address.fd >= 0:
        return socket.socket(fileno=os.dup(address.fd))
    return _bound(address, socket.SO_REUSEADDR, field=field)


def refuse_taken(*addresses: tuple[ListenAddress | None, str]) -> None:
    """Raises CannotStart for a port that is in use. Each address has its option."""
    for address, field in addresses:
        if address is not None and address.port and address.fd < 0 and not (address.unix_path or address.shared):
            bind(address, field=field).close()


def reserve(address: ListenAddress, *, field: str) -> socket.socket:
    """Reserves a port with a socket that accepts nothing, for processes that will listen with SO_REUSEPORT.
    Raises CannotStart if the port is in use, even by a program that would share it."""
    alone = bind(address, field=field)
    port = alone.getsockname()[1]
    alone.close()
    return _bound(ListenAddress(address.host, port), socket.SO_REUSEPORT, field=field)


def _bound(address: ListenAddress, option: int, *, field: str) -> socket.socket:
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        # The protocol is explicit because asyncio sets TCP_NODELAY only on sockets that are created with IPPROTO_TCP.
        bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise cannot_listen(address, error, field=field) from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, option, 1)
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
