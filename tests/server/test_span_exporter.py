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


_CLEAR, _SECURE = "http://127.0.0.1:4318/v1/traces", "https://127.0.0.1:4318/v1/traces"


def test_the_own_exporter_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "key=1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://elsewhere:4318")
    monkeypatch.setenv("NO_PROXY", "localhost")
    assert type(exporter_to(_CLEAR)) is OtlpExporter
    assert type(exporter_to(_SECURE)) is OtlpExporter


@pytest.mark.parametrize(
    ("name", "value", "endpoint"),
    [
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", _CLEAR),
        ("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "gzip", _CLEAR),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "ca.pem", _CLEAR),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "3", _CLEAR),
        ("HTTP_PROXY", "http://proxy:3128", _CLEAR),
        ("HTTPS_PROXY", "http://proxy:3128", _SECURE),
        ("ALL_PROXY", "http://proxy:3128", _CLEAR),
        ("REQUESTS_CA_BUNDLE", "ca.pem", _SECURE),
        ("CURL_CA_BUNDLE", "ca.pem", _SECURE),
    ],
)
def test_what_only_the_one_of_opentelemetry_has_is_its_to_do(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, endpoint: str
) -> None:
    monkeypatch.setenv(name, value)
    assert type(exporter_to(endpoint)) is OTLPSpanExporter


@pytest.mark.parametrize(
    ("name", "value"),
    [("HTTPS_PROXY", "http://proxy:3128"), ("REQUESTS_CA_BUNDLE", "ca.pem"), ("CURL_CA_BUNDLE", "ca.pem")],
)
def test_settings_for_other_endpoints_do_not_matter(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    assert type(exporter_to(_CLEAR)) is OtlpExporter


def test_a_proxy_that_is_not_for_this_host_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")
    assert type(exporter_to(_CLEAR)) is OtlpExporter
