"""Any sequence of verbs, with any token ever seen and any command ever said, does what a few dictionaries say it
should."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kagzi.core.records import ClaimedRun, Lease, RunKey, RunLease
from kagzi.core.retry.policy import NO_RETRY
from kagzi.core.run import commands as c
from kagzi.core.run.outcomes import Existing, Started
from kagzi.core.states import RunStatus, StepStatus
from kagzi.store.protocol import LeaseTerms, Store
from tests.support.clock import FakeClock
from tests.support.providers import CountingIds

from .invariants import check_invariants
from .model import Run, predict, shape
from .places import empty_postgres, memory_place, postgres_place
from .verbs import (
    AT_ONCE,
    STEADY,
    StoreHarness,
    acknowledge_cancel,
    begin,
    complete,
    complete_run,
    fail,
    fail_run,
    finish,
    hand_back,
    leased,
    park,
    record,
    sleep,
)

HOUR_US = 3_600_000_000
STEPS = ("a", "b", "nap")
POLICIES = (None, NO_RETRY, AT_ONCE, STEADY)

small = st.integers(0, 7)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("start"), small, small, small),
        st.tuples(st.just("claim"), small, small, small),
        *(
            st.tuples(st.just(name), small, small, small)
            for name in (
                "begin",
                "complete",
                "record",
                "fail",
                "sleep",
                "finish",
                "park",
                "close",
                "again",
                "renew",
                "advance",
            )
        ),
        st.tuples(st.sampled_from(["begin", "complete", "record", "fail", "sleep", "park"]), st.just(0), small, small),
        st.tuples(st.sampled_from(["fire", "release", "lapse", "stranger"]), small, small, small),
    ),
    min_size=1,
    max_size=60,
)


class Pair:
    """A store and its model, told the same things."""

    def __init__(self, store: Store) -> None:
        self.clock = FakeClock()
        self.ids = CountingIds()
        self.harness = StoreHarness(store, self.clock, self.ids)
        self.store = store
        self.runs: dict[RunKey, Run] = {}
        self.tokens: list[RunLease] = []
        self.sent: list[c.Command] = []

    # --- what is said -------------------------------------------------------------------------------------------------

    async def start(self, which: int, priority: int, retry: int) -> None:
        command = self.harness.start_command(
            f"id-{which % 4}", priority=priority % 2, retry=POLICIES[retry % 4], labels={"n": str(which)}
        )
        await self.start_with(command)

    async def start_with(self, command: c.StartRun) -> None:
        outcome = await self.harness.do(command)
        same = next((run for run in self.runs.values() if run.key == command.run), None)
        active = same or next(
            (run for run in self.runs.values() if run.workflow_id == command.workflow_id and not run.status.ended), None
        )
        if same is not None and isinstance(outcome, Started):
            # The very command that made the run, said again: it may be told so again.
            assert (outcome.run_id, outcome.status) == (same.key.run_id, same.status)
            return
        if active is not None:
            existing = Existing(active.key.run_id, active.workflow_id, active.status, repeated=same is not None)
            assert outcome == existing
            return
        assert outcome == Started(command.run.run_id, command.workflow_id, RunStatus.PENDING, self.clock.now())
        self.sent.append(command)
        self.runs[command.run] = Run(
            command.run, command.workflow_id, command.priority, command.retry, self.clock.now()
        )

    async def claim(self, limit: int, _b: int, _c: int) -> None:
        claimed = await self.harness.claim(limit=limit + 1, until=self.clock.now() + HOUR_US)
        pending = [run for run in self.runs.values() if run.status == RunStatus.PENDING]
        assert len(claimed) == min(limit + 1, len(pending))
        order = sorted((-run.priority, run.ready_at) for run in pending)
        taken = sorted((-self.runs[one.run].priority, self.runs[one.run].ready_at) for one in claimed)
        assert taken == order[: len(taken)], "not the highest priority and longest ready first"
        for one in claimed:
            self.check_claim(one)

    def check_claim(self, one: ClaimedRun) -> None:
        run = self.runs[one.run]
        assert run.status == RunStatus.PENDING
        assert (one.lease.counter, one.attempt) == (run.lease.counter + 1, run.attempt)
        assert one.lease != run.lease
        history = {
            step.step_id: (step.kind, step.status, step.attempt, step.retry_at, step.output and step.output.data)
            for step in one.history.steps
        }
        assert history == {
            name: (step.kind, step.status, step.attempt, step.retry_at, step.output) for name, step in run.steps.items()
        }
        run.status, run.lease = RunStatus.RUNNING, one.lease
        self.tokens.append(leased(one))

    async def begin(self, token: int, step: int, more: int) -> None:
        policy = POLICIES[more % 4]
        await self.say(token, lambda holding: begin(holding, STEPS[step % 3], (1, 1, 0, 2)[more // 2], retry=policy))

    async def complete(self, token: int, step: int, more: int) -> None:
        await self.say(token, lambda holding: complete(holding, STEPS[step % 3], f"{more}", (1, 1, 0, 2)[more // 2]))

    async def record(self, token: int, step: int, more: int) -> None:
        policy, attempt = POLICIES[more % 4], (1, 1, 0, 2)[more // 2]
        await self.say(token, lambda holding: record(holding, STEPS[step % 3], f"{more}", attempt, retry=policy))

    async def fail(self, token: int, step: int, more: int) -> None:
        await self.say(token, lambda holding: fail(holding, STEPS[step % 3], attempt=(1, 2, 1, 3)[more // 2]))

    async def sleep(self, token: int, step: int, more: int) -> None:
        name = ("nap", "nap", "doze", "a")[step // 2]
        if more % 2:
            until = self.clock.now() + more * 1_000_000 - 3_000_000
            await self.say(token, lambda holding: sleep(holding, name, until=until))
        else:
            await self.say(token, lambda holding: sleep(holding, name, s=more))

    async def finish(self, token: int, step: int, _c: int) -> None:
        await self.say(token, lambda holding: finish(holding, ("nap", "nap", "doze", "a")[step // 2]))

    async def park(self, token: int, known: int, _c: int) -> None:
        await self.say(token, lambda holding: park(holding, known_seq=0 if known == 0 else 1_000_000))

    async def close(self, token: int, how: int, _c: int) -> None:
        endings = (complete_run, fail_run, fail_run, hand_back, hand_back, acknowledge_cancel, hand_back, fail_run)
        await self.say(token, endings[how])

    async def again(self, which: int, spread: int, _c: int) -> None:
        """Any command ever said, once more."""
        if self.sent:
            command = self.sent[(which * 8 + spread) % len(self.sent)]
            if isinstance(command, c.StartRun):
                await self.start_with(command)
            else:
                await self.apply(command)

    async def stranger(self, which: int, step: int, more: int) -> None:
        """Somebody with a lease nobody was ever given."""
        if self.tokens:
            token = self.tokens[which % len(self.tokens)]
            forged = RunLease(token.run, Lease(token.lease.counter + more % 2, token.lease.nonce ^ 4))
            await self.apply(begin(forged, STEPS[step % 3]))
            await self.apply(complete_run(forged))

    async def say(self, token: int, make: Callable[[RunLease], c.Command]) -> None:
        """Token 0..3 is one of the newest leases, 4..7 any ever seen."""
        if self.tokens:
            choose = (
                self.tokens[-1 - token % min(len(self.tokens), 3)]
                if token < 4
                else self.tokens[token % len(self.tokens)]
            )
            command = make(choose)
            self.sent.append(command)
            await self.apply(command)

    async def apply(self, command: c.Command) -> None:
        expected, change = predict(self.runs.get(command.run), command, self.clock.now())
        # Writes never renew here: a lease lasts an hour, or lapses with the clock.
        terms = LeaseTerms(until=self.clock.now() + HOUR_US, renew_before=0)
        (outcome,) = await self.harness.write(command, terms=terms)
        assert shape(outcome) == expected, f"{command} came to {outcome}; expected: {expected}"
        change()
        await self.compare(command.run)

    # --- time ---------------------------------------------------------------------------------------------------------

    async def advance(self, seconds: int, _b: int, _c: int) -> None:
        self.clock.advance(s=seconds)

    async def fire(self, _a: int, _b: int, _c: int) -> None:
        await self.fire_with(end_leases=False)

    async def lapse(self, _a: int, _b: int, _c: int) -> None:
        """Nobody renews: hours later every lease has ended."""
        self.clock.advance(us=2 * HOUR_US)
        await self.fire_with(end_leases=True)

    async def fire_with(self, *, end_leases: bool) -> None:
        now = self.clock.now()
        due = [run for run in self.runs.values() if run.due_at is not None and run.due_at <= now]
        due = [run for run in due if run.status == RunStatus.SLEEPING]
        lost = [run for run in self.runs.values() if run.status == RunStatus.RUNNING] if end_leases else []
        fired = await self.harness.fire(end_leases=end_leases, claim_cap=1_000)  # quarantine is told elsewhere
        assert fired.pending == ((("default", "hello"),) if due or lost else ())
        assert {token.run for token in fired.lost} == {run.key for run in lost}
        assert (fired.ended, fired.more) == ((), False)
        for run in due:
            run.take(now)
            run.finish_due_sleeps(now)
        for run in lost:
            run.take(now)
            run.lost_leases += 1
        for run in (*due, *lost):
            await self.compare(run.key)

    async def renew(self, first: int, count: int, _c: int) -> None:
        tokens = self.tokens[first : first + count]
        renewal = await self.harness.renew(*tokens, until=self.clock.now() + HOUR_US)
        assert set(renewal.lost) == {token for token in tokens if not self.holds(token)}

    async def release(self, first: int, count: int, _c: int) -> None:
        tokens = self.tokens[first : first + count % 3]
        current = [token for token in tokens if self.holds(token)]
        woken = (await self.store.release(tokens, self.clock.now())).pending
        assert list(woken) == ([("default", "hello")] if current else [])
        for token in current:
            self.runs[token.run].pend(self.clock.now())
            await self.compare(token.run)

    def holds(self, token: RunLease) -> bool:
        run = self.runs[token.run]
        return run.status == RunStatus.RUNNING and run.lease == token.lease

    # --- what there is ------------------------------------------------------------------------------------------------

    async def compare(self, key: RunKey) -> None:
        run = self.runs[key]
        record, steps = await self.harness.picture(key)
        wake_at = run.due_at if run.status == RunStatus.SLEEPING else None
        assert (record.status, record.attempt, record.wake_at) == (run.status, run.attempt, wake_at)
        assert record.lost_leases == run.lost_leases
        seen = {
            name: (step.kind, step.status, step.attempt, step.wake_at, step.retry_at, step.output and step.output.data)
            for name, step in steps.items()
        }
        open_states = (StepStatus.RUNNING, StepStatus.PENDING)
        abandoned = {name for name, step in run.steps.items() if run.status.ended and step.status in open_states}
        assert seen == {
            name: (
                step.kind,
                StepStatus.ABANDONED if name in abandoned else step.status,
                step.attempt,
                step.wake_at,
                None if name in abandoned else step.retry_at,
                step.output,
            )
            for name, step in run.steps.items()
        }

    async def play(self, script: list[tuple[str, int, int, int]]) -> None:
        for _ in range(3):
            await self.start(len(self.runs), 0, 0)
        await self.claim(1, 0, 0)
        steps = (self.begin, self.complete, self.record, self.fail, self.sleep, self.finish)
        runs = (self.start, self.claim, self.park, self.close, self.again, self.stranger, self.renew, self.release)
        acts = {act.__name__: act for act in (*steps, *runs, self.advance, self.fire, self.lapse)}
        for name, one, two, three in script:
            await acts[name](one, two, three)
        for key in self.runs:
            await self.compare(key)
        await check_invariants(self.store)


suppressed = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


@asynccontextmanager
async def fresh_memory_store() -> AsyncIterator[Store]:
    place = memory_place()
    try:
        yield await place.open()
    finally:
        await place.close()


@settings(max_examples=150, deadline=None, suppress_health_check=suppressed)
@given(script=operations)
async def test_sqlite_does_what_the_model_says(script: list[tuple[str, int, int, int]]) -> None:
    async with fresh_memory_store() as store:
        await Pair(store).play(script)


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=suppressed,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(script=operations)
async def test_postgres_does_what_the_model_says(
    migrated_postgres: str, script: list[tuple[str, int, int, int]]
) -> None:
    await empty_postgres(migrated_postgres)
    place = postgres_place(migrated_postgres)
    try:
        await Pair(await place.open()).play(script)
    finally:
        await place.close()
