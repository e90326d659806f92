"""Selects the span exporter of a server. Needs OpenTelemetry."""

import os
from urllib.request import getproxies

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExporter

from ...otel import OtlpExporter

_PREFIX = "OTEL_EXPORTER_OTLP_"
_KNOWN = ("HEADERS", "ENDPOINT", "PROTOCOL")  # Kagzi's exporter reads the first; --otlp sets the others
_OF_REQUESTS = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def exporter_to(endpoint: str) -> SpanExporter:
    """Kagzi's own exporter, which needs a fraction of the CPU. OpenTelemetry's if the environment uses features that
    only it has: compression, certificates, another timeout, a proxy."""
    needs_other = any(name.startswith(_PREFIX) and not name.endswith(_KNOWN) for name in os.environ)
    proxies = getproxies().keys() - {"no"}
    if needs_other or proxies or any(name in os.environ for name in _OF_REQUESTS):
        return OTLPSpanExporter(endpoint=endpoint)
    return OtlpExporter(endpoint)
