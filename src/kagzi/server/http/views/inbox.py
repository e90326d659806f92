"""Runs that wait for a signal from people."""

import msgspec

from ....core.pages.signal_waits import SignalWait
from ....core.records import RunRecord
from ..page_data import PageData
from ..payloads import payload_view
from .common import Moment, PageQuery, View, moment
from .runs import RunView, run_view


class InboxQuery(PageQuery, frozen=True, kw_only=True):
    """`workflow`: only these types."""

    workflow: tuple[str, ...] = ()


class SignalWaitView(View, frozen=True, kw_only=True):
    """A step that waits for a signal. `expires_at`: when the wait times out. `schema`: JSON Schema of the value; null
    if unknown."""

    step_id: str
    signal: str
    since: Moment
    expires_at: Moment | None
    schema: msgspec.Raw


class InboxRow(View, frozen=True, kw_only=True):
    """A run and at most 10 signals that it waits for, oldest first. `waits` is empty if the page has no
    space left for it: then get the run itself."""

    run: RunView
    waits: tuple[SignalWaitView, ...]


def inbox_row(run: RunRecord, waits: tuple[SignalWait, ...], data: PageData) -> InboxRow:
    return InboxRow(run=run_view(run, data), waits=tuple(map(_wait_view, waits)))


def _wait_view(wait: SignalWait) -> SignalWaitView:
    return SignalWaitView(
        step_id=wait.step_id,
        signal=wait.signal,
        since=moment(wait.since) or "",
        expires_at=moment(wait.until),
        schema=payload_view(wait.schema),
    )
