"""Spans that cost little: a few values, which become a record or bytes when they end.

The SDK's span copies and checks every attribute, asks the sampler and takes locks, which costs more than the rest of a
small step. Kagzi's own attributes need no check, and whether a run is traced is decided once. Most spans are sent as
they began, encoded directly as bytes if the exporter is Kagzi's own; one with additions becomes an ordinary span.
"""

import traceback
from collections.abc import Mapping, Sequence
from time import time_ns  # noqa: TID251  wall-clock time, as in the spans of user code
from typing import TYPE_CHECKING, Any, NamedTuple

from opentelemetry import trace as api
from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from .attributes import Attributes
from .emission import Sink
from .pending import KAGZI_SCOPE

if TYPE_CHECKING:
    from opentelemetry.util.types import Attributes as OtelAttributes
    from opentelemetry.util.types import AttributeValue

EXCEPTION = "exception"
SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_UNSET = Status(StatusCode.UNSET)


class Description(NamedTuple):
    """What a span contains when it begins."""

    name: str
    kind: SpanKind
    parent: SpanContext | None
    attributes: Attributes


class _Additions:
    """What was added to a span after it began."""

    status = _UNSET
    links: Sequence[Link] = ()
    events: Sequence[Event] = ()
    attributes: Any = None  # all attributes of the span, checked
    name: str | None = None


class LightSpan(api.Span):
    """A span from its creation until `end`, which passes it on. Its subclass provides the contents when needed:
    `describe`, `make_context` and, if it `has_form`, `encode`: the same as bytes."""

    __slots__ = ("_additions", "_context", "_has_ended", "end_ns", "sink", "start_ns")

    has_form = True
    part: Any = None  # of an attempt: what it has in common with others

    def __init__(self, sink: Sink, start_ns: int | None = None) -> None:
        self.sink = sink
        self.start_ns = time_ns() if start_ns is None else start_ns
        self.end_ns = 0
        self._additions: _Additions | None = None
        self._context: SpanContext | None = None
        self._has_ended = False

    def describe(self) -> Description:
        raise NotImplementedError

    def encode(self) -> bytes:
        """Called after its end, for spans that can be encoded directly."""
        raise NotImplementedError

    def make_context(self) -> SpanContext:
        raise NotImplementedError

    def get_span_context(self) -> SpanContext:
        context = self._context
        if context is None:
            context = self._context = self.make_context()
        return context

    def is_recording(self) -> bool:
        return not self._has_ended

    def end(self, end_time: int | None = None) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        self.end_ns = time_ns() if end_time is None else end_time
        encoded = self.sink.encoded
        if encoded is None or self._additions is not None or not self.has_form:
            self.sink.emit(self._readable(self.end_ns))
        else:
            encoded.add_ended(self)

    def _readable(self, end_ns: int) -> ReadableSpan:
        name, kind, parent, attributes = self.describe()
        added = self._additions or _Additions()
        return ReadableSpan(
            added.name or name,
            self.get_span_context(),
            parent,
            self.sink.resource,
            added.attributes or attributes,
            added.events,
            added.links,
            kind,
            None,
            added.status,
            self.start_ns,
            end_ns,
            KAGZI_SCOPE,
        )

    # --- additions by the code of a step ------------------------------------------------------------------------------

    @property
    def _added(self) -> _Additions:
        if self._additions is None:
            self._additions = _Additions()
        return self._additions

    def set_attribute(self, key: str, value: "AttributeValue") -> None:
        self.set_attributes({key: value})

    def set_attributes(self, attributes: "Mapping[str, AttributeValue]") -> None:
        """Checks them as the SDK does."""
        if self._has_ended:
            return
        added = self._added
        if added.attributes is None:
            own: Any = self.describe().attributes
            added.attributes = BoundedAttributes(attributes=own, immutable=False)
        for key, value in attributes.items():
            added.attributes[key] = value

    def add_event(self, name: str, attributes: "OtelAttributes" = None, timestamp: int | None = None) -> None:
        if not self._has_ended:
            added = self._added
            added.events = (*added.events, Event(name, BoundedAttributes(attributes=attributes), timestamp))

    def add_link(self, context: SpanContext, attributes: "OtelAttributes" = None) -> None:
        if not self._has_ended:
            added = self._added
            added.links = (*added.links, Link(context, BoundedAttributes(attributes=attributes)))

    def update_name(self, name: str) -> None:
        if not self._has_ended:
            self._added.name = name

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:
        """Like the SDK: OK is final, and no status returns to UNSET."""
        status = status if isinstance(status, Status) else Status(status, description)
        if self._has_ended or status.is_unset:
            return
        added = self._added
        if added.status.status_code is not StatusCode.OK:
            added.status = status

    def record_exception(
        self,
        exception: BaseException,
        attributes: "OtelAttributes" = None,
        timestamp: int | None = None,
        escaped: bool = False,
    ) -> None:
        kind = type(exception)
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        described: dict[str, Any] = {
            "exception.type": name,
            "exception.message": str(exception),
            "exception.stacktrace": "".join(traceback.format_exception(exception)),
            "exception.escaped": str(escaped),
        }
        self.add_event(EXCEPTION, described | dict(attributes or {}), timestamp)
