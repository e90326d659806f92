"""SqliteStore: lifecycle, and each verb handed to the thread that does it."""

from collections.abc import Sequence

from ...core.effects import NO_EFFECTS, Effects
from ...core.pages.cursor import Cursor
from ...core.records import (
    HistoryPage,
    Lease,
    Rows,
    RunEnd,
    RunFilter,
    RunKey,
    RunLease,
    RunRecord,
    Served,
    StepRecord,
)
from ...core.run.commands import Command, SendSignal, SignalReplacement
from ...core.run.outcomes import Existing, Outcome, Refused, Started
from ...core.states import RunStatus
from ...core.times import Timestamp
from ..operate.bulk import BulkOperations
from ..operate.versions import Versions
from ..protocol import (
    Claimed,
    Fired,
    Fork,
    Heartbeat,
    LeaseTerms,
    PendingWork,
    Renewal,
    Signalled,
    SignalReplaced,
    TypeKey,
    Want,
)
from .claim import claims, leases, timers
from .connection.connections import Connections
from .operate.namespaces import SqliteNamespaces
from .operate.queues import SqliteQueues
from .operate.retention import SqliteRetention
from .operate.schedules import SqliteSchedules
from .operate.stats import SqliteStats
from .operate.transfers import SqliteTransfers
from .operate.workers import SqliteWorkers
from .run import control, retry_and_fork, steps
from .run import runs as run_rows
from .run import signal_changes as replacements
from .run.counts import ListCounts
from .run.watching import SqliteEvents
from .write import children, signals
from .write.write import write


class SqliteStore(
    SqliteTransfers,
    BulkOperations,
    SqliteNamespaces,
    SqliteStats,
    SqliteSchedules,
    SqliteRetention,
    SqliteWorkers,
    Versions,
    SqliteEvents,
    SqliteQueues,
    ListCounts,
    Connections,
):
    """Keeps `store.protocol.Store` in one SQLite file, or in memory."""

    name = "sqlite"

    # --- hot ---------------------------------------------------------------------------------------------------------

    async def write(
        self, batch: Sequence[Command], now: Timestamp, terms: LeaseTerms
    ) -> tuple[Sequence[Outcome], Effects]:
        return await self._write(lambda writer: write(writer, batch, now, terms)) if batch else ([], NO_EFFECTS)

    async def claim(self, wants: Sequence[Want], nonce: int, now: Timestamp, until: Timestamp) -> Claimed:
        return await self._change(claims.claim, wants, nonce, now, until) if wants else Claimed()

    async def history(self, run: RunKey, lease: Lease, after: int, known_seq: int = 0) -> HistoryPage | None:
        return await self._read(claims.history, run, lease, after, known_seq)

    async def renew(
        self, leased: Sequence[RunLease], now: Timestamp, until: Timestamp, *, grace_us: int = 0
    ) -> Renewal:
        return await self._change(leases.renew, leased, until, now - grace_us) if leased else Renewal((), ())

    async def shorten_leases(self, leased: Sequence[RunLease], until: Timestamp) -> None:
        if leased:
            await self._change(leases.shorten_leases, leased, until)

    async def release(self, leased: Sequence[RunLease], now: Timestamp) -> Effects:
        return await self._change(leases.release, leased, now) if leased else NO_EFFECTS

    async def lost_before_ack(self, leased: Sequence[RunLease], now: Timestamp, untils: Sequence[Timestamp]) -> Effects:
        return await self._change(leases.lost_before_ack, leased, now, untils) if leased else NO_EFFECTS

    async def fire(self, now: Timestamp, *, end_leases: bool, limit: int, claim_cap: int = 10) -> tuple[Fired, Effects]:
        return await self._change(timers.fire, now, end_leases, limit, claim_cap)

    async def poll(self, heartbeats: Sequence[Heartbeat], now: Timestamp, after: TypeKey | None = None) -> PendingWork:
        await self._check_files()
        if heartbeats:
            await self._change(timers.note_heartbeats, heartbeats)
        return await self._read(timers.poll, after)

    # --- runs --------------------------------------------------------------------------------------------------------

    async def get_run(self, namespace: str, *, run_id: str = "", workflow_id: str = "") -> RunRecord | None:
        return await self._read(run_rows.get_run, namespace, run_id, workflow_id)

    async def list_runs(self, namespace: str, where: RunFilter, cursor: Cursor | None, limit: int) -> Rows[RunRecord]:
        return await self._scan(namespace, run_rows.list_runs, namespace, where, cursor, limit)

    async def count_runs(self, namespace: str, where: RunFilter, cap: int) -> int:
        return await self._scan(namespace, run_rows.count_runs, namespace, where, cap)

    async def endings_of(self, runs: Sequence[RunKey]) -> Sequence[RunEnd | RunStatus | None]:
        return await self._read(run_rows.endings_of, runs) if runs else []

    async def cancel_run(
        self, run: RunKey, reason: str, now: Timestamp, cancel_by: Timestamp
    ) -> tuple[RunStatus | None, Effects]:
        return await self._change(control.cancel_run, run, reason, now, cancel_by)

    async def signal_run(
        self, namespace: str, *, run_id: str = "", workflow_id: str = "", signal: SendSignal, now: Timestamp
    ) -> tuple[Signalled | Refused | None, Effects]:
        return await self._change(signals.signal_run, namespace, run_id, workflow_id, signal, now)

    async def replace_signal(
        self, namespace: str, *, run_id: str = "", workflow_id: str = "", change: SignalReplacement, now: Timestamp
    ) -> tuple[SignalReplaced | Refused | None, Effects]:
        return await self._change(replacements.replace_signal, namespace, run_id, workflow_id, change, now)

    async def terminate_run(self, run: RunKey, reason: str, now: Timestamp) -> tuple[RunStatus | None, Effects]:
        return await self._change(control.terminate_run, run, reason, now)

    async def pause_run(self, run: RunKey, reason: str, now: Timestamp) -> tuple[RunStatus | None, Effects]:
        return await self._change(control.pause_run, run, reason, now)

    async def resume_run(self, run: RunKey, now: Timestamp) -> tuple[RunStatus | None, Effects]:
        return await self._change(control.resume_run, run, now)

    async def retry_run(
        self, run: RunKey, from_step: str, request_id: str, now: Timestamp
    ) -> tuple[RunStatus | Refused | None, Effects]:
        return await self._change(retry_and_fork.retry_run, run, from_step, request_id, now)

    async def fork_run(self, fork: Fork, now: Timestamp) -> tuple[Started | Existing | Refused | None, Effects]:
        return await self._change(retry_and_fork.fork_run, fork, now)

    async def resume_diverged(self, namespace: str, served: Sequence[Served], build_id: str, now: Timestamp) -> Effects:
        return await self._change(control.resume_diverged, namespace, served, build_id, now) if served else NO_EFFECTS

    async def cascade(self, now: Timestamp, cancel_by: Timestamp, limit: int) -> tuple[bool, Effects]:
        return await self._change(children.cascade, now, cancel_by, limit)

    # --- steps -------------------------------------------------------------------------------------------------------

    async def list_steps(
        self, run: RunKey, *, name: str | None, after_begun_seq: int, limit: int, payloads: bool
    ) -> Rows[StepRecord] | None:
        return await self._scan(
            run.namespace,
            steps.list_steps,
            run,
            name=name,
            after_begun_seq=after_begun_seq,
            limit=limit,
            payloads=payloads,
        )

    async def get_step(self, run: RunKey, step_id: str) -> StepRecord | None:
        return await self._read(steps.get_step, run, step_id)
