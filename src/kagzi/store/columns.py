"""The columns of a run, in one table for both stores.

SQL files name lists of them instead of writing them out: `{run.shown:r}` is what get and list read from the alias `r`.
The lists, and the forms that each of them has, are at the end of this module. What a start says about a run is in
`core.records.RunAttributes`; a new attribute needs a column in both migrations and a line here.
"""

import re
from enum import Flag, auto
from typing import NamedTuple


class Use(Flag):
    SHOWN = auto()  # get and list read it
    EXPORTED = auto()  # an export has it, an import writes it
    STARTED = auto()  # a start writes it as it is
    FORKED = auto()  # a fork starts with the value of its source
    CONTINUED = auto()  # a run that is continued as new passes it on
    STATE = SHOWN | EXPORTED  # what the engine keeps about a run
    ATTRIBUTE = STATE | STARTED | CONTINUED  # a field of RunAttributes


class Column(NamedTuple):
    name: str
    type: str  # of PostgreSQL; SQLite needs none
    use: Use


RUN = (
    Column("run_id", "uuid", Use.STATE),
    Column("namespace", "text", Use.SHOWN | Use.CONTINUED),
    Column("workflow_id", "text", Use.STATE | Use.CONTINUED),
    Column("workflow_type", "text", Use.ATTRIBUTE | Use.FORKED),
    Column("priority", "smallint", Use.ATTRIBUTE | Use.FORKED),
    Column("labels", "json", Use.ATTRIBUTE | Use.FORKED),
    Column("deadline_at", "bigint", Use.ATTRIBUTE),
    Column("retry", "json", Use.ATTRIBUTE | Use.FORKED),
    # Where keys take turns, a run without one is written with an empty one.
    Column("concurrency_key", "text", Use.STATE | Use.FORKED | Use.CONTINUED),
    Column("version", "text", Use.STATE | Use.FORKED),
    Column("schedule_id", "text", Use.STATE | Use.CONTINUED),
    Column("parent_run_id", "uuid", Use.STATE | Use.CONTINUED),
    Column("parent_step_id", "text", Use.STATE | Use.CONTINUED),
    Column("on_close", "smallint", Use.EXPORTED | Use.CONTINUED),
    Column("request_id", "text", Use.EXPORTED),
    Column("status", "smallint", Use.STATE),
    Column("wait_reason", "smallint", Use.STATE),
    Column("seq", "bigint", Use.STATE),
    Column("lease", "bigint", Use.EXPORTED),
    Column("worker_id", "text", Use.SHOWN),
    Column("attempt", "integer", Use.STATE),
    Column("lost_leases", "integer", Use.STATE),
    Column("created_at", "bigint", Use.STATE),
    Column("started_at", "bigint", Use.STATE),
    Column("finished_at", "bigint", Use.STATE),
    Column("ready_at", "bigint", Use.EXPORTED),
    Column("due_at", "bigint", Use.STATE),
    Column("paused_due_at", "bigint", Use.EXPORTED),
    Column("cancel_requested_at", "bigint", Use.STATE),
    Column("cancel_by", "bigint", Use.EXPORTED),
    Column("cancel_reason", "text", Use.STATE),
    Column("pause_requested", "boolean", Use.STATE),
    Column("pause_reason", "text", Use.STATE),
    Column("blocked_by", "uuid", Use.STATE),
    Column("forked_from", "uuid", Use.STATE),
    Column("continued_as", "uuid", Use.STATE),
    Column("retry_request_id", "text", Use.EXPORTED),
    Column("watched", "boolean", Use.EXPORTED),
    Column("has_children", "boolean", Use.EXPORTED),
    Column("cascade_due", "boolean", Use.EXPORTED),
    Column("tried_builds", "text[]", Use.EXPORTED),
    Column("status_text", "text", Use.STATE),
    Column("progress", "double precision", Use.STATE),
    Column("error", "json", Use.STATE),
    Column("problem", "json", Use.STATE),
)

_LIST = re.compile(r"\{run\.([a-z]+)(?::([a-z]+))?(?: (read|typed|values))?\}")


def columns(use: Use) -> tuple[Column, ...]:
    return tuple(column for column in RUN if column.use & use == use)


def expand_columns(text: str, *, uuid_type: bool) -> str:
    """The text with its lists of columns written out. `{run.shown}` is a list of names, `{run.shown:r}` of those of an alias.
    With ` read`, ids are text, whether or not the store has a type of its own for them; ` typed` is a list for `rows()`, and
    ` values` one of named parameters. Raises ValueError for a list that there is not."""

    def write_out(match: re.Match[str]) -> str:
        name, alias, form = match.groups()
        if name.upper() not in Use.__members__:
            raise ValueError(f"{match[0]}: no columns are {name}")
        return ", ".join(_written(column, alias, form, uuid_type) for column in columns(Use[name.upper()]))

    return _LIST.sub(write_out, text)


def _written(column: Column, alias: str | None, form: str | None, uuid_type: bool) -> str:
    if form == "typed":
        return f"{column.name} {column.type}"
    if form == "values":
        return f":{column.name}"
    name = column.name if alias is None else f"{alias}.{column.name}"
    return f"{name}::text AS {column.name}" if form == "read" and column.type == "uuid" and uuid_type else name
