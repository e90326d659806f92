"""Workflows whose spans are looked at. A process with KAGZI_TEST_OTLP sends its spans there; one with KAGZI_TEST_HANGS
never comes to the end of `pack`."""

import asyncio
import logging
import os
from datetime import timedelta

from opentelemetry import trace as otel
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from kagzi import Context, Retry, Signal, workflow
from kagzi.otel import OtlpExporter
from kagzi.sdk.worker.log_context import current_fields

SOON = Retry(initial_interval=timedelta(milliseconds=1))
APPROVED = Signal("approved", bool)
charges: list[str] = []


def provider_to(url: str, *, own: bool = False) -> TracerProvider:
    """With OpenTelemetry's exporter, or with Kagzi's own."""
    provider = TracerProvider()
    exporter = OtlpExporter(url) if own else OTLPSpanExporter(endpoint=f"{url}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=50))
    return provider


if url := os.environ.get("KAGZI_TEST_OTLP"):
    otel.set_tracer_provider(provider_to(url))


def logged_trace() -> str:
    return current_fields().get("trace_id", "")


async def charge(card: str) -> str:
    charges.append(logged_trace())
    with otel.get_tracer_provider().get_tracer("app").start_as_current_span("insert payment"):
        logging.getLogger("app").debug("charging")
    if len(charges) == 1:
        raise ConnectionError("the bank is away")
    return logged_trace()


async def pack() -> str:
    if "KAGZI_TEST_HANGS" in os.environ:
        await asyncio.Event().wait()
    return logged_trace()


def ship() -> str:
    return logged_trace()


@workflow
async def delivery(ctx: Context, card: str) -> str:
    return await ctx.step("ship").run(ship)


@workflow
async def order(ctx: Context, card: str) -> list[str]:
    charged = await ctx.step("charge").retry(SOON).run(charge, card)
    await ctx.sleep("night", "8 hours")
    packed = await ctx.step("pack").run(pack)
    return [charged, packed, await ctx.child(delivery, card)]


@workflow
async def long_order(ctx: Context, rounds: int) -> None:
    """Something of everything, in several claims; then another round."""
    for number in range(3):
        await ctx.step(f"item {number}").run(ship)
    approved = await ctx.wait_for(APPROVED)
    await ctx.step("approved" if approved else "refused").run(ship)
    await ctx.child(delivery, "")
    await ctx.sleep("night", "8 hours")
    await ctx.step("pack").run(pack)
    if rounds > 1:
        ctx.continue_as_new(rounds - 1)
