"""Live streams of runs."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, NamedTuple, TypeVar

from ....core.access import Scope
from ....core.errors import InvalidArgument
from ....core.events import LAST_SEQ, EventKind, RunEvent, RunMark, event_view, standing_view
from ....core.limits import HISTORY_PAGE_BYTES, KIB
from ....engine import ListChange, ListRows, WatchUpdate
from ..payloads import payload_view
from ..route import JSON, ApiRequest, Route
from ..run_names import run_id_of
from ..sse import EventStream, event
from ..views.events import EventsQuery, EventsView
from ..views.lists import LiveListView, LiveQuery, change_view, counts_view, live_list_view
from ..views.runs import filter_of, labels_of

STATS_S = 5.0
FRAMES_KEPT = 512
FRAME_BYTES = 4 * KIB
Item = TypeVar("Item")


class _Request(NamedTuple):
    """`started`: whether the caller already has the event of the start, whose number is 0."""

    run_id: str
    after: int
    started: bool
    payloads: bool

    def unknown(self, update: WatchUpdate) -> list[RunEvent]:
        return [each for each in update.events if each.kind is not EventKind.RUN_STARTED or not self.started]

    def view(self, each: RunEvent) -> dict[str, Any]:
        return event_view(each, self.run_id, payload_view if self.payloads else None)


class _Frames:
    """Caches the encoded frame of each event: all who watch a run receive the same event objects."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, bool], tuple[RunEvent, bytes]] = {}  # by id(), valid while the event is kept

    def get(self, each: RunEvent, wanted: _Request) -> bytes:
        key = (id(each), wanted.payloads)
        known = self._known.get(key)
        if known is not None:
            return known[1]
        frame = event(each.kind, wanted.view(each), seq=each.seq)
        small = each.error is None and (each.output is None or len(each.output.data) <= FRAME_BYTES)
        if small and len(frame) <= FRAME_BYTES:
            if len(self._known) >= FRAMES_KEPT:
                del self._known[next(iter(self._known))]
            self._known[key] = (each, frame)
        return frame


_frames_known = _Frames()


async def events(request: ApiRequest[EventsQuery, None]) -> Any:
    """All events of the run after `after`, then new ones as they happen, until the run has ended: server-sent events
    with `id` (the seq), `event` (the kind) and `data`, and finally `event: end`. A client that reconnects with
    Last-Event-ID, to any server, misses nothing and receives nothing twice. With `Accept: application/json`: the
    current events, once."""
    wanted = _Request(await run_id_of(request), *_place(request), request.query.payloads)
    watch = request.data.engine.watching.watch(request.namespace, wanted.run_id, wanted.after)
    if JSON not in request.headers.get("accept", ""):
        return EventStream(_frames(watch, wanted))
    async with aclosing(watch) as updates:
        return _once(await anext(updates), wanted)


def _place(request: ApiRequest[EventsQuery, None]) -> tuple[int, bool]:
    """Where to continue, and whether the caller already has the start."""
    last_id = request.headers.get("last-event-id", "")
    if not last_id:
        after = request.query.after
    elif last_id.isascii() and last_id.isdigit() and len(last_id) < len(str(LAST_SEQ)):
        after = int(last_id)
    else:
        raise InvalidArgument(
            f"Last-Event-ID={last_id[:64]!r} is not the number of an event. Leave it out to get all of them.",
            field="Last-Event-ID",
        )
    return after, bool(last_id) or after > 0


def _once(update: WatchUpdate, wanted: _Request) -> EventsView:
    views: Any = tuple(wanted.view(each) for each in wanted.unknown(update))
    standing: Any = _standing(update.mark)
    return EventsView(
        run_id=wanted.run_id,
        standing=standing,
        events=views,
        after=max([wanted.after, *(each.seq for each in update.events)]),
        ended=update.mark.status.ended,
    )


async def _frames(watch: AsyncGenerator[WatchUpdate], wanted: _Request) -> AsyncGenerator[bytes]:
    last: dict[str, Any] = {}
    after = wanted.after
    mark: RunMark | None = None
    async with aclosing(watch) as updates:
        async for update in updates:
            mark = update.mark
            after = max([after, *(each.seq for each in update.events)])
            standing = _standing(mark)
            frames = [_frames_known.get(each, wanted) for each in wanted.unknown(update)]
            if standing != last and not mark.status.ended:
                view = {"kind": "run_status", "run_id": wanted.run_id, "seq": after, **standing}
                frames.append(event("run_status", view))
            last = standing
            for frame in _joined(frames):
                yield frame
    if mark is not None:
        yield event("end", {"run_id": wanted.run_id, "seq": after, "status": mark.status})


def _joined(parts: list[bytes]) -> list[bytes]:
    """Joins events into larger parts, up to a limit."""
    frames: list[bytes] = []
    buffer = bytearray()
    for each in parts:
        buffer += each
        if len(buffer) >= HISTORY_PAGE_BYTES:
            frames.append(bytes(buffer))
            buffer.clear()
    return [*frames, bytes(buffer)] if buffer else frames


def _standing(mark: RunMark) -> dict[str, Any]:
    return standing_view(mark, mark.status, mark.progress, mark.state_at)


# --- lists ------------------------------------------------------------------------------------------------------------


async def list_events(request: ApiRequest[LiveQuery, None]) -> Any:
    """The first page of a list, then its changes: `rows` (the whole page), `row` (the new state of a row on it),
    `gone`, `new` (how many are not shown), and every 5 s `stats`. It is state, not a log: it cannot be resumed, and a
    new connection begins with `rows`. With `Accept: application/json`: the current state, once."""
    where = filter_of(request.query, labels_of(request.query.label))
    watch = request.data.engine.live_lists.watch(request.namespace, where, order=request.query.order)
    if JSON not in request.headers.get("accept", ""):
        return EventStream(_list_frames(watch, request))
    async with aclosing(watch) as changes:
        rows = await anext(changes)
    assert isinstance(rows, ListRows)
    return live_list_view(rows, await request.data.run_counts.get(request.namespace), request.data)


async def _list_frames(
    watch: AsyncGenerator[ListChange], request: ApiRequest[LiveQuery, None]
) -> AsyncGenerator[bytes]:
    async with aclosing(ticking(watch, STATS_S)) as changes:
        async for change in changes:
            if change is None:
                yield event("stats", counts_view(await request.data.run_counts.get(request.namespace)))
            else:
                yield event(*change_view(change, request.data))


async def ticking(source: AsyncGenerator[Item], every_s: float) -> AsyncGenerator[Item | None]:
    """Yields the items of the source, and None at the beginning and every `every_s` seconds."""
    loop = asyncio.get_running_loop()
    due_at: float | None = None
    async with aclosing(source):
        while True:
            following = asyncio.ensure_future(anext(source))
            try:
                while not following.done():
                    await asyncio.wait((following,), timeout=None if due_at is None else max(due_at - loop.time(), 0))
                    if due_at is not None and loop.time() >= due_at:
                        due_at += every_s
                        yield None
                yield following.result()
            except StopAsyncIteration:
                return
            finally:
                if not following.done():
                    following.cancel()
                    await asyncio.wait((following,))
            if due_at is None:  # the first item of the source comes first
                due_at = loop.time()


ROUTES = (
    Route(
        "GET",
        "/runs/events",
        list_events,
        Scope.READ,
        "Follow a list of runs",
        query=LiveQuery,
        answer=LiveListView,
        stream=True,
    ),
    Route(
        "GET",
        "/runs/{run}/events",
        events,
        Scope.READ,
        "Follow a run",
        query=EventsQuery,
        answer=EventsView,
        stream=True,
    ),
)
