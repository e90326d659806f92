"""The workflows of `kagzi bench` in a worker that sends a span for every step to a collector."""

import os

from opentelemetry import trace as otel
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from kagzi.cli.bench.flows import *  # noqa: F403  the worker registers what it finds here
from kagzi.otel import OtlpExporter

COLLECTOR = "KAGZI_BENCH_COLLECTOR"
"""The environment variable with the collector's address, for a worker."""


def provider_to(collector: str) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OtlpExporter(collector)))
    return provider


if url := os.environ.get(COLLECTOR):
    otel.set_tracer_provider(provider_to(url))
