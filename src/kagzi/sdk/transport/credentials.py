"""Credentials of a connection, and the rule that an API key never leaves this machine unencrypted."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import grpc

from ...core.errors import InvalidArgument
from ...core.public import exported
from .address import Address

KEY_VARIABLE = "KAGZI_API_KEY"
AUTHORITY_VARIABLE = "KAGZI_TLS_CA"
CERTIFICATE_VARIABLE = "KAGZI_TLS_CERT"
KEY_FILE_VARIABLE = "KAGZI_TLS_KEY"
TLS_VARIABLES = (AUTHORITY_VARIABLE, CERTIFICATE_VARIABLE, KEY_FILE_VARIABLE)


@exported
@dataclass(frozen=True, slots=True)
class Tls:
    """How to encrypt a connection: files in PEM form."""

    ca: str | PathLike[str] | None = None  #: the trusted authorities, instead of the system's
    certificate: str | PathLike[str] | None = None  #: this side's certificate, for mutual TLS
    key: str | PathLike[str] | None = None  #: the key of that certificate


NO_FILES = Tls()


def tls_of(address: Address, tls: "bool | Tls | None", environment: Mapping[str, str] | None = None) -> Tls | None:
    """How to encrypt: as the address says (https://), unless `tls` says more, with the files of the environment unless
    `tls` names some. None: not at all. Raises InvalidArgument.

    Files in the environment imply TLS, also for an address without a scheme, but not for one with http:// or one that
    leads to this process or a Unix socket.
    """
    files = _tls_from(environment or {})
    if tls is None:
        wanted = address.secure or (files != NO_FILES and not address.plain and not address.embedded)
        return _whole(files) if wanted else None
    if tls is False:
        if address.secure:
            raise InvalidArgument(f"tls=False contradicts the address {address.text!r}. Write http://.", field="tls")
        return None
    if address.embedded:
        raise InvalidArgument(f"tls= is for servers; {address.text!r} is embedded. Leave it out.", field="tls")
    return _whole(files if tls is True else tls)


def _tls_from(environment: Mapping[str, str]) -> Tls:
    return Tls(
        ca=environment.get(AUTHORITY_VARIABLE) or None,
        certificate=environment.get(CERTIFICATE_VARIABLE) or None,
        key=environment.get(KEY_FILE_VARIABLE) or None,
    )


def _whole(tls: Tls) -> Tls:
    if (tls.certificate is None) != (tls.key is None):
        present, missing = ("certificate", "key") if tls.key is None else ("key", "certificate")
        raise InvalidArgument(
            f"tls: a {present} is given without the {missing} that belongs to it. Give both (in the environment: "
            f"{CERTIFICATE_VARIABLE} and {KEY_FILE_VARIABLE}), or neither.",
            field="tls",
        )
    return tls


def call_metadata(address: Address, tls: Tls | None, api_key: str | None) -> tuple[tuple[str, str], ...]:
    """The metadata of every call. Raises InvalidArgument if the key would be sent unencrypted."""
    if not api_key:
        return ()
    if tls is None and address.leaves_machine:
        raise InvalidArgument(
            f"api_key would be sent unencrypted to {address.text!r}. Write https:// before the host, or pass tls=.",
            field="api_key",
        )
    return (("authorization", f"Bearer {api_key}"),)


def channel_credentials(tls: Tls) -> grpc.ChannelCredentials:
    """Raises InvalidArgument for files that cannot be used."""
    if tls.certificate is not None:
        _use(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), tls)  # gRPC would only report an unreachable server
    return grpc.ssl_channel_credentials(
        root_certificates=_authorities(tls),
        private_key=_read(tls.key, "key"),
        certificate_chain=_read(tls.certificate, "certificate"),
    )


def ssl_context(tls: Tls) -> ssl.SSLContext:
    """As `channel_credentials`, for a connection without gRPC."""
    authorities = _named_authorities(tls)
    try:
        context = ssl.create_default_context(cadata=None if authorities is None else authorities.decode("latin-1"))
    except ssl.SSLError as error:
        raise _no_certificate(tls) from error
    if tls.certificate is not None:
        _use(context, tls)
    return context


def _use(context: ssl.SSLContext, tls: Tls) -> None:
    _read(tls.certificate, "certificate")
    _read(tls.key, "key")
    try:
        context.load_cert_chain(str(tls.certificate), tls.key, password=_no_password)
    except (ssl.SSLError, _Encrypted) as error:
        is_mismatch = isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH"
        what = "do not belong together" if is_mismatch else "cannot be used: are both in PEM form, and not encrypted?"
        raise InvalidArgument(
            f"tls: certificate={str(tls.certificate)!r} and key={str(tls.key)!r} {what}", field="tls"
        ) from error


class _Encrypted(Exception):
    pass


def _no_password() -> str:
    """Without it, OpenSSL asks for a password at the terminal."""
    raise _Encrypted


def _named_authorities(tls: Tls) -> bytes | None:
    authorities = _read(tls.ca, "ca")
    if authorities is not None and b"-----BEGIN CERTIFICATE-----" not in authorities:
        raise _no_certificate(tls)  # an empty file must not mean the system's authorities
    return authorities


def _no_certificate(tls: Tls) -> InvalidArgument:
    return InvalidArgument(f"tls: ca={str(tls.ca)!r} has no certificate in PEM form.", field="tls")


def _authorities(tls: Tls) -> bytes | None:
    """The system's authorities, unless others are named; gRPC's own if the system has none."""
    if tls.ca is not None:
        return _named_authorities(tls)
    of_the_system = ssl.get_default_verify_paths().cafile
    if not of_the_system:
        return None
    try:
        return Path(of_the_system).read_bytes()
    except OSError:
        return None


def _read(path: str | PathLike[str] | None, what: str) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidArgument(f"tls: {what}={str(path)!r} cannot be read: {error.strerror}.", field="tls") from error
