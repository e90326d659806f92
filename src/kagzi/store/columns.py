"""The columns of a run, in one table for both stores.

SQL files refer to a list of columns instead of writing it out: `{run.shown:r}` stands for the columns that get and list
show, with the alias `r`. `core.records.RunAttributes` holds what a start sets once and for all; a new attribute needs a
column in a migration of each store and a line here.
"""

import re
from enum import Flag, auto
from typing import NamedTuple


class Use(Flag):
    SHOWN = auto()  # get and list read it
    EXPORTED = auto()  # an export has it
    IMPORTED = auto()  # an import writes the exported value
    NEW = auto()  # a start writes it
    ATTRIBUTES = auto()  # the value comes from the start request
    FORKED = auto()  # a fork copies it from its source
    CONTINUED = auto()  # continue as new passes it on


class Column(NamedTuple):
    name: str
    type: str  # PostgreSQL's type; SQLite needs none
    use: Use


_MOVED = Use.EXPORTED | Use.IMPORTED
_STATE = Use.SHOWN | _MOVED
_ATTRIBUTE = _STATE | Use.NEW | Use.ATTRIBUTES | Use.CONTINUED

RUN = (
    Column("run_id", "uuid", _STATE | Use.NEW),
    Column("namespace", "text", Use.SHOWN | Use.IMPORTED | Use.NEW | Use.CONTINUED),
    Column("workflow_id", "text", _STATE | Use.NEW | Use.CONTINUED),
    Column("workflow_type", "text", _ATTRIBUTE | Use.FORKED),
    Column("priority", "smallint", _ATTRIBUTE | Use.FORKED),
    Column("labels", "json", _ATTRIBUTE | Use.FORKED),
    Column("deadline_at", "bigint", _ATTRIBUTE),
    Column("retry", "json", _ATTRIBUTE | Use.FORKED),
    # If the keys of a type are served in turn, statements store an empty key for a run without one.
    Column("concurrency_key", "text", Use.SHOWN | Use.EXPORTED | Use.NEW | Use.FORKED | Use.CONTINUED),
    Column("task_queue", "text", _ATTRIBUTE | Use.FORKED),
    Column("version", "text", _STATE | Use.NEW),
    Column("request_id", "text", _MOVED | Use.NEW),
    Column("schedule_id", "text", _STATE | Use.NEW | Use.CONTINUED),
    Column("blocked_by", "uuid", _STATE | Use.NEW),
    Column("status", "smallint", _STATE | Use.NEW),
    Column("wait_reason", "smallint", _STATE | Use.NEW),
    Column("ready_at", "bigint", _STATE | Use.NEW),
    Column("due_at", "bigint", _STATE | Use.NEW),
    Column("lease", "bigint", _STATE | Use.NEW),
    Column("nonce", "bigint", Use.NEW),
    Column("worker_id", "text", Use.SHOWN | Use.NEW),
    Column("lease_until", "bigint", Use.NEW),
    Column("parent_run_id", "uuid", _STATE | Use.CONTINUED),
    Column("parent_step_id", "text", _STATE | Use.CONTINUED),
    Column("on_close", "smallint", _MOVED | Use.CONTINUED),
    Column("seq", "bigint", _STATE),
    Column("attempt", "integer", _STATE),
    Column("lost_leases", "integer", _STATE),
    Column("created_at", "bigint", _STATE),
    Column("started_at", "bigint", _STATE),
    Column("finished_at", "bigint", _STATE),
    Column("queued_at", "bigint", _STATE),
    Column("queued_us", "bigint", _STATE),
    Column("paused_due_at", "bigint", _MOVED),
    Column("cancel_requested_at", "bigint", _STATE),
    Column("cancel_by", "bigint", _MOVED),
    Column("cancel_reason", "text", _STATE),
    Column("pause_requested", "boolean", Use.SHOWN | Use.EXPORTED),
    Column("pause_reason", "text", _STATE),
    Column("forked_from", "uuid", _STATE),
    Column("continued_as", "uuid", _STATE),
    Column("handed_on_to", "uuid", _STATE),
    Column("retry_request_id", "text", _MOVED),
    Column("watched", "boolean", _MOVED),
    Column("has_children", "boolean", _MOVED),
    Column("cascade_due", "boolean", _MOVED),
    Column("tried_builds", "text[]", _MOVED),
    Column("pinned_build", "text", _STATE),
    Column("status_text", "text", _STATE),
    Column("progress", "double precision", _STATE),
    Column("error", "json", _STATE),
    Column("problem", "json", _STATE),
    # Counted from the steps. An import counts again: see RunState.count_changes.
    Column("awaits_signal", "integer", Use.SHOWN),
    Column("retrying_steps", "integer", Use.SHOWN),
    # Counted from the signals, also for a run that has ended.
    Column("unread_signals", "integer", Use.SHOWN),
    # Refers to claims made in this store, so an import leaves it out.
    Column("own_traces_from", "bigint", Use.SHOWN),
)

_LIST = re.compile(r"\{run\.([a-z]+)(?::([a-z]+))?(?: (read|typed|single|values))?\}")


def columns(use: Use) -> tuple[Column, ...]:
    return tuple(column for column in RUN if column.use & use == use)


def expand_columns(text: str, *, uuid_type: bool) -> str:
    """Writes out the lists of columns in a text. `{run.shown}` becomes column names, `{run.shown:r}` names with an
    alias. With ` read`, ids are read as text even if the store has a type for them; ` typed` makes a list for `rows()`,
    ` values` named parameters, ` single` named parameters that form a row. Raises ValueError for an unknown list."""

    def write_out(match: re.Match[str]) -> str:
        name, alias, form = match.groups()
        if name.upper() not in Use.__members__:
            raise ValueError(f"{match[0]}: no columns are {name}")
        return ", ".join(_written(column, alias, form, uuid_type) for column in columns(Use[name.upper()]))

    return _LIST.sub(write_out, text)


def _written(column: Column, alias: str | None, form: str | None, uuid_type: bool) -> str:
    if form == "typed":
        return f"{column.name} {column.type}"
    if form == "single":
        return f":{column.name}::{column.type} AS {column.name}"
    if form == "values":
        return f":{column.name}"
    name = column.name if alias is None else f"{alias}.{column.name}"
    return f"{name}::text AS {column.name}" if form == "read" and column.type == "uuid" and uuid_type else name
