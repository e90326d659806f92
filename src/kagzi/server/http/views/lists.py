"""A live list: its rows, its changes, and counts for an overview."""

from typing import Any

from ....core.records import RunOrder
from ....engine import ListChange, ListRows, NewRows, RowChanged
from ..page_data import PageData
from ..run_counts import RunCounts
from .common import View
from .runs import FilterIn, RunView, run_view


class LiveQuery(FilterIn, frozen=True, kw_only=True):
    """The filters of the list. Only its first page is streamed."""

    label: tuple[str, ...] = ()
    order: RunOrder | None = None


class CountView(View, frozen=True, kw_only=True):
    """`capped`: there are more."""

    count: int
    capped: bool


class CountsView(View, frozen=True, kw_only=True):
    """Counts of all runs of the namespace. `failing`: a step is being retried, or the engine paused the run; `waiting`:
    for a signal; `failed`: ended as failed within the last 24 hours."""

    in_flight: CountView
    failing: CountView
    waiting: CountView
    paused: CountView
    failed: CountView


class RowsView(View, frozen=True, kw_only=True):
    """`more`: the list continues after the last row."""

    rows: tuple[RunView, ...]
    more: bool


class LiveListView(RowsView, frozen=True, kw_only=True):
    stats: CountsView


class GoneView(View, frozen=True, kw_only=True):
    run_id: str


class NewView(View, frozen=True, kw_only=True):
    count: int


def counts_view(counts: RunCounts) -> CountsView:
    shown = {name: CountView(count=each.runs, capped=each.capped) for name, each in counts._asdict().items()}
    return CountsView(**shown)


def rows_view(rows: ListRows, data: PageData) -> RowsView:
    return RowsView(rows=tuple(run_view(run, data) for run in rows.rows), more=rows.more)


def change_view(change: ListChange, data: PageData) -> tuple[str, Any]:
    """The name of the event, and its data."""
    match change:
        case ListRows():
            return "rows", rows_view(change, data)
        case RowChanged(record=record):
            return "row", run_view(record, data)
        case NewRows(count=count):
            return "new", NewView(count=count)
        case _:
            return "gone", GoneView(run_id=change.run_id)


def live_list_view(rows: ListRows, counts: RunCounts, data: PageData) -> LiveListView:
    shown = rows_view(rows, data)
    return LiveListView(rows=shown.rows, more=shown.more, stats=counts_view(counts))
