"""How a server is set up: flag > environment > file > default. Every setting has all four, and each is real."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from ..core import limits
from ..core.duration import Duration, parse_duration
from ..core.errors import InvalidArgument
from ..core.limits import Settings
from ..core.times import US_PER_MS, us_from_timedelta
from .database import Database, PostgresDatabase, parse_database
from .listen import ListenAddress, parse_listen
from .settings_file import read_settings_file
from .startup import CannotStart

ENVIRONMENT_PREFIX = "KAGZI_"
OFF = "off"
_TOTAL_BYTES_MAX = 1 << 40
_CLAIM_CAP_MAX = 1_000_000

_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`db_direct`: the same database past a pooler. `http` None: no HTTP listener. `secret`: calls must prove that they
    know it."""

    db: str = "sqlite:///kagzi.db"
    db_direct: str = ""
    listen: ListenAddress = ListenAddress("127.0.0.1", 50051)
    http: ListenAddress | None = ListenAddress("127.0.0.1", 8420)
    settings: Settings = Settings()
    grace_ms: int = 10_000
    insecure: bool = False
    no_migrate: bool = False
    secret: str = ""

    @property
    def database(self) -> Database:
        return parse_database(self.db)

    def refuse_unprotected(self) -> None:
        """Raises CannotStart for an address that others can reach: no keys would keep them out yet."""
        for flag, address in (("listen", self.listen), ("http", self.http)):
            if address is not None and not address.is_local and not self.insecure:
                raise CannotStart(
                    f"--{flag} {address} can be reached from other machines without authentication. "
                    f"Listen on 127.0.0.1:{address.port}, or pass --insecure if your network is private."
                )


def load_config(flags: Mapping[str, object], *, environment: Mapping[str, str], directory: Path) -> ServerConfig:
    """`flags`: by setting name, as text (or a boolean); None for those not given. Raises InvalidArgument."""
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
    _refuse_bad_timings(config.settings)
    return config


def _assembled(read: dict[str, Any]) -> ServerConfig:
    """Durations get the unit into their names; what is the engine's goes into its Settings."""
    renamed = {_FIELD_NAMES.get(key, key): value for key, value in read.items()}
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


def _text(value: object, key: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidArgument(f"{key}={value!r} is not a string.", field=key)
    return value


def _duration_ms(value: object, key: str) -> int:
    duration = parse_duration(cast("Duration", value), what=key)  # which refuses whatever is none
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


def _number(value: object, key: str, most: int, unit: str) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = 0
    if not 1 <= number <= most:
        raise InvalidArgument(f"{key}={value!r} is not in 1..{most} ({unit}).", field=key)
    return number


_READERS: dict[str, Callable[[object, str], Any]] = {
    "db": _text,
    "db_direct": _text,
    "listen": _listen,
    "http": _http,
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
    "insecure": _flag,
    "no_migrate": _flag,
}

_FIELD_NAMES = {key: f"{key}_ms" for key, read in _READERS.items() if read is _duration_ms}

SETTING_NAMES = tuple(_READERS)
