"""How claimants with free slots are found: with few reads, however many there are."""

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from kagzi.core.records import ClaimedRun
from kagzi.engine import Engine
from kagzi.engine.matching.claimants import Claimants, Group
from kagzi.engine.matching.matcher import CLAIM_RUNS
from kagzi.engine.matching.slots import Claimant
from kagzi.store.protocol import TypeKey
from tests.engine.fakes import until

HELLO = TypeKey("default", "hello")
READS_PER_START = 3  # the freest, again when it is found to have fewer, and one that has become late


class CountedClaimant(Claimant):
    """Counts how often it is looked at."""

    reads = 0

    def __init__(self, slots: int = 10, versions: tuple[str, ...] = ("1",), build_id: str = "", name: str = "") -> None:
        super().__init__("default", name, {"hello": versions, "other": versions}, build_id)
        self.slots = slots

    def offerable(self) -> int:
        CountedClaimant.reads += 1
        return self.slots

    def reserve(self, count: int) -> None:
        self.slots -= count

    def give_back(self, count: int) -> None:
        self.slots += count

    def give(self, claimed: Sequence[ClaimedRun]) -> bool:
        return True


@pytest.fixture(autouse=True)
def from_zero() -> None:
    CountedClaimant.reads = 0


def of(*claimants: CountedClaimant) -> Claimants:
    all_claimants = Claimants()
    for claimant in claimants:
        all_claimants.add(claimant)
    return all_claimants


def only_group(claimants: Claimants) -> Group:
    [group] = claimants.groups(HELLO)
    return group


def freest_slots(group: Group) -> int:
    free = group.freest()
    return 0 if free is None else free[1]


@pytest.mark.parametrize("sessions", [10, 1_000, 10_000])
def test_reads_do_not_grow_with_the_claimants(sessions: int) -> None:
    rng = Random(sessions)
    workers = [CountedClaimant(rng.randrange(1, 100)) for _ in range(sessions)]
    claimants = of(*workers)
    group, busy, starts = only_group(claimants), [], 2_000
    CountedClaimant.reads = 0
    for _ in range(starts):
        free = group.freest()
        if free is not None:
            free[0].reserve(1)
            busy.append(free[0])
        if busy and rng.random() < 0.5:
            done = busy.pop(rng.randrange(len(busy)))
            done.give_back(1)
            claimants.note_free(done)
        rng.choice(workers).slots = 0  # late: noticed by whoever reads at it
        workers[rng.randrange(len(workers))].slots += 1
    assert CountedClaimant.reads <= READS_PER_START * starts
    CountedClaimant.reads = 0
    for _ in range(20):
        assert len(group.most_free(100)) <= 100
    assert CountedClaimant.reads <= 20 * 100 + READS_PER_START * starts
    CountedClaimant.reads = 0
    for claimant in workers[: sessions // 2]:
        claimants.remove(claimant)
    assert CountedClaimant.reads == 0


@pytest.mark.parametrize("sessions", [10, 1_000, 10_000])
async def test_a_start_reads_few_of_the_workers(engine: Engine, sessions: int) -> None:
    matcher = engine._matcher
    for number in range(sessions):
        matcher.add(CountedClaimant(slots=100, name=f"worker-{number}"))

    async def idle() -> bool:
        return not matcher._pending

    await until(idle)
    CountedClaimant.reads = 0
    starts = 200
    for number in range(starts):
        assigned = matcher.assign(HELLO, "", f"run-{number}")
        assert number or assigned is not None
        if number % 2:
            matcher.unassign(f"run-{number}")
    assert CountedClaimant.reads <= READS_PER_START * starts
    CountedClaimant.reads = 0
    matcher.mark(HELLO)
    await until(idle)
    assert CountedClaimant.reads <= 10 * CLAIM_RUNS


def test_the_one_with_the_most_free_slots_is_first_and_equals_take_turns() -> None:
    small, large, equal = CountedClaimant(1), CountedClaimant(3), CountedClaimant(3)
    group = only_group(of(small, large, equal))
    chosen: list[Claimant] = []
    for _ in range(7):
        free = group.freest()
        assert free is not None
        free[0].reserve(1)
        chosen.append(free[0])
    assert group.freest() is None
    assert chosen[:4] == [large, equal, large, equal]
    assert Counter(chosen) == {small: 1, large: 3, equal: 3}


def test_what_random_changes_leave_is_found_in_order() -> None:
    for seed in range(300):
        rng = Random(seed)
        workers = [CountedClaimant(rng.randrange(6)) for _ in range(rng.randrange(1, 12))]
        claimants = of(*workers)
        group = only_group(claimants)
        for _ in range(40):
            worker = rng.choice(workers)
            if rng.random() < 0.5:
                worker.slots = max(0, worker.slots - rng.randrange(3))  # noticed
            else:
                worker.slots += rng.randrange(3)
                claimants.note_free(worker)
            count = rng.randrange(1, 15)
            expected = sorted((each.slots for each in workers if each.slots), reverse=True)
            chosen = group.most_free(count)
            assert len(set(chosen)) == len(chosen)
            assert [each.slots for each in chosen if isinstance(each, CountedClaimant)] == expected[:count], seed
            assert freest_slots(group) == (expected[0] if expected else 0), seed
        assert len(group._heap) <= 12 + 40


def test_groups_have_one_build_and_the_same_versions() -> None:
    one, two = CountedClaimant(build_id="a"), CountedClaimant(build_id="a")
    other_build, other_versions = CountedClaimant(build_id="b"), CountedClaimant(versions=("2", "1"), build_id="a")
    claimants = of(one, two, other_build, other_versions)
    assert [len(group) for group in claimants.groups(HELLO)] == [2, 1, 1]
    assert not claimants.remove(one)
    assert not claimants.remove(one), "it is gone already"
    assert not claimants.remove(other_build)
    assert not claimants.remove(two)
    assert set(claimants.remove(other_versions)) == {HELLO, TypeKey("default", "other")}
    assert HELLO not in claimants
    claimants.note_free(one)
    assert not claimants.groups(HELLO)
