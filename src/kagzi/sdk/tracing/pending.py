"""Encoded spans that wait for an exporter that sends bytes.

They do not pass through the queue of a span processor one by one: that costs a lock for each, and keeps an object for
each that the garbage collector has to visit. A single entry in that queue stands for all of them, so the guarantees of
the processor apply to them as well: when it sends, flushes and shuts down.
"""

import logging
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, TraceFlags

from ...core.version import __version__
from .attributes import SCOPE
from .encoding import encode_group, encode_span, encode_spans
from .forms import Ended, write_spans

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

KAGZI_SCOPE = InstrumentationScope(SCOPE, __version__)
REQUEST_SPANS = 4_096
"""The spans of one request: about a megabyte."""
SEND_AT = 2 * REQUEST_SPANS
"""This many are sent without waiting for the processor, which sends every 5 s."""
PENDING_SPANS = 65_536
"""Spans beyond this are dropped: about 20 MB."""

_log = logging.getLogger("kagzi.otel")
_ANY = SpanContext(1, 1, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
_exporters: set[type] = set()


def takes_encoded(exporter: type) -> None:
    """Exporters of exactly this type receive EncodedSpans: they use `encode_requests`."""
    _exporters.add(exporter)


def pending_of(processor: SpanProcessor, exporter: object, resource: "Resource") -> "EncodedSpans | None":
    """The spans that wait for this exporter, the same object for every caller; None if it does not accept them."""
    if type(exporter) not in _exporters:
        return None
    known: dict[tuple[int, int], EncodedSpans] = vars(exporter).setdefault("encoded_spans", {})
    key = id(processor), id(resource)
    if key not in known:
        known[key] = EncodedSpans(processor.on_end, exporter, resource)
    return known[key]


class EncodedSpans(ReadableSpan):
    """All pending spans. Adding one never blocks: the span is appended first, and then the entry is queued if needed;
    the sender removes the entry first, and then takes the spans. `ended`: spans that have ended and are not encoded
    yet; they are encoded once there are `encode_at`, so that few objects are kept."""

    encode_at = 128

    def __init__(self, on_end: Callable[[ReadableSpan], None], exporter: Any, resource: "Resource") -> None:
        super().__init__("spans", _ANY, resource=resource, instrumentation_scope=KAGZI_SCOPE)
        self._on_end = on_end
        self._exporter = exporter
        self._spans: deque[bytes] = deque()
        self.ended: deque[Ended] = deque()
        self._encoding = threading.RLock()  # the sender waits while another thread encodes
        self.is_queued = False
        self._is_sending = False
        self._dropped = 0
        _forget_after_fork(self)

    def __call__(self, span: ReadableSpan) -> None:
        """Add a span that is not encoded yet."""
        self.add(encode_span(span))

    def add(self, span: bytes) -> None:
        spans = self._spans
        spans.append(span)
        if not self.is_queued:
            self.is_queued = True
            self._on_end(self)
        elif len(spans) >= SEND_AT:
            self._send_early()

    def add_ended(self, span: Ended) -> None:
        """Add a span that is encoded together with others."""
        self.ended.append(span)
        self.was_added()

    def was_added(self) -> None:
        """Must be called when the first span was appended to `ended`, and when there are many."""
        if not self.is_queued:
            self.is_queued = True
            self._on_end(self)
        if len(self.ended) >= self.encode_at and self._encoding.acquire(blocking=False):
            try:
                self._encode()
            finally:
                self._encoding.release()

    def _encode(self) -> None:
        write_spans(self.ended, self._spans)
        if len(self._spans) >= SEND_AT:
            self._send_early()

    def take(self) -> list[bytes]:
        """Take all spans, for the exporter."""
        self.is_queued = False
        with self._encoding:
            self._encode()
        spans, dropped = self._spans, self._dropped
        self._dropped = 0
        if dropped:
            _log.warning("%d spans were dropped: they were made faster than they could be sent.", dropped)
        taken: list[bytes] = []
        with suppress(IndexError):  # spans may be dropped meanwhile
            for _ in range(len(spans)):
                taken.append(spans.popleft())  # noqa: PERF401  keeps what was taken before an error
        return taken

    def forget(self) -> None:
        self._spans, self.ended, self._encoding = deque(), deque(), threading.RLock()
        self.is_queued = self._is_sending = False

    def _send_early(self) -> None:
        spans = self._spans
        if len(spans) > PENDING_SPANS:
            while len(spans) > PENDING_SPANS:
                spans.pop()
                self._dropped += 1
        elif not self._is_sending:
            self._is_sending = True
            threading.Thread(target=self._send, name="kagzi-spans", daemon=True).start()

    def _send(self) -> None:
        try:
            self._exporter.export((self,))
        finally:
            self._is_sending = False


def encode_requests(spans: Iterable[ReadableSpan]) -> Iterator[tuple[int, bytes]]:
    """ExportTraceServiceRequests, each with its number of spans."""
    others: list[ReadableSpan] = []
    for each in spans:
        if not isinstance(each, EncodedSpans):
            others.append(each)
            continue
        taken = each.take()
        for first in range(0, len(taken), REQUEST_SPANS):
            part = taken[first : first + REQUEST_SPANS]
            yield len(part), encode_group(each.resource, KAGZI_SCOPE, part)
    if others:
        yield len(others), encode_spans(others)


def _forget_after_fork(spans: EncodedSpans) -> None:
    """In a forked process: the parent sends its spans."""
    known = weakref.ref(spans)

    def forget() -> None:
        here = known()
        if here is not None:
            here.forget()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)
