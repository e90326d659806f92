"""What waits to be written, in any order of events: nothing is lost, a run's operations stay in order, and the count is
right."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kagzi.core import limits
from kagzi.core.records import Lease, Payload, RunKey
from kagzi.core.run.commands import CompleteStep
from kagzi.engine.commit.weights import weight_bytes
from kagzi.engine.commit.write_queues import Entry, WriteQueues

RUNS = ("a", "b", "c")
SIZES = (0, limits.BATCH_BYTES // 3, limits.BATCH_BYTES + 1)
BLOBS = {size: b"x" * size for size in SIZES}


class Sink:
    def __call__(self, answers: list[tuple[int, Any]]) -> None: ...


SINKS = (Sink(), Sink())

events = st.one_of(
    st.tuples(st.just("add"), st.sampled_from(RUNS), st.sampled_from(SIZES)),
    st.tuples(st.just("hold"), st.sampled_from((0, 1))),
    st.tuples(st.just("unblock"), st.sampled_from((0, 1))),
    st.tuples(st.just("busy"), st.sampled_from(RUNS)),  # with the next batch
    st.tuples(st.just("defer"), st.integers(0, 5)),  # from this place of the next batch on
    st.tuples(st.just("bring_back"), st.sampled_from(RUNS)),
)


def entry(run: str, number: int, size: int) -> Entry:
    """Runs a and b speak by one sink, c by the other."""
    command = CompleteStep(
        run=RunKey("ns-c" if run == "c" else "ns", run),
        lease=Lease(1, 1),
        step_id=str(number),
        attempt=1,
        output=Payload(BLOBS[size]),
    )
    return command, weight_bytes(command), SINKS[run == "c"], number


class Journaled:
    """A write queue, what was written of it, and which runs are locked."""

    def __init__(self) -> None:
        self.queues = WriteQueues()
        self.added = 0
        self.locked: set[str] = set()
        self.done: dict[str, list[int]] = {run: [] for run in RUNS}

    def play(self, event: str, value: Any, size: int = 0) -> None:
        match event:
            case "add":
                self.queues.add(entry(value, self.added, size))
                self.added += 1
            case "hold":
                self.queues.hold_back(SINKS[value])
            case "unblock":
                self.queues.unblock(SINKS[value])
            case "busy":
                self.write(busy=value)
            case "defer":
                self.write(defer_from=value)
            case _:
                self.locked.discard(value)
                self.queues.bring_back(value)

    def write(self, *, busy: str = "", defer_from: int = 1_000) -> None:
        batch = self.queues.gather()
        assert sum(each[1] for each in batch) <= 2 * limits.BATCH_BYTES + 2_000
        assert self.locked.isdisjoint(each[0].run.run_id for each in batch)
        aside = [each for each in batch if each[0].run.run_id == busy]
        others = [each for each in batch if each[0].run.run_id != busy]
        begun = {run: [each for each in others[:defer_from] if each[0].run.run_id == run] for run in RUNS}
        for run, entries in begun.items():
            self.done[run] += [each[3] for each in entries]
        if aside:
            self.queues.set_aside(busy, aside)
            self.locked.add(busy)
        self.queues.put_back(others[defer_from:])

    def write_all(self) -> None:
        self.queues.unblock_all()
        for run in tuple(self.locked):
            self.play("bring_back", run)
        while self.queues:
            self.write()


@settings(deadline=None)
@given(st.lists(events, max_size=40))
def test_order_and_count_hold_whatever_happens(script: list[tuple[Any, ...]]) -> None:
    journaled = Journaled()
    for event in script:
        journaled.play(*event)
    journaled.write_all()
    queues, done = journaled.queues, journaled.done
    assert sum(map(len, done.values())) == journaled.added, "nothing is lost and nothing is written twice"
    for numbers in done.values():
        assert numbers == sorted(numbers)
    assert not queues.aside
    assert not queues.full("ns")
    for queue in queues._queues.values():
        assert (queue.count, queue.bytes, len(queue.large_runs)) == (0, 0, 0)
    assert queues.remove_all() == []
