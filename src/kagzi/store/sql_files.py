"""Reads the named statements and the migrations of a store from its .sql files.

A file holds statements, each headed by `-- name: some_name` and a comment that says why. Statuses, kinds and reasons are written
by name: `{RUN.PENDING}`, `{STEP.FAILED}`, `{KIND.CHILD}`; the loader puts in the numbers of core, as literals, because the planner
matches the predicates of partial indexes by constants. Lists of a run's columns are written as `{run.shown:r}`: see `columns.py`. A migration is a file `NNNN_what_it_does.sql`, applied as a whole; its
checksum is remembered, so that an edited one is noticed.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import NamedTuple

from ..core.events import Source
from ..core.states import (
    CODE_OF_RUN_STATUS,
    ENDED,
    OPEN,
    KindCode,
    OnCloseCode,
    RunCode,
    RunStatus,
    StepCode,
    WaitCode,
    WorkerCode,
)
from .columns import expand_columns

_NAME = re.compile(r"^-- name: ([a-z][a-z0-9_]*)\s*$", re.MULTILINE)
_PART = re.compile(r"\{([a-z_]+)\}")
_CODE = re.compile(r"\{([A-Z_]+\.[A-Z_]+)\}")
_MIGRATION = re.compile(r"^(\d{4})_([a-z0-9_]+)\.sql$")


def _list(statuses: Iterable[RunStatus]) -> str:
    return ", ".join(map(str, sorted(CODE_OF_RUN_STATUS[status] for status in statuses)))


_ENUMS = {
    "RUN": RunCode,
    "STEP": StepCode,
    "KIND": KindCode,
    "WAIT": WaitCode,
    "ON_CLOSE": OnCloseCode,
    "WORKER": WorkerCode,
    "SOURCE": Source,
}
CODES = {
    **{f"{enum}.{name}": str(int(code)) for enum, codes in _ENUMS.items() for name, code in codes.__members__.items()},
    "RUN.OPEN": _list(OPEN),
    "RUN.ENDED": _list(ENDED),
}
"""What a name in braces stands for. The lists go into `IN ({RUN.OPEN})`."""


class Migration(NamedTuple):
    version: int
    name: str
    sql: str
    checksum: str


def load_statements(package: str, *, uuid_type: bool = False) -> dict[str, str]:
    """Every named statement in `<package>/sql/*.sql`, with codes and lists of columns (see `expand_columns`) written out. A name
    used twice is an error, and so is an unknown code or list."""
    statements: dict[str, str] = {}
    for file in _files(package, "sql"):
        parts = _NAME.split(file.read_text("utf-8"))
        for name, body in zip(parts[1::2], parts[2::2], strict=True):
            if name in statements:
                raise ValueError(f"{package}: statement {name!r} is defined twice")
            text = expand_columns(body.strip().rstrip(";"), uuid_type=uuid_type)
            statements[name] = _with_codes(name, text)
    return statements


def _with_codes(statement: str, text: str) -> str:
    unknown = set(_CODE.findall(text)) - CODES.keys()
    if unknown:
        raise ValueError(f"statement {statement!r}: no code is called {', '.join(sorted(unknown))}")
    return _CODE.sub(lambda found: CODES[found[1]], text)


def expand(text: str, parts: Mapping[str, str]) -> str:
    """The text with each `{part}` put in, and those within them."""
    while _PART.search(text):
        text = _PART.sub(lambda found: parts[found[1]], text)
    return text


def load_migrations(package: str) -> tuple[Migration, ...]:
    """The migrations in `<package>/migrations`, by version; versions are 1, 2, 3 without gaps."""
    migrations: list[Migration] = []
    for file in _files(package, "migrations"):
        match = _MIGRATION.match(file.name)
        if match is None:
            raise ValueError(f"{package}: {file.name} is not named NNNN_what_it_does.sql")
        sql = file.read_text("utf-8")
        migrations.append(Migration(int(match[1]), match[2], sql, hashlib.sha256(sql.encode()).hexdigest()))
    migrations.sort()
    if [migration.version for migration in migrations] != list(range(1, len(migrations) + 1)):
        raise ValueError(f"{package}: migrations are not numbered 1, 2, 3, ...")
    return tuple(migrations)


def _files(package: str, folder: str) -> list[Traversable]:
    entries = resources.files(package).joinpath(folder).iterdir()
    return sorted((entry for entry in entries if entry.name.endswith(".sql")), key=lambda entry: entry.name)
