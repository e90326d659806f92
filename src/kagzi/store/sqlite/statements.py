"""The named statements, ready to run.

`part_x` is a text that others include as `{x}`. `{values}` stands for rows of parameters, one parameter for each column
of the INSERT, or n with `{values:n}`. Such a statement exists for 1, 2, 4, ... 64 rows at once, because every step of a
statement releases the GIL, and a busy event loop makes the writer wait for it. Texts are constant, so each is prepared
once.

Statements that both stores share are in PostgreSQL's dialect. The translation drops casts and row locks (there is one
writer), reads `rows(:name)` from a JSON array, and uncomments `INDEXED BY`: SQLite's planner needs the hint.
"""

import re
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from ...core.states import WorkerStatus
from ..sql_files import CODES, expand, load_statements

PACKAGE = __package__ or "kagzi.store.sqlite"
ROWS_AT_ONCE = (64, 32, 16, 8, 4, 2, 1)

# The column stores the name of a worker's status, not a code.
_CODES = CODES | {f"WORKER.{status.name}": f"'{status.value}'" for status in WorkerStatus}

_VALUES = re.compile(r"\{values(?::(\d+))?\}")
_INSERTED = re.compile(r"INSERT INTO \w+ \(([^)]*)\)")
_ROWS = re.compile(r"\brows\(:([a-z_]+)\)(?: WITH ORDINALITY)? AS ([a-z]+) \(([^)]*)\)")
# Each pattern with a word that a text must contain to match: few do, and searching for a word is fast. Every process
# does this for hundreds of texts when it starts.
_TRANSLATIONS = (
    ("::", re.compile(r"::(?:double precision|[a-z]+)(?:\[\])?"), ""),
    ("FOR UPDATE", re.compile(r"\s+FOR UPDATE(?: OF [a-z]+)?(?: SKIP LOCKED)?"), ""),
    ("/* INDEXED", re.compile(r"/\* (INDEXED BY [a-z_]+) \*/"), r"\1"),
    ("IS NOT DISTINCT", re.compile(r"\bIS NOT DISTINCT FROM\b"), "IS"),
    ("greatest(", re.compile(r"\bgreatest\("), "max("),
)
_RUN_SOURCES = (
    "created",
    "status",
    "type_asleep",
    "type_version",
    "workflow_id",
    "run_ids",
    "parent",
    "label",
    "schedule",
    "key",
    "worker",
    "problem",
    "failing",
    "waiting",
)
_SEARCHES = ("run_id_prefix", "workflow_id_prefix")
ENDED_SOURCES = ("end", "workflow_id", "run_ids", "parent", "problem", "failing")
"""The sources of lists by end: all runs that ended with a status, or conditions that few runs match."""


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))


def _translated(text: str) -> str:
    if "rows(:" in text:
        text = _ROWS.sub(_json_rows, text)
    for word, pattern, replacement in _TRANSLATIONS:
        if word in text:
            text = pattern.sub(replacement, text)
    return text


def _json_rows(match: re.Match[str]) -> str:
    """A column without a type is the position of the row (WITH ORDINALITY)."""
    parameter, alias, columns = match.groups()
    named = [column.strip().partition(" ") for column in columns.split(",")]
    values = [f"json_extract(value, '$.{name}') AS {name}" if kind else f"key AS {name}" for name, _, kind in named]
    return f"(SELECT {', '.join(values)} FROM json_each(:{parameter})) AS {alias}"  # noqa: S608  the text is our own


def _inserted(text: str) -> list[str]:
    match = _INSERTED.search(text)
    return [] if match is None else [column.strip() for column in match[1].split(",")]


def _load() -> tuple[dict[str, str], dict[str, tuple[tuple[int, str], ...]]]:
    texts = {name: _translated(_without_comments(text)) for name, text in load_statements(PACKAGE, _CODES).items()}
    parts = {name.removeprefix("part_"): text for name, text in texts.items() if name.startswith("part_")}
    parts["time"] = "created_at"
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
    for source in _RUN_SOURCES:  # each statement that pages or counts runs, for each index that it can read from
        order = "l" if source == "label" else "r"
        source_parts = {**parts, "source": parts[f"runs_by_{source}"], "order": order}
        for verb in ("older_runs", "newer_runs", "count_runs"):
            single[f"{verb}_by_{source}"] = expand(parts[verb], source_parts)
    for source in ENDED_SOURCES:
        source_parts = {**parts, "source": parts[f"runs_by_{source}"], "order": "r", "time": "finished_at"}
        for verb in ("older", "newer", "count"):
            single[f"{verb}_ended_runs_by_{source}"] = expand(parts[f"{verb}_runs"], source_parts)
    for source in _SEARCHES:
        single[f"some_runs_by_{source}"] = expand(parts["some_runs"], {**parts, "source": parts[f"runs_by_{source}"]})
    return single, many


SQL, SQL_MANY = _load()
"""Statements by name, and those that take many rows: (rows, text), most rows first."""


def row_of(insert: str) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """Returns a function that puts values by column into the order of an INSERT of many rows."""
    return itemgetter(*_inserted(SQL_MANY[insert][-1][1]))
