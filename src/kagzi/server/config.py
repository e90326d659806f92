"""The configuration of a server: flag > environment > file > default. Every setting supports all four."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ..core import limits
from ..core.duration import Duration, parse_duration
from ..core.errors import InvalidArgument
from ..core.limits import Settings
from ..core.providers import Clock
from ..core.text.commands import quoted
from ..core.times import US_PER_MS, us_from_timedelta
from ..core.traces.endpoint import endpoint_of
from .database import Database, PostgresDatabase, database_with_options, mask, parse_database, parse_outbox
from .http.public_urls import public_url_of, trace_url_of
from .listen import ListenAddress, parse_listen
from .settings_file import read_settings_file
from .startup import CannotStart

if TYPE_CHECKING:
    from .tls import ServerTls

ENVIRONMENT_PREFIX = "KAGZI_"
OFF = "off"
AUTH_OFF = "off"
AUTH_KEYS = "keys"
_REVOKED_WITHIN_MS = 10_000
_CHECKS_BEHIND = 3  # a revoked key is valid for at most this many checks, see `access`
_TOTAL_BYTES_MAX = 1 << 40
_CLAIM_CAP_MAX = 1_000_000
_PROCESSES_MAX = 256
_BASE_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)+")
_OWN_PATHS = (
    *("api", "healthz", "inbox", "login", "metrics", "openapi.json", "operations", "plain", "r", "readyz", "runs"),
    *("schedules", "settings", "static", "v1", "workers", "workflows"),
)

_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`db_direct`: the same database without the pooler. `http` None: no HTTP listener. `websocket`: whether calls are
    also served over WebSocket on the HTTP port; None: yes if there is an HTTP port. `listener_id`: the id that those
    clients must send; empty: a new one. `tls_cert` and the next two: TLS files for gRPC and HTTP. `secret`: calls must
    prove that they know it. `processes`: of `kagzi server`; a Server is one of them. `auth`: AUTH_OFF or AUTH_KEYS.
    `http_hosts`: host names, besides loopback, that browsers may use for the HTTP port; empty: any. `http_base_path`:
    the path prefix of the site, without a trailing slash. `http_proxies`: networks of proxies that are trusted to set
    the prefix. `public_url`: the URL of the HTTP port for users; empty: the address that it listens on. `trace_url`:
    the URL of a trace in their tracing tool, containing {trace_id}. `otlp`: where to send the spans of calls; empty: no
    tracing. `outbox`: a user database whose table of starts is drained; empty: none. `outbox_namespaces`: the
    namespaces that it may start runs in; empty: all."""

    db: str = "sqlite:///kagzi.db"
    db_direct: str = ""
    listen: ListenAddress = ListenAddress("127.0.0.1", 50051)
    http: ListenAddress | None = ListenAddress("127.0.0.1", 8420)
    websocket: bool | None = None
    listener_id: str = ""
    settings: Settings = Settings()
    grace_ms: int = 10_000
    processes: int = 1
    tls_cert: str = ""
    tls_key: str = ""
    tls_client_ca: str = ""
    reflection: bool = False
    insecure: bool = False
    auth: str = AUTH_OFF
    http_hosts: tuple[str, ...] = ()
    http_base_path: str = ""
    http_proxies: tuple[str, ...] = ("127.0.0.0/8", "::1/128")
    otlp: str = ""
    public_url: str = ""
    trace_url: str = ""
    outbox: str = ""
    outbox_namespaces: tuple[str, ...] = ()
    no_migrate: bool = False
    secret: str = ""

    @property
    def database(self) -> Database:
        return parse_database(self.db)

    @property
    def asks_for_keys(self) -> bool:
        return self.auth == AUTH_KEYS

    @property
    def open_to_others(self) -> tuple[str, ...]:
        """Addresses that other machines can reach without authentication."""
        return () if self.asks_for_keys or self.tls_client_ca else self._reachable

    @property
    def keys_in_clear(self) -> tuple[str, ...]:
        """Addresses that other machines can reach and where keys may arrive unencrypted."""
        return self._reachable if self.asks_for_keys and not self.tls_cert else ()

    @property
    def _reachable(self) -> tuple[str, ...]:
        addresses = (("listen", self.listen), ("http", self.http))
        return tuple(f"--{flag} {one}" for flag, one in addresses if one is not None and not one.is_local)

    @property
    def first_key_command(self) -> str:
        return f"kagzi keys create ops --scope admin --everywhere --db {quoted(mask(self.db))}"

    def refuse_unprotected(self) -> None:
        """Raises CannotStart if other machines can reach an address without authentication."""
        if self.insecure or not self.open_to_others:
            return
        raise CannotStart(
            f"{self.open_to_others[0]} can be reached from other machines, and everyone may call this server. "
            f"Create a key (`{self.first_key_command}`) and start with --auth keys, and with TLS (--tls-cert, "
            "--tls-key, or in a proxy): keys must not be sent unencrypted. Or require client certificates with "
            "--tls-client-ca, or listen on 127.0.0.1. In a private network, you can allow this with --insecure."
        )

    def refuse_open_outbox(self) -> None:
        """Raises CannotStart for an outbox that would bypass the API keys."""
        if self.outbox and self.asks_for_keys and not self.outbox_namespaces:
            raise CannotStart(
                "--auth keys requires a key for every call, but everyone who can write into the table of --outbox can "
                "start runs without one. Name the namespaces where that is allowed: --outbox-namespaces shop,billing."
            )

    def load_tls(self, clock: Clock) -> "ServerTls | None":
        """None: no TLS. Raises CannotStart if the files cannot be used."""
        if not (self.tls_cert or self.tls_key or self.tls_client_ca):
            return None
        if not (self.tls_cert and self.tls_key):
            raise CannotStart("TLS needs a certificate and its key. Give both: --tls-cert FILE and --tls-key FILE.")
        if self.listen.unix_path:
            raise CannotStart(
                f"TLS is for HOST:PORT, and only this machine can reach --listen {self.listen}. "
                "Give --listen a host and a port, or leave --tls-cert out."
            )
        from .tls import ServerTls, TlsFiles  # noqa: PLC0415  commands read the configuration without gRPC

        return ServerTls(TlsFiles(self.tls_cert, self.tls_key, self.tls_client_ca), clock)

    def refuse_websocket_without_http(self) -> None:
        """Raises CannotStart if WebSocket is on and HTTP is off."""
        if self.websocket and self.http is None:
            raise CannotStart(
                "--websocket needs the HTTP port, and --http is off. Give --http HOST:PORT, or leave --websocket out."
            )


