"""Encoded spans that wait for an exporter that sends bytes.

They do not pass through the queue of a span processor one by one: that costs a lock for each, and keeps an object for
each that the garbage collector has to visit. A single entry in that queue stands for all of them, so the guarantees of
the processor apply to them as well: when it sends, flushes and shuts down.
"""

import asyncio
import logging
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

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
_TOGETHER = 512  # so many become one object

Chunk: TypeAlias = tuple[int, bytes]
"""Encoded spans: how many, and the bytes."""

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
    the sender removes the entry first, and then takes the spans.

    `ended`: spans that have ended and are not encoded yet. They are encoded in the next iteration of the event loop: by
    then a worker has sent the results of its steps, and would wait. Without an event loop, they are encoded once there
    are `encode_at`. `is_noted`: the entry is queued and the encoding is scheduled, so nothing is left to do for one
    more."""

    encode_at = 128

    def __init__(self, on_end: Callable[[ReadableSpan], None], exporter: Any, resource: "Resource") -> None:
        super().__init__("spans", _ANY, resource=resource, instrumentation_scope=KAGZI_SCOPE)
        self._on_end = on_end
        self._exporter = exporter
        self._chunks: list[Chunk] = []  # only used by the thread that has `_encoding`
        self._count = 0  # of the spans in them
        self.ended: deque[Ended] = deque()
        self._encoding = threading.RLock()  # the sender waits while another thread encodes
        self.is_queued = False
        self.is_noted = False
        self._is_sending = False
        self._dropped = 0
        _forget_after_fork(self)

    def __call__(self, span: ReadableSpan) -> None:
        """Add a span that is not encoded yet."""
        self.add_ended(_Encoded(encode_span(span)))

    def add_ended(self, span: Ended) -> None:
        """Add a span that is encoded together with others."""
        self.ended.append(span)
        if not self.is_noted:
            self.note()

    def note(self) -> None:
        """Must be called after a span was appended to `ended`, unless `is_noted`."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # a thread without one
            loop = None
        if loop is not None:
            self.is_noted = True  # before the entry is queued: from then on a sender may reset it
            loop.call_soon(self._encode_noted)
        if not self.is_queued:
            self.is_queued = True
            self._on_end(self)
        if loop is None and len(self.ended) >= self.encode_at:
            self._encode_unless_encoding()

    def _encode_noted(self) -> None:
        self.is_noted = False
        self._encode_unless_encoding()

    def _encode_unless_encoding(self) -> None:
        if self._encoding.acquire(blocking=False):
            try:
                self._encode()
                if self._count >= SEND_AT:
                    self._send_early()
            finally:
                self._encoding.release()

    def _encode(self) -> None:
        while self.ended:
            chunk = write_spans(self.ended, _TOGETHER)
            self._chunks.append(chunk)
            self._count += chunk[0]

    def take(self) -> "list[Chunk]":
        """Take all spans, for the exporter."""
        self.is_queued = self.is_noted = False
        with self._encoding:
            self._encode()
            taken, self._chunks, self._count = self._chunks, [], 0
            dropped, self._dropped = self._dropped, 0
        if dropped:
            _log.warning("%d spans were dropped: they were made faster than they could be sent.", dropped)
        return taken

    def forget(self) -> None:
        self._chunks, self._count = [], 0
        self.ended, self._encoding = deque(), threading.RLock()
        self.is_queued = self.is_noted = self._is_sending = False

    def _send_early(self) -> None:
        if self._count > PENDING_SPANS:
            while self._count > PENDING_SPANS:
                count, _ = self._chunks.pop()
                self._count -= count
                self._dropped += count
        elif not self._is_sending:
            self._is_sending = True
            threading.Thread(target=self._send, name="kagzi-spans", daemon=True).start()

    def _send(self) -> None:
        try:
            self._exporter.export((self,))
        finally:
            self._is_sending = False


class _Encoded:
    """A span that was encoded when it ended."""

    __slots__ = ("_data",)

    part = None

    def __init__(self, data: bytes) -> None:
        self._data = data

    def encode(self) -> bytes:
        return self._data


def encode_requests(spans: Iterable[ReadableSpan]) -> Iterator[Chunk]:
    """ExportTraceServiceRequests, each with its number of spans."""
    others: list[ReadableSpan] = []
    for each in spans:
        if not isinstance(each, EncodedSpans):
            others.append(each)
            continue
        for count, chunks in _requests(each.take()):
            yield count, encode_group(each.resource, KAGZI_SCOPE, chunks)
    if others:
        yield len(others), encode_spans(others)


def _requests(chunks: list[Chunk]) -> Iterator[tuple[int, list[bytes]]]:
    """The chunks of each request, with the number of spans."""
    count, taken = 0, list[bytes]()
    for more, data in chunks:
        if taken and count + more > REQUEST_SPANS:
            yield count, taken
            count, taken = 0, []
        count += more
        taken.append(data)
    if taken:
        yield count, taken


def _forget_after_fork(spans: EncodedSpans) -> None:
    """In a forked process: the parent sends its spans."""
    known = weakref.ref(spans)

    def forget() -> None:
        here = known()
        if here is not None:
            here.forget()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)
