"""Sends spans to a collector with little CPU: `BatchSpanProcessor(OtlpExporter("http://collector:4318"))`. Needs the
extra `otel`."""

import http.client
import logging
import os
import ssl
import threading
from collections.abc import Mapping, Sequence
from urllib.parse import unquote, urlsplit

from .core.traces.endpoint import endpoint_of

try:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
except ImportError as error:
    raise ImportError("kagzi.otel needs the extra otel. Run: pip install 'kagzi[otel]'") from error

from .sdk.tracing.pending import encode_requests, takes_encoded

_log = logging.getLogger("kagzi.otel")

_HEADERS_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
_AGAIN = (429, 502, 503, 504)  # the statuses after which the protocol allows a retry
_FIRST_PAUSE_S = 0.5
_GOOD = range(200, 300)


class OtlpExporter(SpanExporter):
    """Exports spans by OTLP over HTTP, and encodes them with a quarter of the CPU that OpenTelemetry's own exporter
    needs. It supports neither compression nor proxies; if you need those, use `OTLPSpanExporter`.

    Args:
        url: The address of the collector, such as `http://collector:4318`.
        headers: Sent with each request, for example a key. Default: those of `OTEL_EXPORTER_OTLP_HEADERS`.
        timeout_s: How long sending a batch may take, including retries. After that the batch is dropped.

    Raises InvalidArgument if `url` is not an address.
    """

    def __init__(self, url: str, *, headers: Mapping[str, str] | None = None, timeout_s: float = 10.0) -> None:
        parts = urlsplit(endpoint_of(url, field="url"))
        self._secure = parts.scheme == "https"
        self._host = parts.netloc.rpartition("@")[2]
        self._path = parts.path + (f"?{parts.query}" if parts.query else "")
        own = _headers_of_environment() if headers is None else headers
        self._headers = {**own, "Content-Type": "application/x-protobuf", "User-Agent": "kagzi-otlp"}
        self._timeout_s = timeout_s
        self._connection: http.client.HTTPConnection | None = None
        self._closing = threading.Event()
        self._lock = threading.Lock()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch. Called by a span processor; blocks.

        Args:
            spans: The spans that have ended.
        """
        result = SpanExportResult.SUCCESS
        with self._lock:
            for count, data in encode_requests(spans):
                if problem := "it was shut down" if self._closing.is_set() else self._send(data):
                    _log.error("%d spans were not sent to %s: %s", count, self._host, problem)
                    result = SpanExportResult.FAILURE
        return result

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Do nothing: every batch is sent when it is exported.

        Args:
            timeout_millis: Not used.
        """
        return True

    def shutdown(self) -> None:
        """Abort the request in progress, and disconnect."""
        self._closing.set()
        with self._lock:
            self._disconnect()

    def _send(self, data: bytes) -> str:
        """Returns the error text, or an empty string if the collector accepted the spans."""
        pause_s, left_s = _FIRST_PAUSE_S, self._timeout_s
        while True:
            problem, again = self._try(data)
            if not problem or not again or left_s < pause_s or self._closing.wait(pause_s):
                return problem
            left_s, pause_s = left_s - pause_s, pause_s * 2

    def _try(self, data: bytes) -> tuple[str, bool]:
        """Returns the error text, and whether the request may be retried."""
        try:
            connection = self._connection = self._connection or self._connect()
            connection.request("POST", self._path, body=data, headers=self._headers)
            response = connection.getresponse()
            response.read()
        except (OSError, http.client.HTTPException) as error:
            self._disconnect()
            return str(error) or type(error).__name__, True
        if response.status in _GOOD:
            return "", False
        return f"HTTP {response.status} {response.reason}", response.status in _AGAIN

    def _connect(self) -> http.client.HTTPConnection:
        if self._secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, timeout=self._timeout_s, context=context)
        return http.client.HTTPConnection(self._host, timeout=self._timeout_s)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


takes_encoded(OtlpExporter)


def _headers_of_environment() -> dict[str, str]:
    """Headers as `name=value`, separated by commas and URL-encoded."""
    text = next((value for name in _HEADERS_VARIABLES if (value := os.environ.get(name))), "")
    pairs = (entry.partition("=") for entry in text.split(",") if "=" in entry)
    return {unquote(name.strip()).lower(): unquote(value.strip()) for name, _, value in pairs}
