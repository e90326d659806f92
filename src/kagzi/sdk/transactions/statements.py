"""The statements executed on the user's connection. Values are written as `:name`."""

import re
from functools import cache
from pathlib import Path

_NAME = re.compile(r"^-- name: ([a-z_]+)\n", re.MULTILINE)
_VALUE = re.compile(r":([a-z_]+)")


@cache
def statements() -> dict[str, str]:
    """All statements, by name, without their comments."""
    named: dict[str, str] = {}
    for file in sorted((Path(__file__).parent / "sql").glob("*.sql")):
        parts = _NAME.split(file.read_text("utf-8"))
        for name, body in zip(parts[1::2], parts[2::2], strict=True):
            named[name] = body.partition("\n")[2].strip()
    return named


@cache
def numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """For drivers that use `$1`: the statement, and the names of its values in order."""
    names: list[str] = []

    def number(value: "re.Match[str]") -> str:
        if value[1] not in names:
            names.append(value[1])
        return f"${names.index(value[1]) + 1}"

    return _VALUE.sub(number, sql), tuple(names)


@cache
def percent(sql: str) -> str:
    """For drivers that use `%(name)s`."""
    return _VALUE.sub(r"%(\1)s", sql)


def parts_of(sql: str) -> list[str]:
    """The single statements of a script."""
    return [part.strip() for part in sql.split(";\n") if part.strip()]
