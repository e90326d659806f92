"""Reads settings from `kagzi.toml`, or `[tool.kagzi]` in `pyproject.toml`, in the directory where the server is
started."""

import difflib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, cast

from ..core.errors import InvalidArgument

# Keys of the same table that only other commands read.
FOREIGN_KEYS = frozenset(
    {
        *("address", "namespace", "data", "workflows", "worker", "dev", "http_url"),
        *("log_level", "log_format", "worker_processes"),
        *("tls_ca", "client_tls_cert", "client_tls_key", "codec"),
    }
)


def read_settings_file(directory: Path, known: Collection[str]) -> Mapping[str, Any]:
    """The settings of the file, by key with underscores. Raises InvalidArgument for an unknown key."""
    for path, table_path in ((directory / "kagzi.toml", ()), (directory / "pyproject.toml", ("tool", "kagzi"))):
        table = _table(path, table_path)
        if table is not None:
            return _checked(table, path, known)
    return {}


def _table(path: Path, table_path: tuple[str, ...]) -> Mapping[str, Any] | None:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error
    import tomllib  # noqa: PLC0415  most directories have no such file

    try:
        content: Mapping[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(path, error) from error
    for key in table_path:
        inner = content.get(key)
        if not isinstance(inner, dict):
            return None
        content = cast("Mapping[str, Any]", inner)
    return content


def _unreadable(path: Path, error: Exception) -> InvalidArgument:
    return InvalidArgument(f"{path} cannot be read: {error}", field=str(path))


def _checked(table: Mapping[str, Any], path: Path, known: Collection[str]) -> Mapping[str, Any]:
    settings: dict[str, Any] = {}
    for written, value in table.items():
        key = written.replace("-", "_")
        if key in known:
            settings[key] = value
        elif key not in FOREIGN_KEYS:
            near = difflib.get_close_matches(key, [*known, *FOREIGN_KEYS], n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known are: {', '.join(sorted(known))}."
            raise InvalidArgument(f"{path}: unknown setting {written!r}. {hint}", field=written)
    return settings
