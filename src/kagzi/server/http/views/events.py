"""Events of a run as they are told: the words of docs/reference/events.md."""

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
    """What happened. What an event does not have is left out."""

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
    """How the run stands. What it does not have is left out."""

    status: RunStatus
    progress: float | None = None
    state_at: Moment | None = None
    status_text: str | None = None
    pause_requested: bool = False
    cancel_requested: bool = False
    pause_reason: str | None = None


class EventsView(msgspec.Struct, frozen=True, kw_only=True):
    """Events after those that were asked for, as many as there are at once. `after`: where to go on. `ended`: with
    these it is over."""

    run_id: str
    standing: StandingView
    events: tuple[EventView, ...]
    after: int
    ended: bool


class EventsQuery(Input, frozen=True, kw_only=True):
    """`after`: the last `seq` that is known; Last-Event-ID goes before it. `payloads`: with values of results."""

    after: Annotated[int, msgspec.Meta(ge=0, le=LAST_SEQ)] = 0
    payloads: bool = True
