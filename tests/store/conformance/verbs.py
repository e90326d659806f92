"""Store harness: commands by one short name each, and a store with a clock and ids of its own to send them to."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from kagzi.core.effects import NO_EFFECTS, Effects, LeaseNotice, merge
from kagzi.core.error_details import ErrorCode, ErrorDetail, ErrorKind
from kagzi.core.keys.audit import AuditEntry
from kagzi.core.records import (
    ClaimedRun,
    HistoryStep,
    Lease,
    Payload,
    RunEnd,
    RunFilter,
    RunKey,
    RunLease,
    RunRecord,
    Served,
    StepRecord,
    WorkerRecord,
)
from kagzi.core.retry.policy import RetryPolicy
from kagzi.core.run.commands import (
    Assignment,
    BeatStep,
    BeginSleep,
    BeginStep,
    CancelRun,
    Command,
    CompleteRun,
    CompleteStep,
    ContinueAsNew,
    DecideRace,
    FailRun,
    FailStep,
    FetchResults,
    FinishSleep,
    Park,
    PauseDiverged,
    RecordPatch,
    RecordStep,
    ReleaseRun,
    SendSignal,
    SetState,
    SetStatus,
    StartChild,
    StartRun,
    WaitSignal,
)
from kagzi.core.run.outcomes import (
    Begun,
    Busy,
    ChildStarted,
    Existing,
    Outcome,
    Parked,
    Recorded,
    Refused,
    Started,
    TimerSet,
)
from kagzi.core.states import RunStatus
from kagzi.core.times import US_PER_MS, US_PER_S, Timestamp
from kagzi.store.protocol import (
    Claimed,
    ExpiredLease,
    Fork,
    LeaseTerms,
    PendingWork,
    Renewal,
    Signalled,
    Store,
    TypeKey,
    Want,
)
from tests.support.clock import FakeClock
from tests.support.providers import CountingIds

LEASE_US = 15 * US_PER_S
CLEANUP_US = 300 * US_PER_S
DAY_US = 86_400 * US_PER_S

STEADY = RetryPolicy(maximum_attempts=3, initial_interval_ms=10_000, backoff_coefficient=2.0, jitter=0.0)
AT_ONCE = RetryPolicy(maximum_attempts=3, initial_interval_ms=0, jitter=0.0)
BOOM = ErrorDetail(
    type="shop.PaymentError", message="declined", bases=("shop.ShopError", "Exception"), traceback="line 1"
)
MISFIT = ErrorDetail(
    code=ErrorCode.PRECONDITION_FAILED,
    kind=ErrorKind.NONDETERMINISM,
    type="kagzi.Diverged",
    message="step 'charge' (shop.py:7) is new where 'refund' was recorded",
    subject="step",
    subject_id="charge",
)
STOPPED = ErrorDetail(code=ErrorCode.CANCELLED, kind=ErrorKind.CANCELLED, message="stopped")

T = TypeVar("T")


def payload(text: str) -> Payload:
    return Payload(text.encode())


def the(kind: type[T], outcome: object) -> T:
    """The outcome, which must be of that kind."""
    assert isinstance(outcome, kind), f"expected {kind.__name__}, got {outcome!r}"
    return outcome


def refused(outcome: object, code: ErrorCode) -> ErrorDetail:
    error = the(Refused, outcome).error
    assert error.code == code, error
    assert error.message
    return error


# --- commands ---------------------------------------------------------------------------------------------------------


def begin(leased: RunLease, step_id: str, attempt: int = 1, *, name: str = "", **options: Any) -> BeginStep:
    return BeginStep(
        run=leased.run, lease=leased.lease, step_id=step_id, name=name or step_id, attempt=attempt, **options
    )


def complete(leased: RunLease, step_id: str, output: str | Payload = "done", attempt: int = 1) -> CompleteStep:
    value = payload(output) if isinstance(output, str) else output
    return CompleteStep(run=leased.run, lease=leased.lease, step_id=step_id, attempt=attempt, output=value)


def record(
    leased: RunLease, step_id: str, output: str | Payload = "done", attempt: int = 1, *, name: str = "", **options: Any
) -> RecordStep:
    value = payload(output) if isinstance(output, str) else output
    return RecordStep(
        run=leased.run,
        lease=leased.lease,
        step_id=step_id,
        name=name or step_id,
        attempt=attempt,
        output=value,
        **options,
    )


def fail(leased: RunLease, step_id: str, error: ErrorDetail = BOOM, attempt: int = 1) -> FailStep:
    return FailStep(run=leased.run, lease=leased.lease, step_id=step_id, attempt=attempt, error=error)


def sleep(
    leased: RunLease,
    step_id: str,
    *,
    us: int | None = None,
    s: float | None = None,
    until: Timestamp | None = None,
    **options: Any,
) -> BeginSleep:
    duration_us = round(s * US_PER_S) if s is not None else us
    return BeginSleep(
        run=leased.run,
        lease=leased.lease,
        step_id=step_id,
        name=step_id,
        duration_us=duration_us,
        until=until,
        **options,
    )


def finish(leased: RunLease, step_id: str) -> FinishSleep:
    return FinishSleep(run=leased.run, lease=leased.lease, step_id=step_id)


def park(leased: RunLease, *waits: str, known_seq: int = 1_000_000) -> Park:
    """By default the worker knows every result there is."""
    return Park(run=leased.run, lease=leased.lease, waits=waits, known_seq=known_seq)


def fetch(leased: RunLease, *waits: str, known_seq: int = 0) -> FetchResults:
    return FetchResults(run=leased.run, lease=leased.lease, waits=waits, known_seq=known_seq)


def wait_signal(
    leased: RunLease, signal_name: str = "approved", *, step_id: str = "", s: float | None = None, **options: Any
) -> WaitSignal:
    return WaitSignal(
        run=leased.run,
        lease=leased.lease,
        step_id=step_id or signal_name,
        signal_name=signal_name,
        timeout_us=None if s is None else round(s * US_PER_S),
        **options,
    )


def race(leased: RunLease, step_id: str, winner: str, *losers: str) -> DecideRace:
    return DecideRace(run=leased.run, lease=leased.lease, step_id=step_id, name=step_id, winner=winner, losers=losers)


def patch(leased: RunLease, step_id: str) -> RecordPatch:
    return RecordPatch(run=leased.run, lease=leased.lease, step_id=step_id, name=step_id)


def say_status(leased: RunLease, text: str, progress: float | None = None) -> SetStatus:
    return SetStatus(run=leased.run, lease=leased.lease, text=text, progress=progress)


def show(leased: RunLease, state: str, metadata: Mapping[str, str] | None = None) -> SetState:
    return SetState(run=leased.run, lease=leased.lease, state=Payload(state.encode(), metadata))


def beat(leased: RunLease, step_id: str, details: str, attempt: int = 1) -> BeatStep:
    return BeatStep(run=leased.run, lease=leased.lease, step_id=step_id, attempt=attempt, details=payload(details))


def continue_as(leased: RunLease, new_run_id: str, input: str = "again", **options: Any) -> ContinueAsNew:
    return ContinueAsNew(run=leased.run, lease=leased.lease, new_run_id=new_run_id, input=payload(input), **options)


def diverged(leased: RunLease, build_id: str = "build-1", problem: ErrorDetail = MISFIT) -> PauseDiverged:
    return PauseDiverged(run=leased.run, lease=leased.lease, problem=problem, build_id=build_id)


def complete_run(leased: RunLease, output: str = "result", *, open_waits: Sequence[str] = ()) -> CompleteRun:
    return CompleteRun(run=leased.run, lease=leased.lease, output=payload(output), open_waits=tuple(open_waits))


def fail_run(leased: RunLease, error: ErrorDetail = BOOM, *, open_waits: Sequence[str] = ()) -> FailRun:
    return FailRun(run=leased.run, lease=leased.lease, error=error, open_waits=tuple(open_waits))


def acknowledge_cancel(leased: RunLease, error: ErrorDetail = STOPPED, *, open_waits: Sequence[str] = ()) -> CancelRun:
    return CancelRun(run=leased.run, lease=leased.lease, error=error, open_waits=tuple(open_waits))


def hand_back(leased: RunLease) -> ReleaseRun:
    return ReleaseRun(run=leased.run, lease=leased.lease, reason="worker stops")


def leased(claimed: ClaimedRun) -> RunLease:
    return RunLease(claimed.run, claimed.lease)


def by_id(steps: Sequence[HistoryStep]) -> dict[str, HistoryStep]:
    by_step_id = {step.step_id: step for step in steps}
    assert len(by_step_id) == len(steps), "a step was told twice"
    return by_step_id


class Firing(NamedTuple):
    """What the clock did."""

    effects: Effects
    more: bool
    expired: tuple[ExpiredLease, ...]

    @property
    def lost(self) -> tuple[RunLease, ...]:
        """Leases that ran out."""
        return tuple(each.leased for each in self.expired)

    @property
    def pending(self) -> tuple[TypeKey, ...]:
        return self.effects.pending

    @property
    def ended(self) -> tuple[RunEnd, ...]:
        return self.effects.ended


def woken_by_result(run: RunKey, workflow_type: str = "hello") -> Effects:
    """A result came for a run that nobody holds: it can be claimed."""
    return Effects(pending=(TypeKey(run.namespace, workflow_type),), changed=(run,))


def notified_of_result(holding: RunLease, worker_id: str = "worker-1") -> Effects:
    return Effects(notices=(LeaseNotice(holding, "result", worker_id),), changed=(holding.run,))


def cancel_notice(holding: RunLease, reason: str = "no longer wanted", worker_id: str = "worker-1") -> LeaseNotice:
    return LeaseNotice(holding, "cancel_requested", worker_id, reason)


class StoreHarness:
    """A store, the time and the ids of one test. Each method is one verb of the store, with the usual arguments filled
    in."""

    def __init__(self, store: Store, clock: FakeClock, ids: CountingIds) -> None:
        self.store = store
        self.clock = clock
        self.ids = ids
        self.effects = NO_EFFECTS  # of the last verb

    @property
    def now(self) -> Timestamp:
        return self.clock.now()

    @property
    def terms(self) -> LeaseTerms:
        return LeaseTerms(until=self.now + LEASE_US, renew_before=self.now + LEASE_US // 2)

    async def write(self, *commands: Command, terms: LeaseTerms | None = None) -> list[Outcome]:
        outcomes, self.effects = await self.store.write(commands, self.now, terms or self.terms)
        assert len(outcomes) == len(commands)
        return list(outcomes)

    async def do(self, command: Command) -> Outcome:
        (outcome,) = await self.write(command)
        return outcome

    async def insist(self, command: Command) -> Outcome:
        """As the engine does: what met a locked row is said again."""
        for _ in range(1_000):
            outcome = await self.do(command)
            if not isinstance(outcome, Busy):
                return outcome
        raise AssertionError(f"the row stays locked: {command}")

    # --- runs ---------------------------------------------------------------------------------------------------------

    def start_command(
        self, workflow_id: str = "", *, workflow_type: str = "hello", namespace: str = "default", **options: Any
    ) -> StartRun:
        options.setdefault("request_id", self.ids.token())
        return StartRun(
            run=RunKey(namespace, self.ids.run_id(self.now, namespace)),
            workflow_id=workflow_id or self.ids.token(),
            workflow_type=workflow_type,
            **options,
        )

    async def start(self, workflow_id: str = "", **options: Any) -> RunKey:
        command = self.start_command(workflow_id, **options)
        started = the(Started, await self.do(command))
        return RunKey(command.run.namespace, started.run_id)

    async def start_many(self, count: int, **options: Any) -> list[RunKey]:
        commands = [self.start_command(**options) for _ in range(count)]
        outcomes = await self.write(*commands)
        return [
            RunKey(command.run.namespace, the(Started, outcome).run_id)
            for command, outcome in zip(commands, outcomes, strict=True)
        ]

    def assignment(self, worker_id: str = "worker-1", version: str = "1") -> Assignment:
        return Assignment(worker_id, version, self.ids.nonce(), self.now + LEASE_US)

    def want(
        self,
        workflow_type: str = "hello",
        *,
        limit: int = 100,
        versions: tuple[str, ...] = ("1",),
        worker_id: str = "worker-1",
        namespace: str = "default",
        build_id: str = "",
    ) -> Want:
        return Want(namespace, workflow_type, versions, worker_id, limit, build_id)

    async def claim(self, *wants: Want, until: Timestamp | None = None, **want: Any) -> list[ClaimedRun]:
        requested = wants or (self.want(**want),)
        return list((await self.claimed(*requested, until=until)).runs)

    async def claimed(self, *wants: Want, until: int | None = None) -> Claimed:
        """All that a claim came to."""
        return await self.store.claim(wants, self.ids.nonce(), self.now, until or self.now + LEASE_US)

    async def claim_one(self, **want: Any) -> ClaimedRun:
        (claimed,) = await self.claim(**want, limit=1)
        return claimed

    async def running(self, **options: Any) -> RunLease:
        """A new run in the hands of worker-1."""
        run = await self.start(**options)
        workflow_type = options.get("workflow_type", "hello")
        claimed = {one.run: one for one in await self.claim(workflow_type=workflow_type, namespace=run.namespace)}
        return leased(claimed[run])

    async def hold(self, run: RunKey, **want: Any) -> RunLease:
        """Claim this run, which must be there to be claimed."""
        record = await self.run(run)
        want.setdefault("workflow_type", record.workflow_type)
        claimed = {one.run: one for one in await self.claim(namespace=run.namespace, **want)}
        assert run in claimed, f"not to be claimed: {record}"
        return leased(claimed[run])

    async def take_over(self, old: RunLease) -> RunLease:
        """The lease runs out and another worker claims the run."""
        self.clock.advance(us=LEASE_US + 1)
        fired = await self.fire()
        assert old in fired.lost
        record = await self.run(old.run)
        claimed = await self.claim(
            worker_id="worker-2", workflow_type=record.workflow_type, namespace=old.run.namespace
        )
        return leased(next(one for one in claimed if one.run == old.run))

    async def asleep(self, s: float = 60, **options: Any) -> RunLease:
        """A run parked in a sleep; the lease is its last, worthless now."""
        holding = await self.running(**options)
        the(TimerSet, await self.do(sleep(holding, "nap", s=s)))
        the(Parked, await self.do(park(holding, "nap")))
        return holding

    async def done(self, holding: RunLease, step_id: str, output: str = "done") -> Recorded:
        """A step begun and completed."""
        begun, recorded = await self.write(begin(holding, step_id), complete(holding, step_id, output))
        the(Begun, begun)
        return the(Recorded, recorded)

    def child_command(
        self,
        parent: RunLease,
        step_id: str = "child",
        *,
        workflow_id: str = "",
        workflow_type: str = "child",
        on_close: Any = "cancel",
        attach: bool = False,
        cleanup: bool = False,
        **options: Any,
    ) -> StartChild:
        options.setdefault("request_id", f"{parent.run.run_id}/{step_id}")
        start = self.start_command(
            workflow_id, workflow_type=workflow_type, namespace=parent.run.namespace, on_conflict="fail", **options
        )
        return StartChild(
            run=parent.run,
            lease=parent.lease,
            step_id=step_id,
            name=workflow_type,
            start=start,
            on_close=on_close,
            attach=attach,
            cleanup=cleanup,
        )

    async def child(self, parent: RunLease, step_id: str = "child", **options: Any) -> RunKey:
        """A child that nobody has claimed yet."""
        started = the(ChildStarted, await self.do(self.child_command(parent, step_id, **options)))
        assert started.created
        return RunKey(parent.run.namespace, started.child_run_id)

    async def fire(self, *, end_leases: bool = True, limit: int = 1_000, **options: Any) -> Firing:
        fired, self.effects = await self.store.fire(self.now, end_leases=end_leases, limit=limit, **options)
        return Firing(self.effects, fired.more, fired.expired)

    async def cascade(self, limit: int = 100) -> Effects:
        """Everything that has to be cancelled because of a parent."""
        parts: list[Effects] = []
        for _ in range(10_000):
            more, effects = await self.store.cascade(self.now, self.now + CLEANUP_US, limit)
            parts.append(effects)
            if not more:
                return merge(parts)
        raise AssertionError("the cascade has no end")

    def signal_request(self, name: str = "approved", value: str = "yes", request_id: str = "") -> SendSignal:
        return SendSignal(name=name, payload=payload(value), request_id=request_id or self.ids.token())

    async def signal(
        self, run: RunKey, name: str = "approved", value: str = "yes", *, request_id: str = ""
    ) -> Signalled:
        signal = self.signal_request(name, value, request_id)
        outcome, self.effects = await self.store.signal_run(
            run.namespace, run_id=run.run_id, signal=signal, now=self.now
        )
        return the(Signalled, outcome)

    async def terminate(self, run: RunKey, reason: str = "enough") -> RunStatus:
        outcome, self.effects = await self.store.terminate_run(run, reason, self.now)
        return the(RunStatus, outcome)

    async def pause(self, run: RunKey, reason: str = "wait a little") -> RunStatus:
        outcome, self.effects = await self.store.pause_run(run, reason, self.now)
        return the(RunStatus, outcome)

    async def resume(self, run: RunKey) -> RunStatus:
        outcome, self.effects = await self.store.resume_run(run, self.now)
        return the(RunStatus, outcome)

    async def adopt(self, run: RunKey, build_id: str, audit: AuditEntry | None = None) -> RunStatus | Refused | None:
        outcome, self.effects = await self.store.adopt_run(run, build_id, self.now, audit=audit)
        return outcome

    async def retry(self, run: RunKey, from_step: str = "", request_id: str = "") -> RunStatus | Refused | None:
        request_id = request_id or self.ids.token()
        outcome, self.effects = await self.store.retry_run(run, from_step, request_id, self.now)
        return outcome

    async def fork(self, source: RunKey, from_step: str, **options: Any) -> Started | Existing | Refused | None:
        options.setdefault("new_run_id", self.ids.run_id(self.now))
        options.setdefault("workflow_id", self.ids.token())
        options.setdefault("request_id", self.ids.token())
        fork = Fork(source=source, from_step=from_step, **options)
        outcome, self.effects = await self.store.fork_run(fork, self.now)
        return outcome

    async def new_build(
        self, build_id: str, *, workflow_type: str = "hello", version: str = "1", namespace: str = "default"
    ) -> list[TypeKey]:
        served = (Served(workflow_type, version),)
        return list((await self.store.resume_diverged(namespace, served, build_id, self.now)).pending)

    async def renew(self, *holding: RunLease, until: Timestamp | None = None) -> Renewal:
        return await self.store.renew(holding, self.now, until or self.now + LEASE_US)

    async def poll(self, after: TypeKey | None = None) -> PendingWork:
        return await self.store.poll((), self.now, after)

    async def cancel(self, run: RunKey, reason: str = "no longer wanted") -> RunStatus | None:
        outcome, self.effects = await self.store.cancel_run(run, reason, self.now, self.now + CLEANUP_US)
        return outcome

    # --- what there is ------------------------------------------------------------------------------------------------

    async def run(self, run: RunKey) -> RunRecord:
        record = await self.store.get_run(run.namespace, run_id=run.run_id)
        assert record is not None
        return record

    async def steps(self, run: RunKey) -> dict[str, StepRecord]:
        rows = await self.store.list_steps(run, name=None, after_begun_seq=0, limit=1_000, payloads=True)
        assert rows is not None
        return {step.step_id: step for step in rows.rows}

    async def picture(self, run: RunKey) -> tuple[RunRecord, dict[str, StepRecord]]:
        """All that can be seen of a run: two equal pictures mean that nothing was changed."""
        return await self.run(run), await self.steps(run)

    async def runs(self, namespace: str = "default", *, limit: int = 1_000, **conditions: Any) -> list[RunRecord]:
        return list((await self.store.list_runs(namespace, RunFilter(**conditions), None, limit)).rows)

    async def register(
        self,
        worker_id: str = "worker-1",
        *,
        namespace: str = "default",
        served: Mapping[str, str] | None = None,
        **options: Any,
    ) -> WorkerRecord:
        pairs = tuple(Served(workflow_type, version) for workflow_type, version in (served or {"hello": "1"}).items())
        record = WorkerRecord(worker_id=worker_id, namespace=namespace, served=pairs, max_concurrent=10, **options)
        await self.store.register_worker(record, self.now)
        return record


def stale(holding: RunLease) -> RunLease:
    """The same counter with another nonce: what a lossy failover may have handed out."""
    return RunLease(holding.run, Lease(holding.lease.counter, holding.lease.nonce ^ 2))


def ms(milliseconds: int) -> int:
    return milliseconds * US_PER_MS
