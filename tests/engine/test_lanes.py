"""What waits to be written, in any order of events: nothing is lost, a run's operations stay in order, and the count is right."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kagzi.core import limits
from kagzi.core.commands import CompleteStep
from kagzi.core.records import Lease, Payload, RunKey
from kagzi.engine.lanes import Entry, Lane, weight_bytes

RUNS = ("a", "b", "c")
SIZES = (0, limits.BATCH_BYTES // 3, limits.BATCH_BYTES + 1)
BLOBS = {size: b"x" * size for size in SIZES}


class Sink:
    def __call__(self, answers: list[tuple[int, Any]]) -> None: ...


SINKS = (Sink(), Sink())

events = st.one_of(
    st.tuples(st.just("add"), st.sampled_from(RUNS), st.sampled_from(SIZES)),
    st.tuples(st.just("hold"), st.sampled_from((0, 1))),
    st.tuples(st.just("let_go"), st.sampled_from((0, 1))),
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


@given(st.lists(events, max_size=40))
def test_order_and_count_hold_whatever_happens(script: list[tuple[Any, ...]]) -> None:
    lane = Lane()
    added = 0
    locked: set[str] = set()
    done: dict[str, list[int]] = {run: [] for run in RUNS}

    def write(*, busy: str = "", defer_from: int = 1_000) -> None:
        batch = lane.gather()
        assert sum(each[1] for each in batch) <= 2 * limits.BATCH_BYTES + 2_000
        aside: dict[str, list[Entry]] = {}
        deferred: list[Entry] = []
        for place, each in enumerate(batch):
            run = each[0].run.run_id
            assert run not in locked
            if run == busy:
                aside.setdefault(run, []).append(each)
            elif place >= defer_from or any(run == other[0].run.run_id for other in deferred):
                deferred.append(each)
            else:
                done[run].append(each[3])
        for run, entries in aside.items():
            lane.set_aside(run, entries)
            locked.add(run)
        lane.put_back(deferred)

    for event in script:
        match event:
            case ("add", run, size):
                lane.add(entry(run, added, size))
                added += 1
            case ("hold", which):
                lane.hold_back(SINKS[which])
            case ("let_go", which):
                lane.let_go(SINKS[which])
            case ("busy", run):
                write(busy=run)
            case ("defer", place):
                write(defer_from=place)
            case (_, run):
                locked.discard(run)
                lane.bring_back(run)
    lane.let_all_go()
    for run in locked:
        lane.bring_back(run)
    locked.clear()
    while lane:
        write()
    assert sum(map(len, done.values())) == added, "nothing is lost and nothing is written twice"
    for numbers in done.values():
        assert numbers == sorted(numbers)
    assert not lane.aside
    assert not lane.full("ns")
    for queue in lane._queues.values():
        assert (queue.count, queue.bytes, len(queue.large_runs)) == (0, 0, 0)
    assert lane.remove_all() == []
