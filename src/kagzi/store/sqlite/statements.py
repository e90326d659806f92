"""The named statements of `sql/*.sql`, ready to run.

`part_x` is a piece of text that others take in as `{x}`. `{values}` stands for rows of parameters, as many as an INSERT names columns, or n with `{values:n}`: such a statement
exists for 1, 2, 4, ... 64 rows at once, because every step of a statement gives up the interpreter lock, and a busy event
loop makes the writer wait for it. Texts are constant, so that each is prepared once.
"""

import re
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from ..sql_files import expand, load_statements

PACKAGE = __package__ or "kagzi.store.sqlite"
ROWS_AT_ONCE = (64, 32, 16, 8, 4, 2, 1)

# Whatever belongs to a namespace and does not go with one of its runs, in the order in which it goes, and the column that tells rows
# apart. A test knows all tables.
NAMESPACE_TABLES = {
    "workers": "worker_id",
    "worker_events": "worker_id",
    "workflow_versions": "workflow_type",
    "workflow_types": "workflow_type",
    "workflow_keys": "workflow_type",
    "bulk_operations": "created_at",
    "schedules": "schedule_id",
    "schedule_fires": "schedule_id",
    "run_stats": "minute",
    "child_links": "child_run_id",
}

_VALUES = re.compile(r"\{values(?::(\d+))?\}")
_INSERTED = re.compile(r"INSERT INTO \w+ \(([^)]*)\)")
_RUN_SOURCES = (
    "created",
    "status",
    "type",
    "type_version",
    "version",
    "workflow_id",
    "parent",
    "label",
    "schedule",
    "key",
    "problem",
)


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))


def _inserted(text: str) -> list[str]:
    match = _INSERTED.search(text)
    return [] if match is None else [column.strip() for column in match[1].split(",")]


def _load() -> tuple[dict[str, str], dict[str, tuple[tuple[int, str], ...]]]:
    texts = {name: _without_comments(text) for name, text in load_statements(PACKAGE).items()}
    parts = {name.removeprefix("part_"): text for name, text in texts.items() if name.startswith("part_")}
    single: dict[str, str] = {}
    many: dict[str, tuple[tuple[int, str], ...]] = {}
    for name, text in texts.items():
        if name.startswith("part_"):
            continue
        if (values := _VALUES.search(text)) is None:
            single[name] = expand(text, parts)
            continue
        row = f"({', '.join('?' * int(values[1] or len(_inserted(text))))})"
        many[name] = tuple((rows, text.replace(values[0], ", ".join([row] * rows))) for rows in ROWS_AT_ONCE)
    for source in _RUN_SOURCES:  # each way to page or count runs, by each index that may drive it
        order = "l" if source == "label" else "r"
        given = {**parts, "source": parts[f"runs_by_{source}"], "order": order}
        for verb in ("older_runs", "newer_runs", "count_runs"):
            single[f"{verb}_by_{source}"] = expand(parts[verb], given)
    for table, column in NAMESPACE_TABLES.items():
        single[f"remove_{table}"] = expand(parts["removal"], {"table": table, "column": column})
    return single, many


SQL, SQL_MANY = _load()
"""Statements by name, and those that take many rows: (rows, text), most rows first."""


def row_of(insert: str) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """Returns a function that puts the values of columns in the order of an INSERT of many rows."""
    return itemgetter(*_inserted(SQL_MANY[insert][-1][1]))
