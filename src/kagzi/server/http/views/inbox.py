"""What waits for somebody to answer."""

import msgspec

from ....core.pages.signal_waits import SignalWait
from ....core.records import RunRecord
from ..page_data import PageData
from ..payloads import payload_view
from .common import Moment, PageQuery, View, moment
from .runs import RunView, run_view


class InboxQuery(PageQuery, frozen=True, kw_only=True):
    """`workflow`: of these types only."""

    workflow: tuple[str, ...] = ()


class SignalWaitView(View, frozen=True, kw_only=True):
    """A step that waits for a signal. `expires_at`: when it gives up. `schema`: JSON Schema of the value; null: none is
    known."""

    step_id: str
    signal: str
    since: Moment
    expires_at: Moment | None
    schema: msgspec.Raw


class InboxRow(View, frozen=True, kw_only=True):
    """A run and what it waits for, at most 10 signals, the oldest first. None: so much is before it on the page that
    its own page has to be asked."""

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
