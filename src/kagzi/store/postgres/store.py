"""The store on PostgreSQL: which connection each verb uses. The modules named after the nouns implement the verbs."""

from collections.abc import Sequence

from ...core.effects import Effects
from ...core.errors import SchemaMismatch
from ...core.providers import Rng
from ...core.records import (
    RunEnd,
    RunKey,
    RunRecord,
)
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
    Claimed,
    LeaseTerms,
    Want,
)
from ..sessions import Purpose, scan, verb
from .claim import claims, leases, timers
from .claim.permits import Leasing
from .connection.connections import Connections
from .migrate import PostgresMigrator
from .operate.namespaces import PostgresNamespaces
from .operate.queues import PostgresQueues
from .operate.retention import PostgresRetention
from .operate.schedules import PostgresSchedules
from .operate.stats import PostgresStats
from .operate.transfers import PostgresTransfers
from .operate.workers import PostgresWorkers
from .run import control, retry_and_fork, runs, signal_changes, steps, wakes
from .run.watching import PostgresEvents
from .write import signals
from .write.write import Writer

OLDEST_VERSION = 15


class PostgresStore(
    PostgresTransfers,
    BulkOperations,
    Keys,
    Audit,
    ListCounts,
    Gauges,
    PostgresNamespaces,
    PostgresStats,
    StepLogs,
    PostgresSchedules,
    PostgresRetention,
    PostgresWorkers,
    Versions,
    PostgresEvents,
    PostgresQueues,
    Connections,
):
    """Implements `protocol.Store`. `fast_path=False`, for tests and debugging: load, decide and save every command."""

    name: str = "postgresql"
    start_batches: int = 2

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

    async def claim(
        self, wants: Sequence[Want], nonce: int, now: Timestamp, until: Timestamp, *, old_before: Timestamp = 0
    ) -> Claimed:
        async with self._duty.use(confirm=False) as session:
            return await self._claims.claim(session, wants, Leasing(nonce, now, until, old_before))

    history = verb(Purpose.READ, claims.history)
    renew = verb(Purpose.LEASES, leases.renew)
    shorten_leases = verb(Purpose.LEASES, leases.shorten_leases)
    release = verb(Purpose.LEASES, leases.release)
    lost_before_ack = verb(Purpose.LEASES, leases.lost_before_ack)
    fire = verb(Purpose.LEASES, timers.fire)
    poll = verb(Purpose.LEASES, timers.poll)

    # --- runs ---------------------------------------------------------------------------------------------------------

    async def get_run(self, namespace: str, *, run_id: str = "", workflow_id: str = "") -> RunRecord | None:
        run = await self._get_run(namespace, run_id=run_id, workflow_id=workflow_id)
        if run is None or not run.status.ended or not self._target.barrier.needed:
            return run
        # Once reported, an end must not be lost.
        return await self._confirm_run(namespace, run_id=run_id, workflow_id=workflow_id)

    async def endings_of(self, keys: Sequence[RunKey], /) -> Sequence[RunEnd | RunStatus | None]:
        endings = await self._endings_of(keys)
        if all(isinstance(each, RunStatus) for each in endings) or not self._target.barrier.needed:
            return endings
        # As above; nor may anybody be told that there is no such run because this primary does not know it.
        return await self._confirm_endings(keys)

    _get_run = verb(Purpose.LOOKUP, runs.get_run)
    _confirm_run = verb(Purpose.WRITE, runs.get_run)
    _endings_of = verb(Purpose.READ, runs.endings_of)
    _confirm_endings = verb(Purpose.WRITE, runs.endings_of)
    ended_run_of_request = verb(Purpose.READ, runs.ended_run_of_request)
    list_runs = scan(runs.list_runs)
    count_runs = scan(runs.count_runs)
    cancel_run = verb(Purpose.WRITE, control.cancel_run)
    signal_run = verb(Purpose.WRITE, signals.signal_run)
    replace_signal = verb(Purpose.WRITE, signal_changes.replace_signal)
    terminate_run = verb(Purpose.WRITE, control.terminate_run)
    pause_run = verb(Purpose.WRITE, control.pause_run)
    resume_run = verb(Purpose.WRITE, control.resume_run)
    adopt_run = verb(Purpose.WRITE, control.adopt_run)
    wake_run = verb(Purpose.WRITE, wakes.wake_run)
    retry_run = verb(Purpose.WRITE, retry_and_fork.retry_run)
    fork_run = verb(Purpose.WRITE, retry_and_fork.fork_run)
    resume_diverged = verb(Purpose.WRITE, control.resume_diverged)
    cascade = verb(Purpose.LEASES, control.cascade)

    # --- steps --------------------------------------------------------------------------------------------------------

    list_steps = scan(steps.list_steps)
    list_forgotten_steps = scan(list_forgotten_steps)
    get_forgotten_step = verb(Purpose.LOOKUP, get_forgotten_step)
    timeline = scan(read_timeline)
    signal_waits = scan(read_signal_waits)
    unread_signals = verb(Purpose.READ, read_unread_signals)
    get_step = verb(Purpose.LOOKUP, steps.get_step)
    runs_with_step = scan(runs_with_step)
