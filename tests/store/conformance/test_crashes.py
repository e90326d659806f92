"""Accepted means kept (P1): over closing, killing and broken connections at any moment, nothing acknowledged is
lost."""

import asyncio
import random
import signal
import sys
from pathlib import Path

import asyncpg
import pytest

from kagzi.core.errors import Unavailable
from kagzi.core.records import Lease, NamespaceRecord, Payload, RunKey, RunLease
from kagzi.core.run.commands import Command
from kagzi.core.run.outcomes import Begun, Existing, Known, Outcome, Recorded, RunClosed, Started
from kagzi.core.states import RunStatus, StepStatus
from tests.support.clock import FakeClock
from tests.support.providers import CountingIds
from tests.support.timeouts import LOADED_MACHINE_S

from .invariants import check_invariants
from .places import Place, connected, file_place
from .verbs import STEADY, StoreHarness, begin, by_id, complete, complete_run, fail, payload, the

REPOSITORY = Path(__file__).resolve().parents[3]


async def test_everything_is_there_after_a_restart(durable_place: Place, clock: FakeClock, ids: CountingIds) -> None:
    store = await durable_place.open()
    harness = StoreHarness(store, clock, ids)
    ended = await harness.running(workflow_id="ended", input=Payload(b"\x00", {"a": "b"}), labels={"k": "v"})
    await harness.do(complete_run(ended))
    asleep = await harness.asleep(workflow_id="asleep")
    running = await harness.running(workflow_id="running")
    await harness.done(running, "a", "kept")
    await harness.write(begin(running, "b", retry=STEADY), fail(running, "b"))
    pending = await harness.start("pending", retry=STEADY)
    await harness.register("worker-1", labels={"zone": "1"})
    await store.put_namespace(NamespaceRecord(namespace="small", open_runs_limit=3), clock.now())
    runs = [ended.run, asleep.run, running.run, pending]
    before = [await harness.picture(run) for run in runs]
    worker = await store.get_worker("default", "worker-1")
    await store.close()

    store = await durable_place.open()
    harness = StoreHarness(store, clock, ids)
    assert [await harness.picture(run) for run in runs] == before
    assert await store.get_worker("default", "worker-1") == worker
    small = await store.get_namespace("small")
    assert small is not None
    assert small.open_runs_limit == 3
    the(Recorded, (await harness.write(begin(running, "c"), complete(running, "c")))[1])
    assert (await harness.do(harness.start_command("pending"))) == Existing(
        pending.run_id, "pending", RunStatus.PENDING
    )
    clock.advance(s=60)
    await harness.fire()
    claimed = {one.run: one for one in await harness.claim()}
    assert set(claimed) == {asleep.run, running.run, pending}
    assert by_id(claimed[running.run].history.steps)["a"].output == payload("kept")
    assert claimed[running.run].lease.counter == 2


async def test_closing_twice_is_closing_once(place: Place) -> None:
    store = await place.open()
    await store.close()
    await store.close()


async def test_nothing_acknowledged_is_lost_with_a_killed_process(tmp_path: Path) -> None:
    place = await file_place(tmp_path)
    acknowledged: list[list[str]] = []
    for round_number, kill_after in enumerate((1, 7, 23, 60)):
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.store.conformance.crash_child",
            place.address,
            str(round_number),
            stdout=asyncio.subprocess.PIPE,
            cwd=REPOSITORY,
        )
        assert child.stdout is not None
        try:
            async with asyncio.timeout(LOADED_MACHINE_S):
                acknowledged += [(await child.stdout.readline()).decode().split() for _ in range(kill_after)]
        finally:
            child.kill()
            rest = await child.stdout.read()
            assert await child.wait() == -signal.SIGKILL
        *whole, _maybe_incomplete = rest.decode().split("\n")
        acknowledged.extend(line.split() for line in whole)

    store = await place.open()
    for kind, run_id, *more in acknowledged:
        run = RunKey("default", run_id)
        record = await store.get_run("default", run_id=run_id)
        assert record is not None, f"run {run_id} was acknowledged and is gone"
        if kind == "step":
            step = await store.get_step(run, more[0])
            assert step is not None
            assert (step.status, step.seq) == (StepStatus.COMPLETED, int(more[1]))
            assert step.output == payload(f"{run_id}/{more[0]}")
        if kind == "end":
            assert (record.status, record.output) == (RunStatus.COMPLETED, payload(run_id))
    assert len(acknowledged) >= 91
    runs = await check_invariants(store)
    assert len(runs) >= len({line[1] for line in acknowledged})
    await place.close()