def load_config(flags: Mapping[str, object], *, environment: Mapping[str, str], directory: Path) -> ServerConfig:
    """`flags`: by setting name, as text or a boolean; None for those not set. Raises InvalidArgument."""
    unknown = set(flags) - set(_READERS)
    if unknown:
        raise InvalidArgument(f"unknown settings: {', '.join(sorted(unknown))}.")
    values: dict[str, Any] = dict(read_settings_file(directory, _READERS))
    for key in _READERS:
        variable = environment.get(ENVIRONMENT_PREFIX + key.upper())
        if variable:
            values[key] = variable
    values.update({key: value for key, value in flags.items() if value is not None})
    read = {key: _READERS[key](value, key) for key, value in values.items()}
    config = _assembled(read)
    _refuse_bad_databases(config)
    if config.outbox_namespaces and not config.outbox:
        raise InvalidArgument(
            "outbox_namespaces is about an outbox, and there is none. Give outbox, too.", field="outbox_namespaces"
        )
    _refuse_bad_timings(config.settings)
    return config


def _assembled(read: dict[str, Any]) -> ServerConfig:
    """Adds the unit to the names of durations, moves the engine's settings to Settings and PostgreSQL's options to its
    URL."""
    renamed = {_FIELD_NAMES.get(key, key): value for key, value in read.items() if key not in _DATABASE_OPTIONS}
    options = {key: read[key] for key in _DATABASE_OPTIONS if key in read}
    for url in ("db", "db_direct"):
        if options and (url == "db" or url in renamed):
            renamed[url] = database_with_options(renamed.get(url, ServerConfig().db), options, field=url)
    engine = {field: renamed.pop(field) for field in Settings.__struct_fields__ if field in renamed}
    return ServerConfig(settings=Settings(**engine), **renamed)


