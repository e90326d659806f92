"""Views of records: JSON with a stable schema (snake_case, RFC 3339), and table cells for people.

Both are built from the names of fields. `key=field` shows a field under another name. In JSON, `field?` shows an empty
text as null. Keys are always present; unknown values are null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

from .times import local_text, utc_text

if TYPE_CHECKING:
    from ..core.error_details import ErrorDetail


def view(record: object, *names: str, moment: Callable[[datetime], str] = utc_text) -> dict[str, Any]:
    """The named fields of a record, for JSON."""
    shown: dict[str, Any] = {}
    for name in names:
        key, _, field = name.rstrip("?").partition("=")
        value = json_value(getattr(record, field or key), moment)
        shown[key] = None if name.endswith("?") and value == "" else value
    return shown


def json_value(value: Any, moment: Callable[[datetime], str] = utc_text) -> Any:
    from ..core.duration import format_duration
    from ..core.error_details import ErrorDetail

    match value:
        case datetime():
            return moment(value)
        case timedelta():
            return format_duration(value)
        case StrEnum():
            return str(value)
        case ErrorDetail():
            return error_view(value)
        case Mapping():
            return {key: json_value(each, moment) for key, each in cast("Mapping[str, Any]", value).items()}
        case tuple() | list():
            return [json_value(each, moment) for each in cast("Sequence[Any]", value)]
        case _:
            return value


def error_view(error: ErrorDetail | None) -> dict[str, Any] | None:
    if error is None:
        return None
    names = ("text", "type?", "message", "kind", "code", "exhausted", "non_retryable", "traceback?", "metadata")
    shown = view(error, *names)
    return shown if error.cause is None else shown | {"cause": error_view(error.cause)}


def cells(record: object, *names: str) -> dict[str, str]:
    """The named fields of a record, for a table or a list of fields. The heading of `open_runs` is "open runs"."""
    shown: dict[str, str] = {}
    for name in names:
        heading, _, field = name.partition("=")
        shown[heading.replace("_", " ")] = cell(getattr(record, field or heading))
    return shown


def limit_cells(record: object, *names: str) -> dict[str, str]:
    """Like `cells`, for limits: no limit is shown as `-`."""
    return {heading: text or "-" for heading, text in cells(record, *names).items()}


def cell(value: Any) -> str:
    """Times are local, as in logs. Empty if there is no value."""
    match value:
        case None:
            return ""
        case datetime():
            return local_text(value)
        case float():
            return f"{value:g}"
        case Mapping():
            return " ".join(f"{key}={each}" for key, each in sorted(cast("Mapping[str, Any]", value).items()))
        case tuple() | list():
            return ", ".join(map(str, cast("Sequence[Any]", value)))
        case _:
            return str(value)
