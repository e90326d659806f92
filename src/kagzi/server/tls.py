"""TLS of a server: loads certificate, key and client CA from files, checks them before binding a port, and reloads
them when they change. Open connections keep the certificate they were opened with."""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, cast

import grpc

from ..core.providers import Clock
from ..core.times import US_PER_S, Timestamp, to_datetime
from .startup import CannotStart

logger = logging.getLogger("kagzi.server")

CHECK_S = 2.0
"""How often to check the files. A change is loaded once two checks in a row see the same files."""
_SOON_US = 3 * 24 * 3_600 * US_PER_S
_NAME = "kagzi.invalid"  # server name of the connection to itself; it is not checked


class TlsFiles(NamedTuple):
    """Paths of PEM files. With `client_ca`, clients must present a certificate of that authority."""

    cert: str
    key: str
    client_ca: str = ""


class _Loaded(NamedTuple):
    context: ssl.SSLContext
    configuration: grpc.ServerCertificateConfiguration
    expires_at: Timestamp

    @property
    def expiry(self) -> str:
        return f"{to_datetime(self.expires_at):%Y-%m-%d %H:%M:%SZ}"


class ServerTls:
    """The current content of the files: for gRPC (`credentials`) and HTTP (`context`). The constructor raises
    CannotStart with the file and the remedy."""

    def __init__(self, files: TlsFiles, clock: Clock) -> None:
        self._clock = clock
        self._files = files
        self._signature = _signature(files)
        self._loaded = _load(files)
        self._fresh = False  # loaded, but not yet fetched by gRPC
        self._seen = self._signature
        self._problem: str = ""
        self._warned_of: _Loaded | None = None
        # This context only selects the actual context when a connection begins. Contexts are never modified:
        # authorities cannot be removed from one, and one that was given a wrong key is unusable.
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.sni_callback = self._choose
        if files.client_ca:
            self.context.verify_mode = ssl.CERT_REQUIRED
            # Resumed sessions are not verified again, even if their authority is no longer trusted.
            self.context.options |= ssl.OP_NO_TICKET
            self.context.num_tickets = 0
        self._warn_if_soon()

    def credentials(self) -> grpc.ServerCredentials:
        return grpc.dynamic_ssl_server_credentials(
            self._loaded.configuration,
            cast("Callable[[], grpc.ServerCertificateConfiguration]", self._fetch),  # the stubs omit None
            require_client_authentication=bool(self._files.client_ca),
        )

    def _fetch(self) -> grpc.ServerCertificateConfiguration | None:
        """Called by gRPC for each handshake, on a thread of its own. None: no change."""
        if not self._fresh:
            return None
        self._fresh = False
        return self._loaded.configuration

    def _choose(self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, context: ssl.SSLContext) -> None:
        connection.context = self._loaded.context

    def watching(self) -> Callable[[], object]:
        """Starts watching the files. Returns a function that stops it."""
        return asyncio.get_running_loop().create_task(self.watch(), name="kagzi tls").cancel

    async def watch(self) -> None:
        """Polls the files until cancelled. Logs an unusable file once and keeps what was loaded before."""
        while True:
            await asyncio.sleep(CHECK_S)
            await asyncio.to_thread(self.poll)

    def poll(self) -> None:
        self._warn_if_soon()
        signature = _signature(self._files)
        settled, self._seen = signature == self._seen, signature
        # Unusable files are tried again: a certificate may become valid, or readable, without a change of the file.
        if not settled or (signature == self._signature and not self._problem):
            return
        try:
            loaded = _load(self._files)
        except CannotStart as error:
            problem = str(error.message)
            if problem != self._problem:
                logger.error("the new TLS files are not used, and the old ones stay: %s", problem)
            self._signature, self._problem = signature, problem
            return
        if _signature(self._files) != signature:
            return  # changed while reading: the parts may be of two versions
        self._signature, self._problem = signature, ""
        self._loaded = loaded
        self._fresh = True
        logger.info("loaded the TLS certificate %s, valid until %s", self._files.cert, loaded.expiry)
        self._warn_if_soon()

    def _warn_if_soon(self) -> None:
        loaded = self._loaded
        if loaded is not self._warned_of and loaded.expires_at - self._clock.now() < _SOON_US:
            self._warned_of = loaded
            logger.warning(
                "the TLS certificate %s expires at %s. Replace the file: the server loads it without a restart",
                self._files.cert,
                loaded.expiry,
            )


