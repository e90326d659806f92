"""Which exporter a server sends its spans with."""

import os

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from kagzi.otel import OtlpExporter
from kagzi.server.tracing.exporter import exporter_to


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that others have set."""
    for name in list(os.environ):
        if name.startswith("OTEL_") or name.lower().endswith("_proxy") or name.endswith("_CA_BUNDLE"):
            monkeypatch.delenv(name)


def test_the_own_exporter_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "key=1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://elsewhere:4318")
    monkeypatch.setenv("NO_PROXY", "localhost")
    assert type(exporter_to("http://127.0.0.1:4318/v1/traces")) is OtlpExporter


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "gzip"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "ca.pem"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "3"),
        ("HTTPS_PROXY", "http://proxy:3128"),
        ("REQUESTS_CA_BUNDLE", "ca.pem"),
    ],
)
def test_what_only_the_one_of_opentelemetry_has_is_its_to_do(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert type(exporter_to("http://127.0.0.1:4318/v1/traces")) is OTLPSpanExporter
