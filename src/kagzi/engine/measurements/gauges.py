"""Values that are read on demand from an assembled engine."""

from ...core.providers import Clock
from ...store.protocol import Store
from ..commit.journal import Journal
from ..matching.liveness import Liveness
from ..matching.sessions import Sessions
from .store_gauges import StoreGauges


def add_gauges(
    store: Store,
    clock: Clock,
    journal: Journal,
    sessions: Sessions,
    liveness: Liveness,
) -> StoreGauges:
    measurements = journal.measurements
    measurements.gauge("kagzi_journal_queue_operations", lambda: {(): journal.queued_operations})
    measurements.gauge("kagzi_journal_queue_bytes", lambda: {(): journal.queued_bytes})
    measurements.gauge("kagzi_sessions", lambda: {(): sessions.count})
    measurements.gauge(
        "kagzi_store_connections", lambda: {(state,): count for state, count in store.connections.items()}
    )
    return StoreGauges(store, clock=clock, measurements=measurements, alive_since=liveness.alive_since)