def _signature(files: TlsFiles) -> tuple[tuple[int, ...], ...]:
    return tuple(_stat(path) for path in files if path)


def _stat(path: str) -> tuple[int, ...]:
    try:
        stat = Path(path).stat()
    except OSError as error:
        return (error.errno or -1,)
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _load(files: TlsFiles) -> _Loaded:
    """Raises CannotStart."""
    cert, key = _read(files.cert, "tls_cert"), _read(files.key, "tls_key")
    authorities = _read(files.client_ca, "tls_client_ca") if files.client_ca else None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _use(context, files)
    return _Loaded(
        context,
        grpc.ssl_server_certificate_configuration([(key, cert)], authorities),
        _expiry(files),
    )


def _use(context: ssl.SSLContext, files: TlsFiles) -> None:
    """Raises CannotStart."""
    try:
        context.load_cert_chain(files.cert, files.key, password=_no_password)
    except _Encrypted:
        raise _refusal(
            "tls_key",
            files.key,
            f"is encrypted, and a server cannot ask for its password. "
            f"Decrypt it: openssl pkey -in {files.key} -out plain.pem",
        ) from None
    except ssl.SSLError as error:
        raise _unusable(files, error) from error
    if not files.client_ca:
        return
    try:
        context.load_verify_locations(files.client_ca)
    except ssl.SSLError as error:
        raise _refusal("tls_client_ca", files.client_ca, "has no certificate in PEM form that can be read.") from error
    context.verify_mode = ssl.CERT_REQUIRED


class _Encrypted(Exception):
    pass


def _no_password() -> str:
    """Keeps OpenSSL from asking for a password at the terminal."""
    raise _Encrypted


def _unusable(files: TlsFiles, error: ssl.SSLError) -> CannotStart:
    if error.reason == "KEY_VALUES_MISMATCH":
        return _refusal(
            "tls_key",
            files.key,
            f"does not fit the certificate in tls_cert {files.cert}. Give the key that the certificate was made for, "
            "and put the server's own certificate first in that file.",
        )
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(files.cert)
    except ssl.SSLError:
        return _refusal(
            "tls_cert", files.cert, "has no certificate in PEM form that can be read (-----BEGIN CERTIFICATE-----)."
        )
    why = (error.reason or "it cannot be read").replace("_", " ").lower()
    return _refusal(
        "tls_key",
        files.key,
        f"has no private key in PEM form that can be used (-----BEGIN PRIVATE KEY-----): {why}.",
    )


def _read(path: str, setting: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        where = f" (looked for as {Path(path).absolute()})" if not Path(path).is_absolute() else ""
        raise _refusal(setting, path, f"does not exist{where}. Correct the path.") from error
    except PermissionError as error:
        raise _refusal(setting, path, "may not be read by this process. Give its user the right to.") from error
    except OSError as error:
        raise _refusal(setting, path, f"cannot be read: {error.strerror}.") from error


def _expiry(files: TlsFiles) -> Timestamp:
    """When the certificate expires. Raises CannotStart if it is not valid, as a client would see it.

    The standard library can only read the certificate of a peer. So the server connects to itself in memory, as a
    client that trusts this certificate regardless of who signed it.
    """
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(files.cert, files.key, password=_no_password)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(files.cert)
    try:
        until = _handshake(client, server)["notAfter"]
    except ssl.SSLCertVerificationError as error:
        raise _refusal(
            "tls_cert",
            files.cert,
            f"would be refused by every client: {error.verify_message}. Have it issued anew as a server's certificate, "
            "and check this machine's clock.",
        ) from error
    except ssl.SSLError as error:
        raise _refusal("tls_cert", files.cert, f"cannot be used: {error.reason or error}.") from error
    return ssl.cert_time_to_seconds(str(until)) * US_PER_S


def _handshake(client: ssl.SSLContext, server: ssl.SSLContext) -> dict[str, object]:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    here = client.wrap_bio(to_client, to_server, server_hostname=_NAME)
    there = server.wrap_bio(to_server, to_client, server_side=True)
    for side in _in_turn((here, there)):
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
            if side is here:
                break
    return dict(here.getpeercert() or {})


def _in_turn(sides: Sequence[ssl.SSLObject]) -> Sequence[ssl.SSLObject]:
    return [*sides] * 4  # more than any handshake takes


def _refusal(setting: str, path: str, what: str) -> CannotStart:
    return CannotStart(f"{setting} {path} {what}")
