"""The store on SQLite: passes each verb to the thread that runs it."""

from collections.abc import Sequence

from ...core.effects import NO_EFFECTS, Effects
from ...core.records import RunEnd, RunKey
from ...core.run.commands import Command
from ...core.run.outcomes import Outcome
from ...core.states import RunStatus
from ...core.times import Timestamp
from ..operate.audit import Audit
from ..operate.bulk import BulkOperations
from ..operate.counts import ListCounts
from ..operate.forgotten_steps import get_forgotten_step, list_forgotten_steps
from ..operate.gauges import Gauges
from ..operate.keys import Keys
from ..operate.signal_waits import read_signal_waits, read_unread_signals
from ..operate.step_logs import StepLogs
from ..operate.steps_by_id import runs_with_step
from ..operate.timeline import read_timeline
from ..operate.versions import Versions
from ..protocol import (
    Heartbeat,
    LeaseTerms,
    PendingWork,
    TypeKey,
)
from ..sessions import Purpose, scan, verb
from .claim import claims, leases, timers
from .connection.connections import Connections
from .connection.inline import OPERATIONS, is_small
from .connection.session import on_database, on_writer
from .operate.namespaces import SqliteNamespaces
from .operate.queues import SqliteQueues
from .operate.retention import SqliteRetention
from .operate.schedules import SqliteSchedules
from .operate.stats import SqliteStats
from .operate.transfers import SqliteTransfers
from .operate.workers import SqliteWorkers
from .run import control, retry_and_fork, signal_changes, steps, wakes
from .run import runs as run_rows
from .run.watching import SqliteEvents
from .write import children, signals
from .write.write import write


class SqliteStore(
    SqliteTransfers,
    BulkOperations,
    Keys,
    Audit,
    SqliteNamespaces,
    SqliteStats,
    StepLogs,
    SqliteSchedules,
    SqliteRetention,
    SqliteWorkers,
    Versions,
    SqliteEvents,
    SqliteQueues,
    ListCounts,
    Gauges,
    Connections,
):
    """Implements `store.protocol.Store` with one SQLite file, or in memory."""

    name: str = "sqlite"
    start_batches: int = 1

    # --- hot ---------------------------------------------------------------------------------------------------------

    async def write(
        self, batch: Sequence[Command], now: Timestamp, terms: LeaseTerms
    ) -> tuple[Sequence[Outcome], Effects]:
        if not batch:
            return [], NO_EFFECTS
        return await self._write(lambda writer: write(writer, batch, now, terms), small=is_small(batch))

    async def poll(self, heartbeats: Sequence[Heartbeat], now: Timestamp, after: TypeKey | None = None) -> PendingWork:
        await self._check_files()
        if heartbeats:
            await self._change(timers.note_heartbeats, heartbeats)
        return await self._read(timers.poll, after)

    claim = verb(Purpose.LEASES, on_writer(claims.claim))
    renew = verb(Purpose.LEASES, on_writer(leases.renew))
    shorten_leases = verb(Purpose.LEASES, on_writer(leases.shorten_leases))
    release = verb(Purpose.LEASES, on_writer(leases.release))
    lost_before_ack = verb(Purpose.LEASES, on_writer(leases.lost_before_ack))
    history = verb(Purpose.READ, on_database(claims.history))
    fire = verb(Purpose.LEASES, on_writer(timers.fire))

    # --- runs --------------------------------------------------------------------------------------------------------

    async def endings_of(self, runs: Sequence[RunKey]) -> Sequence[RunEnd | RunStatus | None]:
        return await (self._read_small if len(runs) <= OPERATIONS else self._read)(run_rows.endings_of, runs)

    resume_diverged = verb(Purpose.WRITE, on_writer(control.resume_diverged))
    get_run = verb(Purpose.READ, on_database(run_rows.get_run))
    ended_run_of_request = verb(Purpose.READ, on_database(run_rows.ended_run_of_request))
    list_runs = scan(on_database(run_rows.list_runs))
    count_runs = scan(on_database(run_rows.count_runs))
    cancel_run = verb(Purpose.WRITE, on_writer(control.cancel_run))
    signal_run = verb(Purpose.WRITE, on_writer(signals.signal_run))
    replace_signal = verb(Purpose.WRITE, on_writer(signal_changes.replace_signal))
    terminate_run = verb(Purpose.WRITE, on_writer(control.terminate_run))
    pause_run = verb(Purpose.WRITE, on_writer(control.pause_run))
    resume_run = verb(Purpose.WRITE, on_writer(control.resume_run))
    adopt_run = verb(Purpose.WRITE, on_writer(control.adopt_run))
    wake_run = verb(Purpose.WRITE, on_writer(wakes.wake_run))
    retry_run = verb(Purpose.WRITE, on_writer(retry_and_fork.retry_run))
    fork_run = verb(Purpose.WRITE, on_writer(retry_and_fork.fork_run))
    cascade = verb(Purpose.LEASES, on_writer(children.cascade))

    # --- steps -------------------------------------------------------------------------------------------------------

    list_steps = scan(on_database(steps.list_steps))
    list_forgotten_steps = scan(list_forgotten_steps)
    get_forgotten_step = verb(Purpose.READ, get_forgotten_step)
    timeline = scan(read_timeline)
    signal_waits = scan(read_signal_waits)
    unread_signals = verb(Purpose.READ, read_unread_signals)
    get_step = verb(Purpose.READ, on_database(steps.get_step))
    runs_with_step = scan(runs_with_step)
