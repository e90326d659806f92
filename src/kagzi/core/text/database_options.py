"""Options in a PostgreSQL URL that are for Kagzi, not for PostgreSQL: `?schema=kagzi&pool_size=20&lock_timeout=5s`."""

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from ..duration import parse_duration
from ..errors import InvalidArgument
from ..times import US_PER_MS, us_from_timedelta

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,39}")
_POOL_SIZES = (8, 200)
_TIMEOUTS_MS = (100, 600_000)
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no", "")


class DatabaseOptions(NamedTuple):
    """`schema`: of the tables; empty: the role's search_path decides. `pool_size`: the maximum number of connections of
    one server process. `lock_timeout_ms`: for everything except the writes of workers, which never wait for locks.
    `pooled`: behind a pooler in transaction mode."""

    schema: str = ""
    pool_size: int = 12
    statement_timeout_ms: int = 15_000
    lock_timeout_ms: int = 2_000
    pooled: bool = False


def read_options(url: str) -> tuple[str, DatabaseOptions]:
    """The URL for the driver, and the options. Raises InvalidArgument, which names the option and shows nothing else of
    the URL."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    default = DatabaseOptions()
    read = DatabaseOptions(
        _schema(options.pop("schema", default.schema)),
        _pool_size(options.pop("pool_size", str(default.pool_size))),
        _timeout_ms("statement_timeout", options.pop("statement_timeout", f"{default.statement_timeout_ms} ms")),
        _timeout_ms("lock_timeout", options.pop("lock_timeout", f"{default.lock_timeout_ms} ms")),
        _flag("pgbouncer", options.pop("pgbouncer", "")),
    )
    return urlunsplit(parts._replace(query=urlencode(options, safe="/"))), read


def with_options(url: str, added: Mapping[str, str]) -> str:
    """The URL with these options added. Raises InvalidArgument, also if the URL has one with another value."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name, value in added.items():
        try:
            read_options(f"postgresql:///?{urlencode({name: value})}")
        except InvalidArgument as error:
            raise InvalidArgument(f"db_{error.message}", field=f"db_{name}") from error
        if options.setdefault(name, value) != value:
            raise InvalidArgument(
                f"db_{name}={value!r} contradicts {name}={options[name]!r} in the URL. Leave one of them out.",
                field=f"db_{name}",
            )
    return urlunsplit(parts._replace(query=urlencode(options, safe="/")))


def _schema(value: str) -> str:
    if value and not _SCHEMA.fullmatch(value):
        raise _refused("schema", value, "a name of up to 40 characters: a-z, _, and after the first also 0-9")
    if value.startswith("pg_"):
        raise _refused("schema", value, 'possible: PostgreSQL keeps names that begin with "pg_" for itself')
    return value


def _pool_size(value: str) -> int:
    smallest, largest = _POOL_SIZES
    if not value.isascii() or not value.isdigit() or not smallest <= int(value) <= largest:
        raise _refused("pool_size", value, f"a number of connections from {smallest} to {largest}")
    return int(value)


def _timeout_ms(name: str, value: str) -> int:
    shortest, longest = _TIMEOUTS_MS
    wanted = f'a duration from {shortest} ms to {longest // 1_000} s, such as "5s"'
    try:
        milliseconds = us_from_timedelta(parse_duration(value, what=name)) // US_PER_MS
    except InvalidArgument as error:
        raise _refused(name, value, wanted) from error
    if not shortest <= milliseconds <= longest:
        raise _refused(name, value, wanted)
    return milliseconds


def _flag(name: str, value: str) -> bool:
    if value.lower() not in (*_TRUE, *_FALSE):
        raise _refused(name, value, "true or false")
    return value.lower() in _TRUE


def _refused(name: str, value: str, wanted: str) -> InvalidArgument:
    return InvalidArgument(f"{name}={value!r} is not {wanted}.", field="db")
