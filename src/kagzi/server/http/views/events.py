"""The events of a run; docs/reference/events.md describes them."""

from typing import Annotated, Any

import msgspec

from ....core.error_details import ErrorKind
from ....core.events import LAST_SEQ, EventKind
from ....core.states import RunStatus
from ..route import Input
from .common import Moment


class EventErrorView(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    message: str
    kind: ErrorKind
    exhausted: bool
    text: str


class EventView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event. Fields that do not apply are left out."""

    kind: EventKind
    run_id: str
    seq: int
    at: Moment
    step: str | None = None
    name: str | None = None
    attempt: int | None = None
    output: Any = None
    error: EventErrorView | None = None
    until: Moment | None = None
    child_run_id: str | None = None
    continued_as: str | None = None


class StandingView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of the run. Fields that do not apply are left out."""

    status: RunStatus
    progress: float | None = None
    state_at: Moment | None = None
    status_text: str | None = None
    pause_requested: bool = False
    cancel_requested: bool = False
    pause_reason: str | None = None


class EventsView(msgspec.Struct, frozen=True, kw_only=True):
    """The events after `after` of the request, up to a limit. `after`: where to continue. `ended`: the run has ended,
    and these are its last events."""

    run_id: str
    standing: StandingView
    events: tuple[EventView, ...]
    after: int
    ended: bool


class EventsQuery(Input, frozen=True, kw_only=True):
    """`after`: the last known `seq`; Last-Event-ID takes precedence. `payloads`: include the values of results."""

    after: Annotated[int, msgspec.Meta(ge=0, le=LAST_SEQ)] = 0
    payloads: bool = True
