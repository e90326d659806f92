"""SQLite and PostgreSQL, told the same things, look the same: signals, children, races, pauses and all."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from kagzi.core.effects import NO_EFFECTS, Effects
from kagzi.core.records import HistoryStep, RunKey, RunLease, RunRecord, StepRecord
from kagzi.core.run import outcomes as o
from kagzi.core.run.commands import SignalReplacement
from kagzi.core.run.misfits import Misfit, problem_of
from kagzi.core.states import RunStatus, StepStatus
from tests.support.clock import FakeClock
from tests.support.providers import CountingIds

from .invariants import check_run, check_waits
from .places import empty_postgres, memory_place, postgres_place
from .verbs import (
    AT_ONCE,
    CLEANUP_US,
    LEASE_US,
    STEADY,
    StoreHarness,
    acknowledge_cancel,
    beat,
    begin,
    complete,
    complete_run,
    continue_as,
    diverged,
    fail,
    fail_run,
    fetch,
    finish,
    hand_back,
    leased,
    park,
    patch,
    payload,
    race,
    say_status,
    show,
    sleep,
    wait_signal,
)

STEPS = ("a", "b", "nap", "approved", "child", "child#2", "race", "none")
small = st.integers(0, 7)
ACTS = (
    *(
        "start",
        "claim",
        "begin",
        "complete",
        "fail",
        "sleep",
        "wait",
        "signal",
        "child",
        "park",
        "ask",
        "race",
        "close",
    ),
    *("claim", "park", "signal", "claim", "child", "wait", "close"),  # more often: what makes things go on
    *(
        "cancel",
        "terminate",
        "pause",
        "resume",
        "retry",
        "fork",
        "continue",
        "diverge",
        "build",
        "cascade",
        "throttled",
    ),
    *("finish", "misfit", "replace", "replace", "reserved"),
    *("advance", "fire", "lapse", "release"),
)
scripts = st.lists(st.tuples(st.sampled_from(ACTS), small, small, small), min_size=10, max_size=60)


def shape_of_run(run: RunRecord) -> object:
    asleep = (run.wait_reason, run.wake_at, frozenset(run.waits))
    end = (run.finished_at, run.output, run.error, run.continued_as)
    links = (run.workflow_id, run.parent_run_id, run.parent_step_id, run.forked_from)
    suspension = (
        run.pause_requested,
        run.pause_reason if not run.status.ended else "",
        run.blocked_by,
        run.problem,
    )
    reported = (run.status_text, run.progress, run.state)
    return run.status, asleep, end, links, suspension, run.attempt, run.lost_leases, run.cancel_requested, reported


def shape_of_step(step: StepRecord) -> object:
    open_until = (step.wake_at, step.retry_at) if step.finished_at is None else None
    attempts = [(each.attempt, each.error, each.input, each.before_retry) for each in step.attempts]
    return step.kind, step.status, step.attempt, step.output, step.error, open_until, step.child_run_id, attempts


UNLIKE = ("seq",)
"""The stores have the order of seqs in common, not their gaps (ADR 0074)."""


def outcome_of(outcome: Any) -> object:
    """What a command came to; refusals word for word."""
    if isinstance(outcome, o.Known):
        step = outcome.step
        return "Known", step.step_id, step.status, step.attempt, step.output, step.error
    if isinstance(outcome, o.NotParked):
        return "NotParked", frozenset(step.step_id for step in outcome.results)
    if not isinstance(outcome, msgspec.Struct):
        return outcome if isinstance(outcome, (bool, RunStatus)) else None
    fields = {name: value for name, value in msgspec.structs.asdict(outcome).items() if name not in UNLIKE}
    if isinstance(outcome, o.Fetched):
        fields["results"] = renumbered(outcome.results)
    return type(outcome).__name__, fields


def renumbered(results: Sequence[HistoryStep]) -> list[HistoryStep]:
    """Results with 0, 1, 2, ... for their seqs, in the same order."""
    seqs = sorted({seq for step in results for seq in (step.begun_seq, step.seq)})
    place = {seq: number for number, seq in enumerate(seqs)}
    return [msgspec.structs.replace(each, begun_seq=place[each.begun_seq], seq=place[each.seq]) for each in results]


def effects_of(effects: Effects) -> object:
    """Without the leases, whose nonces each store draws for itself."""
    notices = {(notice.leased.run, notice.event, notice.worker_id, notice.reason) for notice in effects.notices}
    ended = {end.run: end for end in effects.ended}
    sets = (set(effects.pending), set(effects.released), set(effects.due), set(effects.changed))
    return notices, ended, sets, effects.children_due


def order_of(steps: dict[str, StepRecord]) -> list[str]:
    """Steps and results in the order of their seqs, which may have gaps."""
    entries = [(step.begun_seq, 0, f"begin {step.step_id}") for step in steps.values()]
    ended = [step for step in steps.values() if step.status in (StepStatus.COMPLETED, StepStatus.FAILED)]
    entries += [(step.seq, 1, f"end {step.step_id}") for step in ended]
    return [text for *_, text in sorted(entries)]


class Player:
    """One store, playing the script. Two of them draw the same ids at the same times."""

    def __init__(self, harness: StoreHarness) -> None:
        self.harness = harness
        self.runs: list[RunKey] = []
        self.tokens: list[RunLease] = []
        self.serial = 0

    async def act(self, name: str, one: int, two: int, three: int) -> object:
        self.harness.clock.advance(us=1)  # nothing happens at the same time: no ties between claims
        self.serial += 1
        act: Callable[[int, int, int], Awaitable[Any]] = getattr(self, f"do_{name}")
        self.harness.effects = NO_EFFECTS
        outcome = outcome_of(await act(one, two, three))
        return outcome, effects_of(self.harness.effects)

    def token(self, which: int) -> RunLease | None:
        if not self.tokens:
            return None
        return self.tokens[-1 - which % min(len(self.tokens), 4)]

    def run(self, which: int) -> RunKey:
        return self.runs[which % len(self.runs)]

    async def say(self, which: int, make: Callable[[RunLease], Any]) -> Any:
        token = self.token(which)
        return None if token is None else await self.harness.do(make(token))

    async def do_start(self, which: int, retry: int, with_signal: int) -> Any:
        signal = self.harness.signal_request(value=f"{self.serial}") if with_signal == 7 else None
        policy = (None, AT_ONCE, STEADY)[retry % 3] if retry > 4 else None
        blocked_by = self.run(which).run_id if self.runs and with_signal == 6 else ""
        command = self.harness.start_command(f"id-{which % 5}", retry=policy, signal=signal, blocked_by=blocked_by)
        self.runs.append(command.run)
        return await self.harness.do(command)

    async def do_claim(self, limit: int, kind: int, _c: int) -> Any:
        workflow_type = "child" if kind % 3 == 0 else "hello"
        claimed = await self.harness.claim(workflow_type=workflow_type, limit=limit % 3 + 1)
        claimed.sort(key=lambda one: one.run.run_id)
        self.tokens += [leased(one) for one in claimed]
        for one in claimed:  # what came due while nobody held it is resolved at the claim, or when its holder asks
            await self.harness.do(fetch(leased(one)))

    async def do_begin(self, token: int, step: int, cleanup: int) -> Any:
        policy = (None, AT_ONCE, STEADY)[step % 3]
        return await self.say(
            token,
            lambda holding: begin(
                holding, STEPS[step % 2], (0, 1, 2)[cleanup % 3], retry=policy, cleanup=cleanup > 4, once=step > 5
            ),
        )

    async def do_complete(self, token: int, step: int, value: int) -> Any:
        return await self.say(token, lambda holding: complete(holding, STEPS[step % 2], f"{value}", 0))

    async def do_fail(self, token: int, step: int, value: int) -> Any:
        arguments = payload(f"{value}") if value % 2 else None
        return await self.say(
            token, lambda holding: msgspec.structs.replace(fail(holding, STEPS[step % 2], attempt=0), input=arguments)
        )

    async def do_finish(self, token: int, _b: int, _c: int) -> Any:
        return await self.say(token, lambda holding: finish(holding, "nap"))

    async def do_reserved(self, token: int, _b: int, _c: int) -> Any:
        return await self.say(token, lambda holding: begin(holding, "$output"))

    async def do_misfit(self, token: int, which: int, _c: int) -> Any:
        step_id = ("approved", "approved#2")[which % 2]
        misfit = Misfit(signal="approved", step_id=step_id, seq=1, expected="int", why="no")
        return await self.say(token, lambda holding: diverged(holding, problem=problem_of(misfit, "flow.py:1")))

    async def do_replace(self, which: int, request: int, drop: int) -> Any:
        change = SignalReplacement(
            name="approved",
            payload=None if drop > 4 else payload(f"{self.serial}"),
            request_id=f"request-{request}" if request < 3 else f"replace-{self.serial}",
        )
        outcome, self.harness.effects = await self.harness.store.replace_signal(
            "default", run_id=self.run(which).run_id, change=change, now=self.harness.now
        )
        return outcome

    async def do_sleep(self, token: int, s: int, cleanup: int) -> Any:
        return await self.say(token, lambda holding: sleep(holding, "nap", s=s, cleanup=cleanup > 4))

    async def do_wait(self, token: int, which: int, s: int) -> Any:
        step_id = ("approved", "approved#2")[which % 2]
        limit = s if s > 3 else None
        return await self.say(token, lambda holding: wait_signal(holding, "approved", step_id=step_id, s=limit))

    async def do_signal(self, which: int, request: int, name: int) -> Any:
        sent = self.harness.signal_request(
            "approved" if name < 6 else "other", f"{self.serial}", f"request-{request}" if request < 2 else ""
        )
        outcome, self.harness.effects = await self.harness.store.signal_run(
            "default", run_id=self.run(which).run_id, signal=sent, now=self.harness.now
        )
        return outcome

    async def do_child(self, token: int, step: int, how: int) -> Any:
        step_id = ("child", "child#2")[step % 2]
        command = self.token(token)
        if command is None:
            return None
        child = self.harness.child_command(
            command,
            step_id,
            workflow_id=f"child-{how % 2}" if how > 3 else "",
            attach=how > 5,
            on_close="abandon" if step > 5 else "cancel",
        )
        self.runs.append(child.start.run)
        return await self.harness.do(child)

    async def do_park(self, token: int, known: int, _c: int) -> Any:
        return await self.say(token, lambda holding: park(holding, known_seq=0 if known == 0 else 1_000_000))

    async def do_ask(self, token: int, _b: int, _c: int) -> Any:
        return await self.say(token, fetch)

    async def do_race(self, token: int, winner: int, losers: int) -> Any:
        lost = [name for number, name in enumerate(STEPS[:6]) if (losers + 1) >> (number % 3) & 1]
        return await self.say(token, lambda holding: race(holding, "race", STEPS[winner % 2], *lost))

    async def do_close(self, token: int, how: int, _c: int) -> Any:
        endings = (
            complete_run,
            fail_run,
            hand_back,
            complete_run,
            acknowledge_cancel,
            fail_run,
            complete_run,
            hand_back,
        )
        return await self.say(token, endings[how])

    async def do_throttled(self, token: int, how: int, value: int) -> Any:
        makes = (
            lambda holding: say_status(holding, f"{value}", value / 7),
            lambda holding: show(holding, f"{value}"),
            lambda holding: patch(holding, "patch"),
            lambda holding: beat(holding, "a", f"{value}"),
        )
        return await self.say(token, makes[how % 4])

    async def do_cancel(self, which: int, _b: int, _c: int) -> Any:
        return await self.harness.cancel(self.run(which))

    async def do_terminate(self, which: int, _b: int, _c: int) -> Any:
        return await self.harness.terminate(self.run(which)) if await self.known(which) else None

    async def do_pause(self, which: int, _b: int, _c: int) -> Any:
        return await self.harness.pause(self.run(which), f"wait {self.serial}") if await self.known(which) else None

    async def do_resume(self, which: int, _b: int, _c: int) -> Any:
        return await self.harness.resume(self.run(which)) if await self.known(which) else None

    async def do_retry(self, which: int, step: int, _c: int) -> Any:
        return await self.harness.retry(self.run(which), STEPS[step] if step < 3 else "")

    async def do_fork(self, which: int, step: int, _c: int) -> Any:
        new = RunKey("default", self.harness.ids.run_id(self.harness.now))
        self.runs.append(new)
        return await self.harness.fork(self.run(which), STEPS[step], new_run_id=new.run_id)

    async def do_continue(self, token: int, _b: int, _c: int) -> Any:
        new = RunKey("default", self.harness.ids.run_id(self.harness.now))
        self.runs.append(new)
        return await self.say(token, lambda holding: continue_as(holding, new.run_id))

    async def do_diverge(self, token: int, build: int, _c: int) -> Any:
        return await self.say(token, lambda holding: diverged(holding, f"build-{build % 2}"))

    async def do_build(self, build: int, kind: int, _c: int) -> Any:
        return await self.harness.new_build(f"build-{build % 3}", workflow_type="child" if kind > 5 else "hello")

    async def do_cascade(self, _a: int, _b: int, _c: int) -> Any:
        self.harness.effects = await self.harness.cascade()

    async def do_advance(self, s: int, _b: int, _c: int) -> None:
        self.harness.clock.advance(s=s)

    async def do_fire(self, _a: int, _b: int, _c: int) -> Any:
        await self.harness.fire(end_leases=False)

    async def do_lapse(self, long: int, cap: int, _c: int) -> Any:
        self.harness.clock.advance(us=CLEANUP_US if long == 7 else LEASE_US + 1)
        await self.harness.fire(claim_cap=cap + 1)

    async def do_release(self, which: int, _b: int, _c: int) -> Any:
        token = self.token(which)
        if token is not None:
            self.harness.effects = await self.harness.store.release([token], self.harness.now)

    async def known(self, which: int) -> bool:
        return await self.harness.store.get_run("default", run_id=self.run(which).run_id) is not None

    async def forgotten(self, run: RunKey) -> list[tuple[object, ...]]:
        rows = await self.harness.store.list_forgotten_steps(run, name=None, after=None, limit=1_000, payloads=True)
        assert rows is not None
        return [(step.step_id, step.retried_at, step.finished_at, shape_of_step(step)) for step in rows.rows]

    async def picture(self) -> list[Any]:
        """Everything that can be seen, and whether it is in order."""
        seen: list[Any] = []
        for run in sorted(set(self.runs), key=lambda each: each.run_id):
            record = await self.harness.store.get_run("default", run_id=run.run_id)
            if record is None:
                continue
            steps = await self.harness.steps(run)
            check_run(record)
            await check_waits(self.harness.store, record, list(steps.values()))
            shapes = {name: shape_of_step(step) for name, step in steps.items()}
            seen.append((run.run_id, shape_of_run(record), order_of(steps), shapes, await self.forgotten(run)))
        work = await self.harness.poll()
        seen.append((work.next_due_at, sorted(work.pending), work.cascade))
        return seen


@asynccontextmanager
async def two_players(url: str) -> AsyncIterator[tuple[Player, Player]]:
    await empty_postgres(url)
    memory, database = memory_place(), postgres_place(url)
    try:
        stores = [await place.open() for place in (memory, database)]
        one, other = (Player(StoreHarness(store, FakeClock(), CountingIds())) for store in stores)
        yield one, other
    finally:
        await memory.close()
        await database.close()


suppressed = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
CANCELLED_TWICE = [("cancel", 0, 0, 0), ("cancel", 0, 0, 0), ("race", 2, 0, 0), ("ask", 2, 0, 0)]
"""Each request to cancel a run that is held takes a seq on PostgreSQL and none on SQLite."""
SCRIPTS = int(os.environ.get("KAGZI_TEST_SCRIPTS", "8"))  # `make fast-path`: 500


@pytest.mark.timeout(300 + 10 * SCRIPTS)
@settings(
    max_examples=SCRIPTS,
    deadline=None,
    suppress_health_check=suppressed,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(script=scripts)
@example(script=CANCELLED_TWICE)
async def test_both_stores_do_the_same(migrated_postgres: str, script: list[tuple[str, int, int, int]]) -> None:
    beginning = [("start", 0, 0, 0), ("start", 1, 0, 0), ("claim", 1, 1, 0), ("child", 0, 0, 0), ("claim", 0, 0, 0)]
    async with two_players(migrated_postgres) as (sqlite, postgres):
        for number, (name, *numbers) in enumerate([*beginning, *script]):
            one, other = await sqlite.act(name, *numbers), await postgres.act(name, *numbers)
            assert one == other, f"number {number}, {name} {numbers}"
            assert await sqlite.picture() == await postgres.picture(), f"after number {number}, {name} {numbers}"


@settings(max_examples=100, deadline=None, suppress_health_check=suppressed)
@given(script=scripts)
async def test_whatever_is_done_the_picture_is_in_order(script: list[tuple[str, int, int, int]]) -> None:
    place = memory_place()
    try:
        player = Player(StoreHarness(await place.open(), FakeClock(), CountingIds()))
        await player.act("start", 0, 0, 0)
        for name, *numbers in script:
            await player.act(name, *numbers)
            await player.picture()
    finally:
        await place.close()