def _refuse_bad_databases(config: ServerConfig) -> None:
    database = parse_database(config.db)
    if not config.db_direct:
        return
    if not isinstance(database, PostgresDatabase) or not isinstance(
        parse_database(config.db_direct, field="db_direct"), PostgresDatabase
    ):
        raise InvalidArgument(
            "db_direct is for PostgreSQL behind a pooler: db names the pooler, db_direct the same database without it.",
            field="db_direct",
        )


def _refuse_bad_timings(settings: Settings) -> None:
    if settings.heartbeat_ms * 2 > settings.lease_ms:
        raise InvalidArgument(
            f"heartbeat={settings.heartbeat_ms}ms is more than half of lease={settings.lease_ms}ms: one late heartbeat "
            "would lose the lease. Make the lease longer, or the heartbeat shorter.",
            field="heartbeat",
        )
    if settings.keys_check_ms * _CHECKS_BEHIND > _REVOKED_WITHIN_MS:
        most = _REVOKED_WITHIN_MS // _CHECKS_BEHIND
        raise InvalidArgument(
            f"keys_check={settings.keys_check_ms}ms is more than {most}ms: a revoked key would be good for longer than "
            f"{_REVOKED_WITHIN_MS // 1_000} s. Make it shorter.",
            field="keys_check",
        )


def _auth(value: object, key: str) -> str:
    word = AUTH_OFF if value is False else value
    if word not in (AUTH_OFF, AUTH_KEYS):
        raise InvalidArgument(f"{key}={value!r} must be {AUTH_KEYS} or {AUTH_OFF}.", field=key)
    return str(word)


def _words(value: object, key: str) -> tuple[str, ...]:
    """Reads a comma-separated text, or a list from the settings file."""
    words = cast("list[object]", value) if isinstance(value, list) else _text(value, key).split(",")
    return tuple(str(word).strip().lower() for word in words)


def _hosts(value: object, key: str) -> tuple[str, ...]:
    hosts = _words(value, key)
    for host in hosts:
        if not host or "/" in host or any(character.isspace() for character in host):
            raise InvalidArgument(
                f"{key}={value!r}: {host!r} is not the name of a host. Write kagzi.example.com, without port and path.",
                field=key,
            )
    return hosts


def _base_path(value: object, key: str) -> str:
    path = _text(value, key).rstrip("/")
    if path and (not _BASE_PATH.fullmatch(path) or path.split("/")[1] in _OWN_PATHS):
        raise InvalidArgument(
            f"{key}={value!r} is not a path to put the site below. Write /kagzi: A-Z, a-z, 0-9, - . _ ~ and /; not "
            f"beginning with a path of its own ({', '.join(_OWN_PATHS)}).",
            field=key,
        )
    return path


def _proxies(value: object, key: str) -> tuple[str, ...]:
    from ipaddress import ip_network  # noqa: PLC0415  most servers have no proxies configured

    if value in (OFF, False):
        return ()
    try:
        return tuple(str(ip_network(word)) for word in _words(value, key))
    except ValueError as error:
        raise InvalidArgument(
            f"{key}={value!r}: {error}. Write addresses or networks such as 10.0.0.7 or 10.0.0.0/8, separated by "
            "commas, or off.",
            field=key,
        ) from None


def _otlp(value: object, key: str) -> str:
    return endpoint_of(_text(value, key), field=key)


