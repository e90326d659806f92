"""Credentials of a connection, and the rule that a key never leaves this machine unencrypted."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import grpc

from ...core.errors import InvalidArgument
from ...core.public import exported
from .address import Address

KEY_VARIABLE = "KAGZI_API_KEY"


@exported
@dataclass(frozen=True, slots=True)
class Tls:
    """How to encrypt a connection: files in PEM form."""

    ca: str | PathLike[str] | None = None  #: whom to trust instead of the system's authorities
    certificate: str | PathLike[str] | None = None  #: this side's certificate, for mutual TLS
    key: str | PathLike[str] | None = None  #: the key of that certificate


def tls_of(address: Address, tls: "bool | Tls | None") -> Tls | None:
    """How to encrypt: as the address says (https://), unless `tls` says more. None: not at all."""
    if tls is None:
        return Tls() if address.secure else None
    if tls is False:
        if address.secure:
            raise InvalidArgument(f"tls=False contradicts the address {address.text!r}. Write http://.", field="tls")
        return None
    if address.embedded:
        raise InvalidArgument(f"tls= is for servers; {address.text!r} is embedded. Leave it out.", field="tls")
    return Tls() if tls is True else tls


def call_metadata(address: Address, tls: Tls | None, api_key: str | None) -> tuple[tuple[str, str], ...]:
    """What every call carries. Raises InvalidArgument if the key could be read on its way."""
    if not api_key:
        return ()
    if tls is None and address.leaves_machine:
        raise InvalidArgument(
            f"api_key would be sent unencrypted to {address.text!r}. Write https:// before the host, or pass tls=.",
            field="api_key",
        )
    return (("authorization", f"Bearer {api_key}"),)


def channel_credentials(tls: Tls) -> grpc.ChannelCredentials:
    if (tls.certificate is None) != (tls.key is None):
        raise InvalidArgument("tls: certificate and key must be given together.", field="tls")
    return grpc.ssl_channel_credentials(
        root_certificates=_read(tls.ca, "ca"),
        private_key=_read(tls.key, "key"),
        certificate_chain=_read(tls.certificate, "certificate"),
    )


def _read(path: str | PathLike[str] | None, what: str) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidArgument(f"tls: {what}={str(path)!r} cannot be read: {error.strerror}.", field="tls") from error
