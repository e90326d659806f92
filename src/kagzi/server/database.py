"""Parses database URLs."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

import msgspec

from ..core.errors import InvalidArgument
from ..core.text.database_options import read_options, with_options
from ..core.text.database_urls import check_database_url

MEMORY = ":memory:"
_SQLITE = "sqlite:///"
_POSTGRES = ("postgres://", "postgresql://")
_USER_PASSWORD = re.compile(
    r"(://[^/?#:@\s]*):.*@", re.DOTALL
)  # up to the last @: a password may contain any character
_QUERY_PASSWORD = re.compile(r"([?&](?:password|sslpassword|passfile)=)[^&#]*", re.IGNORECASE)


class SqliteDatabase(msgspec.Struct, frozen=True):
    """`path` None: an in-memory store."""

    path: Path | None


class PostgresDatabase(msgspec.Struct, frozen=True):
    url: str


Database: TypeAlias = SqliteDatabase | PostgresDatabase


def parse_database(url: str, *, field: str = "db") -> Database:
    """`sqlite:///relative.db`, `sqlite:////absolute.db`, `:memory:` or a libpq URL. Raises InvalidArgument, which never
    shows a password."""
    if url in (MEMORY, f"sqlite:///{MEMORY}", f"sqlite://{MEMORY}"):
        return SqliteDatabase(None)
    if url.startswith(_SQLITE):
        path = unquote(url.removeprefix(_SQLITE))
        if path.strip("/") and not path.endswith("/") and "?" not in path and "\0" not in path:
            return SqliteDatabase(Path(path).absolute())
    if url.startswith(_POSTGRES):
        check_database_url(url, field=field)
        read_options(url)
        return PostgresDatabase(url)
    # A URL that cannot be parsed may contain a password anywhere.
    shown = f"{url.partition(':')[0]}:..." if "@" in url or "password" in url.lower() else url
    raise InvalidArgument(
        f"{field}={shown!r} is not a database URL. "
        'Write "sqlite:///file.db", "sqlite:////absolute/file.db", ":memory:" or "postgresql://user@host/database".',
        field=field,
    )


def parse_outbox(url: object, field: str) -> str:
    """The URL of a user database. Raises InvalidArgument, which never shows a password."""
    if not isinstance(url, str) or not isinstance(parse_database(url, field=field), PostgresDatabase):
        raise InvalidArgument(f"{field} is in PostgreSQL. Write postgresql://USER@HOST/DATABASE.", field=field)
    return url


def database_with_options(url: str, options: Mapping[str, str], *, field: str = "db") -> str:
    """Adds options to a PostgreSQL URL; each is named `db_...` like its setting. Raises InvalidArgument."""
    if not isinstance(parse_database(url, field=field), PostgresDatabase):
        name = next(iter(options))
        raise InvalidArgument(f"{name} is for PostgreSQL, and {field} is not. Leave {name} out.", field=name)
    return with_options(url, {name.removeprefix("db_"): value for name, value in options.items()})


def mask(url: str) -> str:
    """Removes passwords from a URL, or from a text that contains one."""
    return _QUERY_PASSWORD.sub(r"\1***", _USER_PASSWORD.sub(r"\1:***@", url))