ROUNDS, MOST_ROUNDS, HITS = 25, 500, 5


class Saboteur:
    """Ends backends of the database while they work. Counts only those that were in the middle of something."""

    def __init__(self, connection: asyncpg.Connection, seed: int) -> None:
        self._connection = connection
        self._rng = random.Random(seed)
        self.hits = 0

    async def strike(self) -> None:
        """After a moment that is different every time, until somebody was hit or the moment has passed."""
        # The moment is the subject: any statement of a batch may be the one that is interrupted.
        await asyncio.sleep(self._rng.random() * 0.003)
        for _ in range(12):
            ended = await self._connection.fetchval(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle'"
            )
            self.hits += ended
            if ended:
                return


async def until_answered(harness: StoreHarness, commands: list[Command]) -> list[Outcome]:
    """As the engine does: while the store cannot say what became of a batch, it is sent again."""
    async with asyncio.timeout(LOADED_MACHINE_S):
        while True:
            try:
                return await harness.write(*commands)
            except Unavailable:
                await asyncio.sleep(0)


@pytest.mark.parametrize("seed", [1, 2])
async def test_nothing_is_lost_or_doubled_when_a_connection_breaks_in_the_middle_of_anything(
    postgres_alone: Place, clock: FakeClock, ids: CountingIds, seed: int
) -> None:
    store = await postgres_alone.open()
    harness = StoreHarness(store, clock, ids)
    async with connected(postgres_alone.address) as connection:
        saboteur = Saboteur(connection, seed)
        outputs: dict[tuple[RunKey, str], str] = {}
        number = 0
        while number < ROUNDS or (saboteur.hits < HITS and number < MOST_ROUNDS):  # a quick machine is hard to hit
            number += 1
            assignments = [harness.assignment() for _ in range(8)]
            starts = [harness.start_command(f"{number}-{n}", assignment=one) for n, one in enumerate(assignments)]
            holdings = [
                RunLease(start.run, Lease(1, one.nonce)) for start, one in zip(starts, assignments, strict=True)
            ]
            steps: list[Command] = []
            for holding in holdings:
                for name in ("a", "b"):
                    outputs[holding.run, name] = f"{number}/{name}"
                    steps += [begin(holding, name), complete(holding, name, outputs[holding.run, name])]
            endings: list[Command] = [complete_run(holding, "end") for holding in holdings]
            for batch, kinds in (
                (starts, (Started, Existing)),
                (steps, (Begun, Known, Recorded)),
                (endings, (RunClosed,)),
            ):
                outcomes, _ = await asyncio.gather(until_answered(harness, list(batch)), saboteur.strike())
                assert all(isinstance(outcome, kinds) for outcome in outcomes), outcomes

    assert saboteur.hits >= HITS, "the connections were hardly touched: this proves nothing"
    runs = await check_invariants(store)
    assert len(runs) == number * 8
    assert {run.status for run in runs} == {RunStatus.COMPLETED}
    for (run, name), output in outputs.items():
        step = await store.get_step(run, name)
        assert step is not None
        assert (step.status, step.output, step.attempt) == (StepStatus.COMPLETED, payload(output), 1)


async def test_a_store_whose_connections_were_all_broken_serves_again(
    postgres_alone: Place, clock: FakeClock, ids: CountingIds
) -> None:
    store = await postgres_alone.open()
    harness = StoreHarness(store, clock, ids)
    run = await harness.start()
    async with connected(postgres_alone.address) as connection:
        await connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
    async with asyncio.timeout(LOADED_MACHINE_S):
        while True:
            try:
                claimed = await harness.claim()
                break
            except Unavailable:
                await asyncio.sleep(0)
    assert [one.run for one in claimed] == [run]
