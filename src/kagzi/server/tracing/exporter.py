"""Selects the span exporter of a server. Needs OpenTelemetry."""

import os
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExporter

from ...otel import OtlpExporter

_PREFIX = "OTEL_EXPORTER_OTLP_"
_KNOWN = ("HEADERS", "ENDPOINT", "PROTOCOL")  # Kagzi's exporter reads the first; --otlp sets the others
_OF_REQUESTS = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def exporter_to(endpoint: str) -> SpanExporter:
    """Kagzi's own exporter, which needs a fraction of the CPU. OpenTelemetry's if the environment has settings for this
    endpoint that only it follows: compression, certificates, another timeout, a proxy."""
    parts = urlsplit(endpoint)
    needs_other = any(name.startswith(_PREFIX) and not name.endswith(_KNOWN) for name in os.environ)
    has_proxy = bool({parts.scheme, "all"} & getproxies().keys()) and not proxy_bypass(parts.netloc.rpartition("@")[2])
    has_certificates = parts.scheme == "https" and any(name in os.environ for name in _OF_REQUESTS)
    if needs_other or has_proxy or has_certificates:
        return OTLPSpanExporter(endpoint=endpoint)
    return OtlpExporter(endpoint)