def _namespaces(value: object, key: str) -> tuple[str, ...]:
    words = cast("list[object]", value) if isinstance(value, list) else _text(value, key).split(",")
    names = tuple(str(word).strip() for word in words)
    if not all(names):
        raise InvalidArgument(f"{key}={value!r} has an empty name. Write shop,billing.", field=key)
    return names


def _text(value: object, key: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidArgument(f"{key}={value!r} is not a string.", field=key)
    return value


def _word(value: object, key: str) -> str:
    """Accepts a number from a file like its digits from the environment."""
    return _text(str(value) if type(value) is int else value, key)


def _duration_ms(value: object, key: str) -> int:
    duration = parse_duration(cast("Duration", value), what=key)  # refuses any other type
    microseconds = us_from_timedelta(duration)
    if microseconds <= 0:
        raise InvalidArgument(f"{key}={value!r} must be more than zero.", field=key)
    return -(-microseconds // US_PER_MS)


def _flag(value: object, key: str) -> bool:
    word = value if isinstance(value, bool) else _WORDS.get(str(value).lower())
    if word is None:
        raise InvalidArgument(f"{key}={value!r} is neither true nor false.", field=key)
    return word


def _listen(value: object, key: str) -> ListenAddress:
    return parse_listen(_text(value, key), field=key)


def _http(value: object, key: str) -> ListenAddress | None:
    return None if value in (OFF, False) else parse_listen(_text(value, key), field=key)


def _payload_bytes(value: object, key: str) -> int:
    return _number(value, key, limits.PAYLOAD_BYTES, "bytes")


def _total_bytes(value: object, key: str) -> int:
    return _number(value, key, _TOTAL_BYTES_MAX, "bytes")


def _claim_cap(value: object, key: str) -> int:
    return _number(value, key, _CLAIM_CAP_MAX, "lost leases")


def _processes(value: object, key: str) -> int:
    return _number(value, key, _PROCESSES_MAX, "processes")


def _number(value: object, key: str, most: int, unit: str) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = 0
    if not 1 <= number <= most:
        raise InvalidArgument(f"{key}={value!r} is not in 1..{most} ({unit}).", field=key)
    return number


_DATABASE_OPTIONS = ("db_schema", "db_pool_size", "db_statement_timeout", "db_lock_timeout")

_READERS: dict[str, Callable[[object, str], Any]] = {
    "db": _text,
    "db_direct": _text,
    **dict.fromkeys(_DATABASE_OPTIONS, _word),
    "listen": _listen,
    "http": _http,
    "websocket": _flag,
    "lease": _duration_ms,
    "heartbeat": _duration_ms,
    "reconnect_grace": _duration_ms,
    "poll_interval": _duration_ms,
    "resident_wait": _duration_ms,
    "cleanup": _duration_ms,
    "schedule_late": _duration_ms,
    "retention": _duration_ms,
    "housekeeping": _duration_ms,
    "claim_cap": _claim_cap,
    "payload_bytes": _payload_bytes,
    "journal_total_bytes": _total_bytes,
    "unread_total_bytes": _total_bytes,
    "strict_namespaces": _flag,
    "jitter": _flag,
    "grace": _duration_ms,
    "processes": _processes,
    "tls_cert": _text,
    "tls_key": _text,
    "tls_client_ca": _text,
    "reflection": _flag,
    "insecure": _flag,
    "auth": _auth,
    "keys_check": _duration_ms,
    "http_hosts": _hosts,
    "http_base_path": _base_path,
    "http_proxies": _proxies,
    "otlp": _otlp,
    "public_url": lambda value, key: public_url_of(_text(value, key), key),
    "trace_url": lambda value, key: trace_url_of(_text(value, key), key),
    "outbox": parse_outbox,
    "outbox_namespaces": _namespaces,
    "trace_max_age": _duration_ms,
    "no_migrate": _flag,
}

_FIELD_NAMES = {key: f"{key}_ms" for key, read in _READERS.items() if read is _duration_ms}

SETTING_NAMES = tuple(_READERS)
