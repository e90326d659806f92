"""Group commit, against a store that only remembers what it was asked to write."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from kagzi.core import limits
from kagzi.core.effects import NO_EFFECTS, Effects
from kagzi.core.error_details import ErrorCode, ErrorDetail
from kagzi.core.errors import ResourceExhausted, Unavailable
from kagzi.core.limits import Settings
from kagzi.core.records import Lease, Payload, RunKey
from kagzi.core.run.commands import Command, CompleteStep, PauseDiverged
from kagzi.core.run.outcomes import Busy, Deferred, Failed, LeaseLost, Outcome, Recorded, Refused, RunClosed
from kagzi.core.states import RunStatus
from kagzi.engine.commit.journal import Journal
from kagzi.engine.commit.outages import Outages
from kagzi.engine.commit.stuck_runs import StuckRuns
from kagzi.engine.commit.write_queues import WriteQueues
from kagzi.engine.timing.store_clock import StoreClock
from kagzi.store.protocol import LeaseTerms, PendingWork
from kagzi.system import SystemIds
from tests.engine.fakes import TIMEOUT_S, Barrier, MovableClock

Answers = list[tuple[int, Outcome]]


class Notebook:
    """The `write` of a store: one outcome per command, from a script."""

    def __init__(self) -> None:
        self.batches: list[list[Command]] = []
        self.barrier: Barrier | None = None
        self.failures: list[Exception] = []
        self.outcome: Callable[[Command], Outcome] = lambda _: Recorded(1, 1)

    async def poll(self, heartbeats: Sequence[object], now: int) -> PendingWork:
        return PendingWork(now, None, ())

    async def write(self, batch: Sequence[Command], now: int, terms: LeaseTerms) -> tuple[Sequence[Outcome], Effects]:
        assert terms.until > terms.renew_before > now
        self.batches.append(list(batch))
        if self.barrier is not None:
            await self.barrier()
        if self.failures:
            raise self.failures.pop(0)
        return [self.outcome(command) for command in batch], NO_EFFECTS


@pytest.fixture
def notebook() -> Notebook:
    return Notebook()


@pytest.fixture
async def journal(notebook: Notebook) -> AsyncIterator[Journal]:
    journal = make_journal(notebook)
    task = asyncio.create_task(journal.run())
    yield journal
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def make_journal(notebook: Notebook, **options: Any) -> Journal:
    clock = MovableClock()

    def terms(now: int) -> LeaseTerms:
        return LeaseTerms(now + 2, now + 1)

    options = {"stuck": StuckRuns(SystemIds(), rounds=3), "tries": 3, "on_commit": lambda *_: None, **options}
    store_clock = StoreClock(notebook, clock=clock, settings=Settings(), alone=True, on_step=lambda: None)  # type: ignore[arg-type]
    return Journal(notebook, clock=clock, store_clock=store_clock, terms=terms, outages=Outages(clock), **options)


def completion(run: str = "run", step: str = "step", namespace: str = "default", size: int = 0) -> CompleteStep:
    output = Payload(b"x" * size)
    return CompleteStep(run=RunKey(namespace, run), lease=Lease(1, 1), step_id=step, attempt=1, output=output)


async def all_answered(count: int, submit: Callable[[Callable[[Answers], None]], None]) -> list[Answers]:
    """Calls of the sink until so many operations are answered."""
    calls: list[Answers] = []
    done = asyncio.Event()

    def sink(answers: Answers) -> None:
        calls.append(answers)
        if sum(len(call) for call in calls) >= count:
            done.set()

    submit(sink)
    async with asyncio.timeout(TIMEOUT_S):
        await done.wait()
    return calls


async def test_an_idle_journal_writes_at_once(journal: Journal, notebook: Notebook) -> None:
    # No timer is involved: within a few turns of the loop, without any time passing, the batch is with the store.
    task = asyncio.create_task(journal.submit(completion()))
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(notebook.batches) == 1
    assert await task == Recorded(1, 1)


async def test_a_hundred_concurrent_completions_cost_at_most_three_batches(
    journal: Journal, notebook: Notebook
) -> None:
    outcomes = await asyncio.gather(*(journal.submit(completion(f"run-{n}")) for n in range(100)))
    assert outcomes == [Recorded(1, 1)] * 100
    assert len(notebook.batches) <= 3


async def test_while_one_batch_is_written_the_next_gathers(journal: Journal, notebook: Notebook) -> None:
    notebook.barrier = Barrier()
    first = asyncio.create_task(journal.submit(completion("first")))
    await notebook.barrier.arrived.wait()
    rest = [asyncio.create_task(journal.submit(completion(f"run-{n}"))) for n in range(250)]
    await asyncio.sleep(0)
    notebook.barrier.open()
    await asyncio.gather(first, *rest)
    assert [len(batch) for batch in notebook.batches] == [1, limits.BATCH_OPERATIONS, 250 - limits.BATCH_OPERATIONS]


async def test_a_batch_is_limited_to_a_number_of_bytes(journal: Journal, notebook: Notebook) -> None:
    size = limits.BATCH_BYTES // 4
    operations = [(n, completion(f"run-{n}", size=size)) for n in range(9)]
    await all_answered(9, lambda sink: journal.submit_many(operations, sink))
    assert [len(batch) for batch in notebook.batches] == [3, 3, 3]


async def test_an_operation_larger_than_a_batch_is_the_only_large_one_of_its_batch(
    journal: Journal, notebook: Notebook
) -> None:
    large = limits.BATCH_BYTES + 1
    operations = [
        (0, completion("a")),
        (1, completion("b", size=large)),
        (2, completion("c", size=large)),
        (3, completion("d")),
    ]
    await all_answered(4, lambda sink: journal.submit_many(operations, sink))
    batches = [[command.run.run_id for command in batch] for batch in notebook.batches]
    assert sorted(batches[0]) == ["a", "b", "d"], "small ones go before and beside it"
    assert batches[1:] == [["c"]]


async def test_large_operations_keep_no_neighbour_waiting_and_their_own_runs_in_order(
    journal: Journal, notebook: Notebook
) -> None:
    """Of the same namespace as of others: a small operation is in the next batch, however many large ones came before
    it."""
    large = limits.BATCH_BYTES // 3
    operations = [(n, completion(f"large-{n % 5}", f"{n}", size=large if n % 3 else 0)) for n in range(60)]
    operations.append((60, completion("small")))
    notebook.barrier = Barrier()
    blocker = asyncio.create_task(journal.submit(completion("first")))
    await notebook.barrier.arrived.wait()

    def submit(sink: Callable[[Answers], None]) -> None:
        journal.submit_many(operations, sink)
        journal.submit_many([(61, completion("other", "1", "other", large)), (62, completion("b", "2", "other"))], sink)
        assert notebook.barrier is not None
        notebook.barrier.open()

    await all_answered(63, submit)
    await blocker
    following = [command.run.run_id for command in notebook.batches[1]]
    assert "small" in following
    assert "b" in following
    assert "other" in [command.run.run_id for batch in notebook.batches[1:4] for command in batch]
    written = [command for batch in notebook.batches for command in batch if isinstance(command, CompleteStep)]
    for run in range(5):
        steps = [int(command.step_id) for command in written if command.run.run_id == f"large-{run}"]
        assert steps == sorted(steps)
        assert len(steps) == 12


async def test_the_sink_is_called_once_per_commit(journal: Journal) -> None:
    operations = [(n, completion(f"run-{n}")) for n in range(100)]
    calls = await all_answered(100, lambda sink: journal.submit_many(operations, sink))
    assert [len(call) for call in calls] == [100]
    assert [token for token, _ in calls[0]] == list(range(100))


async def test_one_refused_operation_leaves_its_neighbours_alone(journal: Journal, notebook: Notebook) -> None:
    refusal = Refused(ErrorDetail(code=ErrorCode.PRECONDITION_FAILED))
    notebook.outcome = lambda command: refusal if command.run.run_id == "bad" else Recorded(1, 1)
    bad, *good = await asyncio.gather(*(journal.submit(completion(run)) for run in ("bad", "a", "b")))
    assert bad == refusal
    assert good == [Recorded(1, 1)] * 2


async def test_a_batch_that_fails_unforeseen_costs_only_the_culprit(
    journal: Journal, notebook: Notebook, caplog: pytest.LogCaptureFixture
) -> None:
    def outcome(command: Command) -> Outcome:
        if command.run.run_id == "bad":
            raise ArithmeticError("a bug in the store")
        return Recorded(1, 1)

    notebook.outcome = outcome
    outcomes = await asyncio.gather(*(journal.submit(completion(run)) for run in ("a", "bad", "b")))
    assert outcomes[0] == outcomes[2] == Recorded(1, 1)
    assert isinstance(outcomes[1], Refused)
    assert outcomes[1].error.code is ErrorCode.INTERNAL
    assert "ArithmeticError" not in outcomes[1].error.message  # callers learn nothing of the inside
    assert "ArithmeticError" in caplog.text
    assert f"incident {outcomes[1].error.metadata['incident']}: " in caplog.text
    assert (
        sum(command.run.run_id == "bad" for batch in notebook.batches for command in batch) == 8
    )  # 4 times, each alone, too


async def test_an_operation_that_the_store_failed_on_once_is_recorded_in_order(
    journal: Journal, notebook: Notebook
) -> None:
    failures = 2

    def outcome(command: Command) -> Outcome:
        nonlocal failures
        if command.run.run_id == "bad" and failures:
            failures -= 1
            return Failed("XX000")
        return Recorded(1, 1)

    notebook.outcome = outcome
    operations = [(0, completion("bad", "a")), (1, completion("good")), (2, completion("bad", "b"))]
    calls = await all_answered(3, lambda sink: journal.submit_many(operations, sink))
    assert calls == [[(1, Recorded(1, 1))], [(0, Recorded(1, 1)), (2, Recorded(1, 1))]]


@pytest.mark.parametrize("pausable", [True, False])
async def test_a_run_that_the_store_keeps_failing_on_is_paused_with_the_number_of_an_incident(
    journal: Journal, notebook: Notebook, caplog: pytest.LogCaptureFixture, pausable: bool
) -> None:
    def outcome(command: Command) -> Outcome:
        if isinstance(command, PauseDiverged) and pausable:
            return RunClosed(2, 2, RunStatus.PAUSED)
        return Failed("XX000: a page is damaged")

    notebook.outcome = outcome
    for _ in range(2):  # handed back by its worker and offered again
        refused = await journal.submit(completion("bad"))
        assert isinstance(refused, Refused)
        assert refused.error.code is ErrorCode.INTERNAL
    last = await journal.submit(completion("bad"))
    pauses = [command for batch in notebook.batches for command in batch if isinstance(command, PauseDiverged)]
    pause = pauses[0]
    number = pause.problem.metadata["incident"]
    assert number in pause.problem.message
    assert "XX000" not in pause.problem.message
    assert f"incident {number}: the store fails on CompleteStep of run bad: XX000: a page is damaged" in caplog.text
    if pausable:
        assert last == LeaseLost()  # its worker lets go of it
    else:
        assert isinstance(last, Refused)
        assert last.error.code is ErrorCode.INTERNAL


async def test_a_greedy_namespace_gets_its_share_and_no_more(journal: Journal, notebook: Notebook) -> None:
    notebook.barrier = Barrier()
    first = asyncio.create_task(journal.submit(completion("first")))
    await notebook.barrier.arrived.wait()
    greedy = [(n, completion(f"greedy-{n}", namespace="greedy")) for n in range(1_000)]
    journal.submit_many(greedy, lambda _: None)
    modest = [(n, completion(f"modest-{n}", namespace="modest")) for n in range(10)]
    answered = asyncio.create_task(all_answered(10, lambda sink: journal.submit_many(modest, sink)))
    await asyncio.sleep(0)
    notebook.barrier.open()
    await first
    await answered
    namespaces = [command.run.namespace for command in notebook.batches[1]]
    assert namespaces.count("modest") == 10  # all of it in the very next batch
    assert namespaces.count("greedy") == limits.BATCH_OPERATIONS - 10  # and what it does not use goes to the other


async def test_three_namespaces_share_a_batch_equally(journal: Journal, notebook: Notebook) -> None:
    for namespace in ("a", "b", "c"):
        operations = [(n, completion(f"{namespace}-{n}", namespace=namespace)) for n in range(200)]
        journal.submit_many(operations, lambda _: None)
    await journal.submit(completion("last", namespace="d"))
    shares = [command.run.namespace for command in notebook.batches[0]]
    assert [shares.count(namespace) for namespace in "abcd"] == [67, 66, 66, 1]  # of 200


async def test_a_locked_run_waits_aside_in_order_and_the_others_proceed(journal: Journal, notebook: Notebook) -> None:
    locked = 3

    def outcome(command: Command) -> Outcome:
        return Busy() if command.run.run_id == "locked" and locked > 0 else Recorded(1, 1)

    notebook.outcome = outcome
    operations = [(n, completion("locked", f"step-{n}")) for n in range(5)]
    answered = asyncio.create_task(
        all_answered(
            7,
            lambda sink: journal.submit_many(
                [*operations[:2], (9, completion("free")), *operations[2:], (10, completion("locked", "step-5"))],
                sink,
            ),
        )
    )
    await asyncio.sleep(0)
    behind = asyncio.create_task(journal.submit(completion("locked", "step-6")))
    while locked:
        assert await journal.submit(completion("other")) == Recorded(1, 1)  # a locked row blocks nobody else
        locked -= 1
        assert not behind.done()
    calls = await answered
    assert await behind == Recorded(1, 1)
    written = [command for batch in notebook.batches for command in batch if command.run.run_id == "locked"]
    assert [command.step_id for command in written if isinstance(command, CompleteStep)][-7:] == [
        f"step-{n}" for n in range(7)
    ]
    tokens = [token for call in calls for token, _ in call]
    assert tokens[0] == 9
    assert tokens[1:] == [0, 1, 2, 3, 4, 10]


async def test_a_run_that_stays_locked_is_refused_as_unavailable(journal: Journal, notebook: Notebook) -> None:
    notebook.outcome = lambda _: Busy()
    outcome = await asyncio.wait_for(journal.submit(completion()), TIMEOUT_S)
    assert isinstance(outcome, Refused)
    assert outcome.error.code is ErrorCode.UNAVAILABLE
    assert len(notebook.batches) == 4


async def test_an_outage_is_waited_out_and_nothing_is_lost(journal: Journal, notebook: Notebook) -> None:
    notebook.failures = [Unavailable("gone"), Unavailable("still gone")]
    operations = [(n, completion(f"run-{n}")) for n in range(10)]
    calls = await all_answered(10, lambda sink: journal.submit_many(operations, sink))
    assert calls == [[(n, Recorded(1, 1)) for n in range(10)]]
    assert notebook.batches == [notebook.batches[0]] * 3


async def test_an_outage_that_lasts_too_long_fails_every_caller_with_a_reason(notebook: Notebook) -> None:
    journal = make_journal(notebook, outage_limit_s=0.0)
    notebook.failures = [Unavailable("gone")]
    task = asyncio.create_task(journal.run())
    outcomes = await asyncio.wait_for(
        asyncio.gather(*(journal.submit(completion(f"run-{n}")) for n in range(150))), TIMEOUT_S
    )
    assert all(isinstance(outcome, Refused) and outcome.error.code is ErrorCode.UNAVAILABLE for outcome in outcomes)
    assert await journal.submit(completion()) == Recorded(1, 1)  # and it goes on when the store is back
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_batch_in_flight_survives_the_death_of_the_loop(notebook: Notebook) -> None:
    journal = make_journal(notebook)
    notebook.barrier = Barrier()
    task = asyncio.create_task(journal.run())
    answer = asyncio.create_task(journal.submit(completion()))
    await notebook.barrier.arrived.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    notebook.barrier.open()
    again = asyncio.create_task(journal.run())
    assert await asyncio.wait_for(answer, TIMEOUT_S) == Recorded(1, 1)
    again.cancel()
    await asyncio.gather(again, return_exceptions=True)


async def test_a_full_queue_refuses_callers_and_holds_sessions_back(
    journal: Journal, notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "JOURNAL_QUEUE_OPERATIONS", 10)
    notebook.barrier = Barrier()
    first = asyncio.create_task(journal.submit(completion("first")))
    await notebook.barrier.arrived.wait()
    journal.submit_many([(n, completion(f"run-{n}")) for n in range(10)], lambda _: None)
    with pytest.raises(ResourceExhausted, match="limit") as refusal:
        await journal.submit(completion())
    assert refusal.value.retry_after is not None
    assert await journal.wait_for_capacity("another") is None  # others have room
    waiting = asyncio.create_task(journal.wait_for_capacity("default"))
    await asyncio.sleep(0)
    assert not waiting.done()
    notebook.barrier.open()
    await asyncio.wait_for(waiting, TIMEOUT_S)
    await first


async def test_what_the_store_defers_comes_first_in_the_next_batch_and_in_order(
    journal: Journal, notebook: Notebook
) -> None:
    """As often as it takes: each batch gets on by at least one, so that nothing is counted."""
    left = [100]

    def one_a_batch(command: Command) -> Outcome:
        left[0] -= 1
        return Recorded(left[0], 1) if command is notebook.batches[-1][0] else Deferred()

    notebook.outcome = one_a_batch
    commands = [completion("run", f"step-{n}") for n in range(50)]

    def submit(sink: Callable[[Answers], None]) -> None:
        journal.submit_many(list(enumerate(commands)), sink)

    answers = [answer for commit in await all_answered(50, submit) for answer in commit]
    assert [token for token, _ in answers] == list(range(50))
    assert [batch[0] for batch in notebook.batches] == commands


async def test_a_blocked_sink_waits_while_others_proceed(journal: Journal, notebook: Notebook) -> None:
    received: Answers = []
    all_received = asyncio.Event()

    def deaf(answers: Answers) -> None:
        received.extend(answers)
        if len(received) == 4:
            all_received.set()

    journal.hold_back(deaf)
    journal.submit_many([(n, completion("of-the-deaf", f"step-{n}")) for n in range(3)], deaf)
    assert await asyncio.wait_for(journal.submit(completion("other")), TIMEOUT_S) == Recorded(1, 1)
    journal.submit_many([(3, completion("of-the-deaf", "step-3"))], deaf)
    assert await asyncio.wait_for(journal.submit(completion("other")), TIMEOUT_S) == Recorded(1, 1)
    assert received == []
    journal.unblock(deaf)
    await asyncio.wait_for(all_received.wait(), TIMEOUT_S)
    assert [token for token, _ in received] == [0, 1, 2, 3]


async def test_operations_of_a_blocked_sink_are_written_when_the_journal_stops(journal: Journal) -> None:
    received: Answers = []
    deaf = received.extend
    journal.hold_back(deaf)
    journal.submit_many([(1, completion("of-the-deaf"))], deaf)
    await journal.submit(completion("other"))
    await journal.stop(TIMEOUT_S)
    assert received == [(1, Recorded(1, 1))]


async def test_all_namespaces_together_keep_no_more_than_the_total_and_each_has_its_share(notebook: Notebook) -> None:
    """However many there are: one more that fills the total leaves the others what they need."""
    journal = make_journal(notebook, queues=WriteQueues(total_bytes=8 * limits.MIB))
    sizes = dict.fromkeys((f"ns-{n}" for n in range(40)), 0)

    def fill(namespace: str) -> None:
        while True:
            operation = completion("run", namespace=namespace, size=limits.MIB // 4)
            journal.submit_many([(0, operation)], lambda _: None)
            sizes[namespace] += len(operation.output.data)

    for namespace in sizes:
        with pytest.raises(ResourceExhausted, match="journal_total_bytes"):
            fill(namespace)
    greedy, *others = sizes.values()
    assert greedy <= 9 * limits.MIB
    assert all(limits.JOURNAL_SHARE_BYTES <= size <= limits.JOURNAL_SHARE_BYTES + limits.MIB for size in others[8:])
    journal.submit_many([(0, completion("run", namespace="late"))], lambda _: None)  # who has little to say is heard
    assert await journal.wait_for_capacity("late") is None
    task = asyncio.create_task(journal.run())
    await asyncio.wait_for(journal.wait_for_capacity("ns-0"), TIMEOUT_S)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_stopping_writes_what_is_there_and_takes_no_more(journal: Journal, notebook: Notebook) -> None:
    waiting = [asyncio.create_task(journal.submit(completion(f"run-{n}"))) for n in range(250)]
    await asyncio.sleep(0)
    await journal.stop(TIMEOUT_S)
    assert await asyncio.gather(*waiting) == [Recorded(1, 1)] * 250
    with pytest.raises(Unavailable, match="stopping"):
        await journal.submit(completion())


async def test_a_sink_that_fails_harms_no_other(journal: Journal, caplog: pytest.LogCaptureFixture) -> None:
    def broken(answers: Answers) -> None:
        raise RuntimeError("the stream is gone")

    journal.submit_many([(0, completion("a"))], broken)
    assert await journal.submit(completion("b")) == Recorded(1, 1)
    assert "could not be delivered" in caplog.text
