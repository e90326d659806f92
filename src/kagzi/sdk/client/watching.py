"""Events of a run, read from a stream that is resumed where it broke off."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any

import grpc.aio

from ...core.errors import KagziError
from ...core.events import EventKind, event_view, standing_view
from ...core.records import Payload, RunKey
from ...v1 import workflow_pb2 as pb
from ...wire.common import read_time_if
from ...wire.enums import RUN_STATUS_FROM_WIRE
from ...wire.events import read_event
from ..transport.connection import Connection
from ..transport.link import Link
from ..transport.tries import Tries
from ..transport.unreachable import Outage
from ..workflow.codec import ANY, read_payload

logger = logging.getLogger("kagzi.client")

OUTAGE_S = 300.0  # runs may be long, so watching survives long outages

Event = dict[str, Any]


class Watch:
    """The events of one run, each once, after `after`."""

    def __init__(self, connection: Connection, run: RunKey, after: int) -> None:
        self._connection = connection
        self._namespace = run.namespace
        self._run_id = run.run_id
        self._after = after
        self._started = after > 0  # whether the start has been yielded
        self._last_standing: Event = {}
        self._ended = False

    async def events(self) -> AsyncGenerator[Event]:
        """Yields events until the run has ended. Raises NotFound; Unavailable after minutes without a server."""
        with self._connection.tries(OUTAGE_S, stream=True) as tries:
            while not self._ended:
                link = self._connection.link
                tries.next_timeout_s()
                problem: KagziError | Outage = self._connection.broken("closed the stream")
                try:
                    async with aclosing(self._one_stream(link, tries)) as stream:
                        async for event in stream:
                            yield event
                except grpc.aio.AioRpcError as error:
                    problem = self._connection.problem_of(error)
                if self._ended:
                    return
                await self._connection.try_again(tries, link, problem)

    async def _one_stream(self, link: Link, tries: Tries) -> AsyncGenerator[Event]:
        request = pb.WatchRequest(namespace_id=self._namespace, run_id=self._run_id, after_seq=self._after)
        with link:
            call = link.workflows.Watch(request, metadata=link.metadata)
            try:
                while isinstance(response := await call.read(), pb.WatchResponse):
                    tries.succeeded()
                    for event in self._take_in(response):
                        yield event
            except asyncio.CancelledError:
                self._connection.raise_if_closed()
                raise
            finally:
                call.cancel()

    def _take_in(self, response: pb.WatchResponse) -> list[Event]:
        events: list[Event] = []
        for message in response.events:
            event = read_event(message)
            if event.kind is EventKind.RUN_STARTED:
                if self._started:
                    continue
                self._started = True
            elif event.seq <= self._after:
                continue
            self._after = max(self._after, event.seq)
            self._ended = self._ended or event.kind in _ENDINGS
            events.append(event_view(event, self._run_id, partial(_value, seq=event.seq)))
        progress = response.progress if response.HasField("progress") else None
        state_at = read_time_if(response, "state_at")
        standing = standing_view(response, RUN_STATUS_FROM_WIRE[response.status], progress, state_at)
        ended = RUN_STATUS_FROM_WIRE[response.status].ended
        if standing != self._last_standing and not ended:
            events.append({"kind": "run_status", "run_id": self._run_id, "seq": self._after, **standing})
        self._last_standing = standing
        if ended and not response.events:
            self._ended = True  # all events have been yielded
        return events


_ENDINGS = (EventKind.RUN_COMPLETED, EventKind.RUN_CONTINUED, EventKind.RUN_FAILED, EventKind.RUN_CANCELLED)


def _value(payload: Payload, *, seq: int) -> Any:
    return read_payload(ANY, payload, what=f"output in event {seq}")
