"""The store on PostgreSQL: which connection does what. What is done is said in the modules named after the nouns."""

from collections.abc import Sequence

from ...core.effects import Effects
from ...core.errors import SchemaMismatch
from ...core.pages.cursor import Cursor
from ...core.providers import Rng
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
from .migrate import PostgresMigrator
from .operate.namespaces import PostgresNamespaces
from .operate.queues import PostgresQueues
from .operate.retention import PostgresRetention
from .operate.schedules import PostgresSchedules
from .operate.stats import PostgresStats
from .operate.transfers import PostgresTransfers
from .operate.workers import PostgresWorkers
from .run import control as controls
from .run import retry_and_fork, steps
from .run import runs as run_questions
from .run import signal_changes as replacements
from .run.counts import ListCounts
from .run.watching import PostgresEvents
from .write import signals
from .write.write import Writer

OLDEST_VERSION = 15


class PostgresStore(
    PostgresTransfers,
    BulkOperations,
    ListCounts,
    PostgresNamespaces,
    PostgresStats,
    PostgresSchedules,
    PostgresRetention,
    PostgresWorkers,
    Versions,
    PostgresEvents,
    PostgresQueues,
    Connections,
):
    """Implements `protocol.Store`. `fast_path=False`, for tests and bisecting: load, decide, save each command."""

    name: str = "postgresql"

    def __init__(self, url: str, *, rng: Rng, fast_path: bool = True) -> None:
        super().__init__(url)
        self._writer = Writer(rng, fast_path=fast_path)
        self._claims = claims.Claims()
        self._migrator = PostgresMigrator(url)
        self.warnings: list[str] = []

    async def open(self) -> None:
        try:
            await self._open()
        except BaseException:
            await self.close()
            raise

    async def _open(self) -> None:
        await self._check_server()
        status = await self._migrator.status()
        if status.current != status.latest:
            raise SchemaMismatch(
                f"{self._target.place} has schema version {status.current}; this code needs {status.latest}. "
                "Run `kagzi db migrate`."
            )
        for link in (self._hot, self._duty):
            async with link.use():
                pass

    async def _check_server(self) -> None:
        async with self._questions.use(confirm=False) as session:
            [row] = await session.read("server_settings")
        if row["version"] < OLDEST_VERSION * 10_000:
            raise SchemaMismatch(
                f"{self._target.place} is version {row['version'] // 10_000}; Kagzi needs {OLDEST_VERSION} or newer"
            )
        self.warnings = []
        if row["fsync"] != "on":
            self.warnings.append(
                f"{self._target.place} runs with fsync={row['fsync']}: what was acknowledged may be lost in a crash"
            )
        if row["synchronous_commit"] not in ("on", "remote_apply"):
            self.warnings.append(
                f"{self._target.place} is set to synchronous_commit={row['synchronous_commit']}; "
                "Kagzi sets it to on for its own connections"
            )

    # --- hot ----------------------------------------------------------------------------------------------------------

    async def write(
        self, batch: Sequence[Command], now: Timestamp, terms: LeaseTerms
    ) -> tuple[Sequence[Outcome], Effects]:
        async with self._hot.use() as session:
            return await self._writer.write(session, batch, now, terms)

    async def claim(self, wants: Sequence[Want], nonce: int, now: Timestamp, until: Timestamp) -> Claimed:
        async with self._duty.use(confirm=False) as session:
            return await self._claims.claim(session, wants, nonce, now, until)

    async def history(self, run: RunKey, lease: Lease, after: int, known_seq: int = 0) -> HistoryPage | None:
        async with self._readers.use(confirm=False) as session:
            return await claims.history(session, run, lease, after, known_seq)

    async def renew(
        self, leased: Sequence[RunLease], now: Timestamp, until: Timestamp, *, grace_us: int = 0
    ) -> Renewal:
        async with self._duty.use(confirm=False) as session:
            return await leases.renew(session, leased, until, now - grace_us)

    async def shorten_leases(self, leased: Sequence[RunLease], until: Timestamp) -> None:
        async with self._duty.use(confirm=False) as session:
            await leases.shorten_leases(session, leased, until)

    async def release(self, leased: Sequence[RunLease], now: Timestamp) -> Effects:
        async with self._duty.use(confirm=False) as session:
            return await leases.release(session, leased, now)

    async def lost_before_ack(self, leased: Sequence[RunLease], now: Timestamp, untils: Sequence[Timestamp]) -> Effects:
        async with self._duty.use(confirm=False) as session:
            return await leases.lost_before_ack(session, leased, now, untils)

    async def fire(self, now: Timestamp, *, end_leases: bool, limit: int, claim_cap: int = 10) -> tuple[Fired, Effects]:
        async with self._duty.use(confirm=False) as session:
            return await timers.fire(session, now, end_leases=end_leases, limit=limit, claim_cap=claim_cap)

    async def poll(self, heartbeats: Sequence[Heartbeat], now: Timestamp, after: TypeKey | None = None) -> PendingWork:
        async with self._duty.use(confirm=False) as session:
            return await timers.poll(session, heartbeats, after)

    # --- runs ---------------------------------------------------------------------------------------------------------

    async def get_run(self, namespace: str, *, run_id: str = "", workflow_id: str = "") -> RunRecord | None:
        async with self._readers.use(confirm=False) as session:
            run = await run_questions.get_run(session, namespace, run_id=run_id, workflow_id=workflow_id)
        if run is None or not run.status.ended or not self._target.barrier.needed:
            return run
        async with self._questions.use() as session:  # an end is final as soon as somebody has heard of it
            return await run_questions.get_run(session, namespace, run_id=run_id, workflow_id=workflow_id)

    async def list_runs(self, namespace: str, where: RunFilter, cursor: Cursor | None, limit: int) -> Rows[RunRecord]:
        async with self._scan(namespace) as session:
            return await run_questions.list_runs(session, namespace, where, cursor, limit)

    async def count_runs(self, namespace: str, where: RunFilter, cap: int) -> int:
        async with self._scan(namespace) as session:
            return await run_questions.count_runs(session, namespace, where, cap)

    async def endings_of(self, runs: Sequence[RunKey]) -> Sequence[RunEnd | RunStatus | None]:
        async with self._readers.use(confirm=False) as session:
            endings = await run_questions.endings_of(session, runs)
        if not any(isinstance(each, RunEnd) for each in endings) or not self._target.barrier.needed:
            return endings
        async with self._questions.use() as session:  # as above
            return await run_questions.endings_of(session, runs)

    async def cancel_run(
        self, run: RunKey, reason: str, now: Timestamp, cancel_by: Timestamp
    ) -> tuple[RunStatus | None, Effects]:
        async with self._questions.use() as session:
            return await controls.cancel_run(session, run, reason, now, cancel_by)

    async def signal_run(
        self, namespace: str, *, run_id: str = "", workflow_id: str = "", signal: SendSignal, now: Timestamp
    ) -> tuple[Signalled | Refused | None, Effects]:
        async with self._questions.use() as session:
            return await signals.signal_run(
                session, namespace, run_id=run_id, workflow_id=workflow_id, signal=signal, now=now
            )

    async def replace_signal(
        self, namespace: str, *, run_id: str = "", workflow_id: str = "", change: SignalReplacement, now: Timestamp
    ) -> tuple[SignalReplaced | Refused | None, Effects]:
        async with self._questions.use() as session:
            return await replacements.replace_signal(session, RunKey(namespace, run_id), workflow_id, change, now)

    async def terminate_run(self, run: RunKey, reason: str, now: Timestamp) -> tuple[RunStatus | None, Effects]:
        async with self._questions.use() as session:
            return await controls.terminate_run(session, run, reason, now)

    async def pause_run(self, run: RunKey, reason: str, now: Timestamp) -> tuple[RunStatus | None, Effects]:
        async with self._questions.use() as session:
            return await controls.pause_run(session, run, reason, now)

    async def resume_run(self, run: RunKey, now: Timestamp) -> tuple[RunStatus | None, Effects]:
        async with self._questions.use() as session:
            return await controls.resume_run(session, run, now)

    async def retry_run(
        self, run: RunKey, from_step: str, request_id: str, now: Timestamp
    ) -> tuple[RunStatus | Refused | None, Effects]:
        async with self._questions.use() as session:
            return await retry_and_fork.retry_run(session, run, from_step, request_id, now)

    async def fork_run(self, fork: Fork, now: Timestamp) -> tuple[Started | Existing | Refused | None, Effects]:
        async with self._questions.use() as session:
            return await retry_and_fork.fork_run(session, fork, now)

    async def resume_diverged(self, namespace: str, served: Sequence[Served], build_id: str, now: Timestamp) -> Effects:
        async with self._questions.use() as session:
            return await controls.resume_diverged(session, namespace, served, build_id, now)

    async def cascade(self, now: Timestamp, cancel_by: Timestamp, limit: int) -> tuple[bool, Effects]:
        async with self._duty.use(confirm=False) as session:
            return await controls.cascade(session, now, cancel_by, limit)

    # --- steps --------------------------------------------------------------------------------------------------------

    async def list_steps(
        self, run: RunKey, *, name: str | None, after_begun_seq: int, limit: int, payloads: bool
    ) -> Rows[StepRecord] | None:
        async with self._scan(run.namespace) as session:
            return await steps.list_steps(
                session, run, name=name, after_begun_seq=after_begun_seq, limit=limit, payloads=payloads
            )

    async def get_step(self, run: RunKey, step_id: str) -> StepRecord | None:
        async with self._readers.use(confirm=False) as session:
            return await steps.get_step(session, run, step_id)
