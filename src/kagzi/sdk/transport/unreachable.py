"""Explains to users why a server could not be reached.

gRPC reports addresses, file descriptors and its own states, in texts that are not part of its interface. Known causes
are explained in plain words, with a remedy; of any other, the last part of the text is kept, without its decoration.
"""

import re
from typing import NamedTuple
from urllib.parse import unquote

from ...core.errors import DOWN, DOWN_CONNECTION, DOWN_DATABASE, DOWN_SERVER, Unavailable
from ...core.outages import DATABASE

_START = "Start the server, or correct the address."
_CHECK = "Check that it runs and is not overloaded; its log may say more."
_CLOSED = "the connection was closed"
_MUTUAL = "If it requires client certificates, give one that it trusts: tls=Tls(certificate=FILE, key=FILE)."
_PREFIX = re.compile(r"^failed to connect to all addresses; last error: ")
_WHERE = re.compile(r"^(?:[A-Z_]+: )?(?:ipv4|ipv6|unix|unix-abstract|dns)(?::|%3A)\S*: ", re.IGNORECASE)
_NAME = re.compile(
    r"(?:resolving|lookup failed for|resolution failed for) (?:dns:/*)?(?P<name>\S+?)(?::\d+)?(?=[:\s\]]|$)"
)


class Cause(NamedTuple):
    """`permanent`: a retry changes nothing. `silent`: there was no response, perhaps because of our own deadline."""

    text: str
    remedy: str
    permanent: bool = False
    silent: bool = False
    connected: bool = False  # something listens there


class Outage(NamedTuple):
    """Why a call could not be made now. `brief` is part of a sentence."""

    brief: str
    remedy: str
    down: str
    permanent: bool = False
    silent: bool = False

    def error(self, tried_s: float = 0.0) -> Unavailable:
        """The error for callers, with how long it was tried."""
        tried = f" Tried for {tried_s:.1f} s." if tried_s >= 0.1 else ""
        text = f"{self.brief[0].upper()}{self.brief[1:]}.{tried} {self.remedy}"
        return Unavailable(text.strip(), metadata={DOWN: self.down})


_OTHER_NAME = Cause("its TLS certificate is for another name", "Use the name in its certificate.", permanent=True)

# Parts of gRPC's text, in lower case, and their meaning. The first match counts.
_CAUSES: tuple[tuple[str, Cause], ...] = (
    ("connection refused", Cause("connection refused", _START)),
    ("no such file or directory", Cause("its socket does not exist", _START)),
    ("wrong_version_number", Cause("it does not speak TLS", "Write http:// instead of https://.", permanent=True)),
    (
        "certificate_verify_failed",
        Cause(
            "its TLS certificate is not trusted", "Pass its certificate authority: tls=Tls(ca=FILE).", permanent=True
        ),
    ),
    ("peer name", _OTHER_NAME),
    ("hostname verification", _OTHER_NAME),
    ("handshake", Cause("the TLS handshake failed", "Check certificates and keys on both sides.", permanent=True)),
    (
        "http1.x server",
        Cause("the program at that port does not speak gRPC", "Use the server's gRPC port (--listen).", permanent=True),
    ),
    (
        "failed parsing http/2",
        Cause(
            "the program at that port does not speak unencrypted gRPC",
            "If it uses TLS, write https://.",
            permanent=True,
        ),
    ),
    ("deadline exceeded", Cause("it does not respond", _CHECK, silent=True, connected=True)),
    ("timed out", Cause("it does not respond", _CHECK, connected=True)),
    ("ping timeout", Cause("it does not respond", _CHECK, connected=True)),
    ("keepalive", Cause("it does not respond", _CHECK, connected=True)),
    ("socket closed", Cause(_CLOSED, _CHECK, connected=True)),
    ("connection reset", Cause(_CLOSED, _CHECK, connected=True)),
    ("cancelling all calls", Cause(_CLOSED, _CHECK, connected=True)),  # a gRPC server that shuts down
    ("broken pipe", Cause(_CLOSED, _CHECK, connected=True)),
    ("goaway", Cause(_CLOSED, _CHECK, connected=True)),
    ("rst_stream", Cause(_CLOSED, _CHECK, connected=True)),
    ("stream removed", Cause(_CLOSED, _CHECK, connected=True)),
    ("network is unreachable", Cause("the network is unreachable", "Check the network.")),
    ("no route to host", Cause("no route to it", "Check the network.")),
)
_NO_SUCH_NAME = ("not found", "no data", "name or service not known", "nodename nor servname", "not known")


def cause_of(details: str) -> Cause:
    """The meaning of a status without Kagzi's own details."""
    text = details.lower()
    if "resolv" in text or "resolution" in text or "lookup" in text:
        return _name_cause(details)
    for part, cause in _CAUSES:
        if part in text:
            return cause
    return Cause(plain(details) or _CLOSED, _CHECK)


def _name_cause(details: str) -> Cause:
    match = _NAME.search(details)
    name = f"the name {match['name']}" if match else "its name"
    if any(part in details.lower() for part in _NO_SUCH_NAME):
        return Cause(f"{name} does not resolve", "Correct the address.", permanent=True)
    return Cause(f"{name} cannot be resolved", "Check the network and its name servers.")


def plain(details: str) -> str:
    """gRPC's text without its decoration: addresses as people write them, without gRPC's own states."""
    return unquote(_WHERE.sub("", _PREFIX.sub("", details))).rstrip(". ")


def unreachable(server: str, details: str, *, new_to_tls: bool = False) -> Outage:
    """`server`: its name in sentences. `new_to_tls`: it has not responded yet, and TLS is expected."""
    cause = cause_of(details)
    if new_to_tls and cause.text == _CLOSED:  # a server that refuses this side's certificate looks like this
        cause = cause._replace(remedy=f"{cause.remedy} {_MUTUAL}")
    if not cause.connected:
        down = DOWN_CONNECTION
        brief = f"cannot reach {server}: {cause.text}"
    else:
        down = DOWN_SERVER
        brief = f"no response from {server}: {cause.text}"
    return Outage(brief, cause.remedy, down, permanent=cause.permanent, silent=cause.silent)


def reported_by_server(server: str, problem: Unavailable) -> Outage:
    """The state that a server reported of itself or of its database."""
    words = problem.message.strip().removesuffix("Try again.").rstrip(". ")
    if problem.metadata.get(DOWN) == DOWN_DATABASE:
        brief = f"{server} is running, but {words.replace(DATABASE, 'its database', 1)}"
        return Outage(brief, "Check the database; the server's log says more.", DOWN_DATABASE)
    return Outage(f"{server} is unavailable: {words}", "Try again.", DOWN_SERVER)
