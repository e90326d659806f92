"""What Kagzi does for traces, without a server and a network: `python -m tests.sdk.tracing.measure_spans [ROUNDS]`. CPU
time of the thread, the lowest of the rounds: of a start, of a stretch without its attempts, and of an attempt."""

import asyncio
import sys
import time

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from kagzi.otel import OtlpExporter
from kagzi.sdk.tracing.spans import Tracing
from kagzi.v1 import worker_pb2, workflow_pb2

RUNS, STEPS, TURN_RUNS = 300, 10, 10
STEP_IDS = [f"charge#{number}" for number in range(STEPS)]
RUN_IDS = [f"01a1e504-b1a4-7902-bc69-{number:012x}" for number in range(RUNS)]


def send_nowhere(_exporter: OtlpExporter, _data: bytes) -> str:
    return ""


async def start_runs(tracing: Tracing) -> list[bytes]:
    """Returns the contexts of the runs."""
    contexts: list[bytes] = []
    for run_id in RUN_IDS:
        span = tracing.start("default", "order", None)
        context = span.written_into(None)
        assert context is not None
        contexts.append(context.data)
        response: asyncio.Future[workflow_pb2.StartWorkflowResponse] = asyncio.get_running_loop().create_future()
        response.set_result(workflow_pb2.StartWorkflowResponse(run_id=run_id, workflow_id=run_id))
        await span.of(response)
    return contexts


async def execute(tracing: Tracing, contexts: list[bytes], steps: int) -> float:
    """Microseconds of a run with so many steps. As in a worker, the event loop has a turn now and then."""
    tasks = [
        worker_pb2.Task(
            run_id=run_id,
            namespace_id="default",
            workflow_type="order",
            workflow_id=run_id,
            version="1",
            context={"data": context},
            lease={"counter": 1},
            claimed_at_us=1,
        )
        for run_id, context in zip(RUN_IDS, contexts, strict=True)
    ]
    began_ns = time.thread_time_ns()
    for number, task in enumerate(tasks):
        stretch = tracing.stretch(task, "worker-1", encoded=False)
        for step_id in STEP_IDS[:steps]:
            stretch.enter(step_id, "charge", 1).leave()
            stretch.finish(step_id)
        stretch.ended()
        stretch.leave()
        if number % TURN_RUNS == 0:
            await asyncio.sleep(0)
    await asyncio.sleep(0)
    return (time.thread_time_ns() - began_ns) / RUNS / 1_000


def main(rounds: int) -> None:
    provider = TracerProvider()
    setattr(OtlpExporter, "_send", send_nowhere)  # noqa: B010  a subclass would be given spans, not bytes
    provider.add_span_processor(BatchSpanProcessor(OtlpExporter("http://collector")))
    tracing = Tracing.on(provider)
    assert tracing is not None
    start_us = whole_us = one_us = float("inf")
    for _ in range(rounds):
        began_ns = time.thread_time_ns()
        contexts = asyncio.run(start_runs(tracing))
        start_us = min(start_us, (time.thread_time_ns() - began_ns) / RUNS / 1_000)
        whole_us = min(whole_us, asyncio.run(execute(tracing, contexts, STEPS)))
        provider.force_flush()
        one_us = min(one_us, asyncio.run(execute(tracing, contexts, 1)))
        provider.force_flush()
    attempt_us = (whole_us - one_us) / (STEPS - 1)
    print(f"start {start_us:.1f} us, stretch {one_us - attempt_us:.1f} us, attempt {attempt_us:.2f} us")
    print(f"a run of {STEPS} steps, per step: {(start_us + whole_us) / STEPS:.2f} us")
    provider.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
