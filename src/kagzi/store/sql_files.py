"""Loads the named statements and the migrations of a store from .sql files.

A file contains statements, each headed by `-- name: some_name` and a comment that says why. `store/sql` has those that
both stores share, in PostgreSQL's dialect; SQLite translates them (`store/sqlite/statements.py`). A store's own folder
has the rest.

Statuses, kinds and reasons are written by name: `{RUN.PENDING}`, `{STEP.FAILED}`, `{KIND.CHILD}`. The loader replaces
them by the codes of core, as literals, because the planner matches predicates of partial indexes by constants. `{<|>}`
makes two statements of a list: `some_name_next` with the first word of each pair, and `some_name_prev` with the second.
`{table}` makes one for each table of NAMESPACE_TABLES: `some_name_workers` and so on. Lists of a run's columns are
written as `{run.shown:r}`: see `columns.py`.

A migration is a file `NNNN_what_it_does.sql`, applied as a whole. Its checksum is recorded to detect later edits.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..core.errors import SchemaMismatch
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
from .protocol import SchemaStatus

_NAME = re.compile(r"^-- name: ([a-z][a-z0-9_]*)\s*$", re.MULTILINE)
_PART = re.compile(r"\{([a-z_]+)\}")
_CODE = re.compile(r"\{([A-Z_]+\.[A-Z_]+)\}")
_DIRECTION = re.compile(r"\{([^{}|]+)\|([^{}|]+)\}")
_SHARED = __package__ or "kagzi.store"
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
"""What a name in braces stands for. The lists are for `IN ({RUN.OPEN})`."""

NAMESPACE_TABLES = {
    "workers": "worker_id",
    "worker_events": "worker_id",
    "workflow_versions": "workflow_type",
    "workflow_schemas": "digest",
    "workflow_types": "workflow_type",
    "workflow_keys": "workflow_type",
    "bulk_operations": "created_at",
    "schedules": "schedule_id",
    "schedule_fires": "schedule_id",
    "run_stats": "minute",
    "run_stats_hours": "hour",
    "child_links": "child_run_id",
    "api_keys": "key_id",
}
"""The tables whose rows belong to a namespace and are not deleted with a run, in the order of deletion, each with a
column that distinguishes rows. A test checks that none is missing."""


class Migration(NamedTuple):
    version: int
    name: str
    sql: str
    checksum: str


class AppliedMigration(NamedTuple):
    version: int
    name: str
    checksum: str


def load_statements(package: str, codes: Mapping[str, str] = CODES, *, uuid_type: bool = False) -> dict[str, str]:
    """All named statements in `store/sql` and in `<package>/sql`, with codes and lists of columns (see
    `expand_columns`) written out. Raises ValueError for a name used twice, an unknown code or an unknown list."""
    statements: dict[str, str] = {}
    for file in (*_files(_SHARED, "sql"), *_files(package, "sql")):
        parts = _NAME.split(file.read_text("utf-8"))
        for base, body in zip(parts[1::2], parts[2::2], strict=True):
            for name, text in _variants(base, expand_columns(body.strip().rstrip(";"), uuid_type=uuid_type)):
                if name in statements:
                    raise ValueError(f"{package}: statement {name!r} is defined twice")
                statements[name] = _with_codes(name, text, codes)
    return statements


def _variants(name: str, text: str) -> Iterator[tuple[str, str]]:
    if "{table}" in text:
        for table, column in NAMESPACE_TABLES.items():
            yield f"{name}_{table}", text.replace("{table}", table).replace("{column}", column)
    elif _DIRECTION.search(text):
        for group, direction in enumerate(("next", "prev"), start=1):
            yield f"{name}_{direction}", _DIRECTION.sub(rf"\{group}", text)
    else:
        yield name, text


def _with_codes(statement: str, text: str, codes: Mapping[str, str]) -> str:
    if "{" not in text:
        return text
    unknown = set(_CODE.findall(text)) - codes.keys()
    if unknown:
        raise ValueError(f"statement {statement!r}: no code is called {', '.join(sorted(unknown))}")
    return _CODE.sub(lambda match: codes[match[1]], text)


def expand(text: str, parts: Mapping[str, str]) -> str:
    """The text with each `{part}` replaced, also within the parts."""
    while _PART.search(text):
        text = _PART.sub(lambda match: parts[match[1]], text)
    return text


def load_migrations(package: str) -> tuple[Migration, ...]:
    """The migrations in `<package>/migrations`, by version. Versions are 1, 2, 3 and so on, without gaps."""
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


def _files(package: str, folder: str) -> list[Path]:
    # Not importlib.resources: it also loads readers for archives, from which database drivers cannot be imported.
    here = Path(__file__).parent.joinpath(*package.removeprefix(_SHARED).split("."), folder)
    return sorted(here.glob("*.sql"))


def schema_status(place: str, known: Sequence[Migration], applied: Sequence[AppliedMigration]) -> SchemaStatus:
    """How far a database is migrated. Raises SchemaMismatch for a newer schema or a migration that has changed
    since."""
    latest = known[-1].version
    if applied and applied[-1].version > latest:
        raise SchemaMismatch(
            f"{place} has schema version {applied[-1].version}, newer than {latest}, which this code knows. "
            "Run a newer Kagzi."
        )
    for (version, name, checksum), migration in zip(applied, known, strict=False):
        if checksum != migration.checksum:
            raise SchemaMismatch(
                f"{place}: migration {version:04d}_{name} differs from the one that was applied (checksum). "
                "Run the Kagzi version that applied it, or restore the file."
            )
    pending = tuple(f"{migration.version:04d}_{migration.name}" for migration in known[len(applied) :])
    return SchemaStatus(current=len(applied), latest=latest, pending=pending)
