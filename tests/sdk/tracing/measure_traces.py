"""What traces cost: `python -m tests.sdk.tracing.measure_traces [ROUNDS]`. CPU time of one process per step of W1, the
lowest of the rounds: server, worker, client and exporter together, on SQLite; the collector is another process. For
each process by itself, see `python -m bench.guarded --only traces`."""

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable

from opentelemetry import trace as otel
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased

from bench.guarded import collecting
from kagzi import Context, Kagzi, Worker, workflow
from kagzi.otel import OtlpExporter

STEPS, RUNS, BATCHES = 10, 100, 4


async def nothing() -> int:
    return 1


@workflow
async def w1(ctx: Context) -> int:
    for _ in range(STEPS):
        await ctx.step("nothing").run(nothing)
    return 1


def provider(url: str, *, own: bool, sampled: bool) -> TracerProvider:
    made = TracerProvider(sampler=ParentBased(ALWAYS_ON if sampled else ALWAYS_OFF))
    exporter = OtlpExporter(url) if own else OTLPSpanExporter(endpoint=f"{url}/v1/traces")
    made.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=65_536))
    return made


async def us_per_step(address: str, made: TracerProvider | None) -> float:
    setattr(otel, "get_tracer_provider", lambda: made)  # noqa: B010  it is set for one measurement after the other
    async with Kagzi.connect(address) as client, Worker(address, workflows=[w1]):

        async def one() -> None:
            await (await client.start(w1)).result()

        await asyncio.gather(*(one() for _ in range(RUNS)))
        began_s = time.process_time()
        for _ in range(BATCHES):
            await asyncio.gather(*(one() for _ in range(RUNS)))
        if made is not None:
            await asyncio.to_thread(made.force_flush)
        took_s = time.process_time() - began_s
    if made is not None:
        made.shutdown()
    return took_s / (BATCHES * RUNS * STEPS) * 1e6


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, collecting() as url:
        kinds: dict[str, Callable[[], TracerProvider | None]] = {
            "no spans": lambda: None,
            "sampled out": lambda: provider(url, own=False, sampled=False),
            "OTLPSpanExporter": lambda: provider(url, own=False, sampled=True),
            "kagzi.otel.OtlpExporter": lambda: provider(url, own=True, sampled=True),
        }
        lowest = dict.fromkeys(kinds, float("inf"))
        for _ in range(rounds):
            for name, make in kinds.items():
                us = asyncio.run(us_per_step(f"sqlite:///{folder}/kagzi.db", make()))
                lowest[name] = min(lowest[name], us)
    for name, us in lowest.items():
        print(f"{name:25} {us:6.0f} us a step")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
