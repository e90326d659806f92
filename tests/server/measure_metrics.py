"""What metrics cost: `python -m tests.server.measure_metrics`. CPU time in one process, the lowest of many samples."""

import asyncio
import time
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric as ClientMetric

from kagzi.core.effects import NO_EFFECTS
from kagzi.core.limits import Settings
from kagzi.core.records import Lease, Payload, RunKey, RunLease
from kagzi.core.run.commands import RecordStep
from kagzi.core.run.outcomes import Recorded
from kagzi.engine import Engine
from kagzi.engine.matching.lease_registry import Holding
from kagzi.engine.measurements.measurements import CAUSES, PAIRS, Measurements
from kagzi.server.metrics.catalogue import METRICS
from kagzi.server.metrics.exposition import exposition
from kagzi.store.protocol import NullBus
from kagzi.store.sqlite import SqliteStore
from kagzi.system import SystemClock, SystemIds, SystemRng

STEPS = 200


def lowest_us(act: Callable[[], object], samples: int) -> float:
    lowest = float("inf")
    for _ in range(samples):
        began_s = time.process_time()
        act()
        lowest = min(lowest, time.process_time() - began_s)
    return lowest * 1e6


def full() -> Measurements:
    """As many series as there can be by type."""
    measurements = Measurements()
    for number in range(PAIRS + 50):
        counts = measurements.of(f"namespace-{number % 60}", f"workflow-type-{number}")
        counts.started.update(CAUSES)
        counts.duration.observe(1.0)
        counts.wait.observe(1.0)
    return measurements


class Collector:
    """The same page by prometheus_client."""

    def __init__(self, measurements: Measurements) -> None:
        self._samples = measurements.samples()

    def collect(self) -> Iterator[ClientMetric]:
        for metric in METRICS:
            collected = ClientMetric(metric.name, metric.help, metric.kind)
            for values, value in self._samples.get(metric.name, ()):
                labels = dict(zip(metric.labels, values, strict=True))
                if not isinstance(value, tuple):
                    collected.add_sample(metric.name, labels, value)
                    continue
                for bound, count in zip((*metric.bounds, "+Inf"), value[0], strict=True):
                    collected.add_sample(f"{metric.name}_bucket", {**labels, "le": str(bound)}, count)
            yield collected


def page() -> None:
    measurements = full()
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector(measurements))
    text = exposition({"": measurements.samples()})
    own_us = lowest_us(lambda: exposition({"": measurements.samples()}), 20)
    client_us = lowest_us(lambda: generate_latest(registry), 5)
    print(
        f"page of {len(text.splitlines())} lines: {own_us / 1e3:.1f} ms; by prometheus_client {client_us / 1e3:.0f} ms"
    )


async def step() -> None:
    store = SqliteStore(":memory:", rng=SystemRng())
    await store.open()
    ids = SystemIds()
    settings = Settings()
    engine = Engine(
        store, NullBus(), clock=SystemClock(), ids=ids, rng=SystemRng(), settings=settings, server_id="measured"
    )
    commands: list[RecordStep] = []
    for _ in range(STEPS):
        leased = RunLease(RunKey("default", ids.token()), Lease(1, 1))
        engine._registry.add(Holding(leased, "hello", None, received=True))
        commands.append(RecordStep(run=leased.run, lease=leased.lease, step_id="a", name="a", output=Payload(b"1")))
    outcomes = [Recorded(1, 1)] * STEPS
    dispatcher = engine._dispatcher
    counting = dispatcher._handlers
    without = {kind: handler for kind, handler in counting.items() if kind is not Recorded}
    cost = dict.fromkeys(("with", "without"), float("inf"))
    for _ in range(300):
        for name, handlers in (("with", counting), ("without", without)):
            dispatcher._handlers = handlers
            cost[name] = min(cost[name], lowest_us(lambda: dispatcher.committed(commands, outcomes, NO_EFFECTS), 1))
    print(f"counting a step: {(cost['with'] - cost['without']) / STEPS:.2f} us")
    measurements = Measurements()
    commit_us = lowest_us(lambda: [measurements.committed(0.001, 50) for _ in range(1_000)], 20) / 1_000
    print(f"counting a commit: {commit_us:.2f} us")
    await store.close()


if __name__ == "__main__":
    page()
    asyncio.run(step())
