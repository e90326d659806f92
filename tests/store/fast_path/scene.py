"""The state of a scenario: makes commands of its drafts, and calls of everything else that a store is asked for."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from kagzi.core.records import Lease, Payload, RunKey, RunLease, Served
from kagzi.core.run import commands as c
from kagzi.core.run import outcomes as o
from kagzi.core.states import RunStatus
from kagzi.store.protocol import Claimed, Fork, LeaseTerms, Store, Want
from tests.store.conformance.verbs import CLEANUP_US, LEASE_US
from tests.support.clock import FakeClock
from tests.support.providers import CountingIds

from .scenarios import ANY, FUTURE, NOT_A_UUID, OPEN, OTHER_NAMESPACE, UNKNOWN, WRONG_NONCE, Again, Draft

NAMESPACE = "default"

Call: TypeAlias = Callable[[Store], Awaitable[object]]


class Scene:
    """The runs, leases, steps and commands that later operations refer to."""

    def __init__(self) -> None:
        self._clock = FakeClock()
        self._ids = CountingIds()
        self._runs: list[RunKey] = []
        self._leased: list[RunKey] = []  # as far as the workers know
        self._leases: dict[RunKey, list[Lease]] = {}
        self._open: dict[tuple[RunKey, bool], list[str]] = {}  # by run, and whether they are sleeps
        self._attempts: dict[tuple[RunKey, str], int] = {}
        self._sent: list[c.Command] = []

    @property
    def now(self) -> int:
        return self._clock.now()

    @property
    def terms(self) -> LeaseTerms:
        return LeaseTerms(until=self.now + LEASE_US, renew_before=self.now + LEASE_US // 2)

    @property
    def holds(self) -> int:
        return len(self._leased)

    # --- commands -----------------------------------------------------------------------------------------------------

    def command(self, draft: Draft | Again) -> c.Command:
        if isinstance(draft, Again):
            command = self._sent[-draft.back % len(self._sent)] if self._sent else self.command(Draft(c.ReleaseRun))
        elif draft.kind is c.StartRun:
            command = self._start(draft.fields, valid=draft.run != NOT_A_UUID)
        else:
            command = self._of_worker(draft)
        self._sent.append(command)
        return command

    def _of_worker(self, draft: Draft) -> c.Command:
        run = self._run(draft.run)
        lease = self._lease(run, draft.lease)
        draft = self._with_step(draft, run)
        fields = dict(draft.fields)
        if fields.get("attempt", 0) is None:
            fields["attempt"] = self._attempts.get((run, fields["step_id"]), 1)
        if fields.get("until") is not None:
            fields["until"] += self.now
        if draft.kind is c.StartChild:
            start = {"request_id": f"{run.run_id}/{fields['step_id']}", **fields["start"], "workflow_type": "child"}
            fields["start"] = self._start({**start, "on_conflict": "fail"})
        if draft.kind is c.ContinueAsNew:
            fields["new_run_id"] = self._ids.run_id(self.now)
        return draft.kind(run=run, lease=lease, **fields)

    def _with_step(self, draft: Draft, run: RunKey) -> Draft:
        sleeps = draft.kind in (c.BeginSleep, c.FinishSleep)
        steps = self._open.setdefault((run, sleeps), [])
        if draft.fields.get("step_id") == OPEN and not steps:
            step_id = f"{'s' if sleeps else 'f'}{1_000 + len(self._sent)}"
            draft = Draft(c.BeginSleep if sleeps else c.BeginStep, fields={"step_id": step_id, "name": "charge"})
        step_id = draft.fields.get("step_id", "")
        step_id = steps[-1] if step_id == OPEN else step_id
        if draft.kind in (c.BeginStep, c.BeginSleep):
            steps[:] = [*(step for step in steps if step != step_id), step_id]
        elif draft.kind in (c.RecordStep, c.CompleteStep, c.FinishSleep) and step_id in steps:
            steps.remove(step_id)
        return Draft(draft.kind, fields={**draft.fields, "step_id": step_id}) if step_id else draft

    def _start(self, values: Mapping[str, Any], *, valid: bool = True) -> c.StartRun:
        fields = {"request_id": self._ids.token(), **values}
        run = RunKey(NAMESPACE, self._ids.run_id(self.now) if valid else "nonsense")
        fields["workflow_id"] = fields["workflow_id"] or self._ids.token()
        if fields.pop("assigned", False):
            fields["assignment"] = c.Assignment("worker-1", "1", self._ids.nonce(), self.now + LEASE_US)
        if "behind" in fields:
            fields["blocked_by"] = self._run(fields.pop("behind")).run_id
        if "signal" in fields:
            again = c.StartRequest(namespace="", workflow_type=fields["workflow_type"], request_id=fields["request_id"])
            fields["signal"] = msgspec.structs.replace(self._signal(fields["signal"]), start=again)
        for name in fields.keys() & {"start_at", "deadline_at"}:
            fields[name] += self.now
        return c.StartRun(run=run, **fields)

    def learn(self, commands: Sequence[c.Command], outcomes: Sequence[o.Outcome]) -> None:
        for command, outcome in zip(commands, outcomes, strict=True):
            if (
                isinstance(outcome, (o.Parked, o.RunClosed, o.LeaseLost, o.DeadlinePassed))
                and command.run in self._leased
            ):
                self._leased.remove(command.run)
            if isinstance(outcome, o.Started) and isinstance(command, c.StartRun):
                self._add(command.run)
                self._note_assignment(command, outcome.status)
            elif isinstance(outcome, o.ChildStarted) and isinstance(command, c.StartChild) and outcome.created:
                self._add(command.start.run)
                self._note_assignment(command.start, outcome.status)
            elif isinstance(outcome, o.RunClosed) and outcome.continued_as:
                self._add(RunKey(NAMESPACE, outcome.continued_as))
            elif isinstance(outcome, o.RetryScheduled) and isinstance(command, c.FailStep):
                self._attempts[command.run, command.step_id] = outcome.next_attempt

    def _note_assignment(self, start: c.StartRun, status: RunStatus) -> None:
        if start.assignment is not None and status is RunStatus.RUNNING:
            self._hold(start.run, Lease(1, start.assignment.nonce))

    def _hold(self, run: RunKey, lease: Lease) -> None:
        self._add(run)
        self._leases.setdefault(run, []).append(lease)
        self._leased = [*(other for other in self._leased if other != run), run]

    def _add(self, run: RunKey) -> None:
        if run not in self._runs:
            self._runs.append(run)

    def _run(self, number: int) -> RunKey:
        if number == NOT_A_UUID:
            return RunKey(NAMESPACE, "nonsense")
        if number == UNKNOWN or not self._runs:
            return RunKey(NAMESPACE, "01900000-0000-7000-8000-000000000000")
        if number == OTHER_NAMESPACE:
            return RunKey("other", self._runs[-1].run_id)
        runs = self._leased if self._leased and number < ANY else self._runs
        return runs[-1 - number % len(runs)]

    def _lease(self, run: RunKey, which: int) -> Lease:
        leases = self._leases.get(run) or self._leases.get(RunKey(NAMESPACE, run.run_id)) or [Lease(1, 1)]
        last = leases[-1]
        if which == WRONG_NONCE:
            return Lease(last.counter, last.nonce ^ 2)
        if which == FUTURE:
            return Lease(last.counter + 1, last.nonce)
        return leases[max(0, len(leases) - 1 - which)]

    def _signal(self, name: str) -> c.SendSignal:
        return c.SendSignal(name=name, payload=Payload(b'"yes"'), request_id=self._ids.token())

    # --- other verbs --------------------------------------------------------------------------------

    def tick(self, us: int) -> None:
        self._clock.advance(us=us)

    def claim(self, worker_id: str = "worker-1") -> Call:
        wants = [Want(NAMESPACE, workflow_type, ("1", "2"), worker_id, 10) for workflow_type in ("hello", "child")]
        nonce, now = self._ids.nonce(), self.now
        return lambda store: store.claim(wants, nonce, now, now + LEASE_US)

    def claimed(self, answer: Claimed) -> None:
        for one in answer.runs:
            self._hold(one.run, one.lease)

    def fire(self, *, end_leases: bool) -> Call:
        return lambda store: store.fire(self.now, end_leases=end_leases, limit=1_000)

    def cascade(self) -> Call:
        return lambda store: store.cascade(self.now, self.now + CLEANUP_US, 100)

    def new_build(self, build_id: str) -> Call:
        served = (Served("hello", "1"), Served("child", "1"))
        return lambda store: store.resume_diverged(NAMESPACE, served, build_id, self.now)

    def signal(self, run: int, name: str) -> Call:
        key, signal = self._run(run), self._signal(name)
        return lambda store: store.signal_run(NAMESPACE, run_id=key.run_id, signal=signal, now=self.now)

    def replace_signal(self, run: int, name: str, *, some: bool) -> Call:
        key, value = self._run(run), Payload(b'"better"') if some else None
        change = c.SignalReplacement(name=name, payload=value, request_id=self._ids.token())
        return lambda store: store.replace_signal(NAMESPACE, run_id=key.run_id, change=change, now=self.now)

    def cancel(self, run: int) -> Call:
        key = self._run(run)
        return lambda store: store.cancel_run(key, "no longer wanted", self.now, self.now + CLEANUP_US)

    def pause(self, run: int) -> Call:
        key = self._run(run)
        return lambda store: store.pause_run(key, "wait a little", self.now)

    def resume(self, run: int) -> Call:
        key = self._run(run)
        return lambda store: store.resume_run(key, self.now)

    def terminate(self, run: int) -> Call:
        key = self._run(run)
        return lambda store: store.terminate_run(key, "enough", self.now)

    def retry(self, run: int, from_step: str) -> Call:
        key, request_id = self._run(run), self._ids.token()
        return lambda store: store.retry_run(key, from_step, request_id, self.now)

    def fork(self, run: int, from_step: str) -> Call:
        token = self._ids.token()
        new = RunKey(NAMESPACE, self._ids.run_id(self.now))
        fork = Fork(
            source=self._run(run), from_step=from_step, new_run_id=new.run_id, workflow_id=token, request_id=token
        )
        return lambda store: store.fork_run(fork, self.now)

    def renew(self, run: int) -> Call:
        leased = self._lease_of(run)
        return lambda store: store.renew(leased, self.now, self.now + LEASE_US)

    def shorten_leases(self, run: int) -> Call:
        leased = self._lease_of(run)
        return lambda store: store.shorten_leases(leased, self.now + 1_000)

    def release(self, run: int) -> Call:
        leased = self._lease_of(run)
        return lambda store: store.release(leased, self.now)

    def lost_before_ack(self, run: int) -> Call:
        leased = self._lease_of(run)
        return lambda store: store.lost_before_ack(leased, self.now, [self.now + 1_000])

    def _lease_of(self, run: int) -> list[RunLease]:
        key = self._run(run)
        return [RunLease(key, self._lease(key, 0))]
