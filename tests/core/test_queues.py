"""Permits and rates, as pure arithmetic: who may begin, in which order, and when the next one may."""

from hypothesis import given
from hypothesis import strategies as st

from kagzi.core.times import US_PER_S
from kagzi.core.workflow_types.queues import Candidate, Rate, TypeLimits, TypePermits, begins_at, choose

NOW = 1_000_000 * US_PER_S


def candidates(keys: str, **options: int) -> list[Candidate]:
    """One run per message, in the order given; a key's place is its first appearance."""
    places = {key: place for place, key in enumerate(dict.fromkeys(keys), start=1)}
    return [Candidate(f"{key}{n}", key, 0, NOW - 100 + n, True, places[key], **options) for n, key in enumerate(keys)]


def quota(wanted: int = 100, running: dict[str, int] | None = None, **limits: object) -> TypePermits:
    return TypePermits(TypeLimits(**limits), wanted=wanted, running=running or {}, now=NOW)  # type: ignore[arg-type]


def test_what_limits_claims() -> None:
    assert not TypeLimits(when_full="reject").limiting
    assert TypeLimits(paused=True).limiting
    assert TypeLimits(starts_per_second_per_key=1.0).limiting
    assert TypeLimits(max_running_per_key=1).by_key
    assert not TypeLimits(max_running=1).by_key


def test_no_more_than_wanted_permitted_and_spared() -> None:
    assert quota(3).left == 3
    assert quota(3, {"": 4}, max_running=5).left == 1
    assert quota(3, {"a": 4, "b": 4}, max_running=5).left == 0
    assert quota(3, paused=True).left == 0
    assert TypePermits(TypeLimits(max_running=9), wanted=5, running={}, now=NOW, spare=2).left == 2


def test_keys_take_turns_and_then_start_over() -> None:
    chosen = choose(quota(4, max_running_per_key=9), candidates("aaabbc"))
    assert [each.key for each in chosen] == ["a", "b", "c", "a"]


def test_full_keys_are_passed_over() -> None:
    here = quota(10, {"a": 2, "b": 1, "": 50}, max_running_per_key=2)
    assert here.full_keys == ["a"]
    assert [each.key for each in choose(here, candidates("aabbc"))] == ["b", "c"]


def test_priority_comes_before_turns() -> None:
    waiting = [Candidate("low", "a", 0, NOW, True, 1), Candidate("high", "b", 5, NOW + 1, True, 2)]
    assert [each.run_id for each in choose(quota(1, max_running_per_key=1), waiting)] == ["high"]


def test_a_run_that_is_listed_twice_begins_once() -> None:
    waiting = candidates("a") * 2
    assert len(choose(quota(5), waiting)) == 1


def test_rates_hold_back_new_runs_only() -> None:
    here = quota(10, starts_per_second=1.0)
    waiting = [Candidate(f"new{n}", "", 0, NOW + n, True) for n in range(3)]
    waiting += [Candidate(f"old{n}", "", 0, NOW + n, False) for n in range(3)]
    assert [each.run_id for each in choose(here, waiting)] == ["new0", "old0", "old1", "old2"]
    assert here.again_at == NOW + US_PER_S


def test_rates_of_keys_are_apart() -> None:
    here = quota(10, starts_per_second_per_key=1.0)
    here.know_keys({"a": NOW + 5 * US_PER_S, "b": NOW - 1})
    assert [each.key for each in choose(here, candidates("aabc"))] == ["b", "c"]
    assert here.changed_keys == {"b", "c"}
    assert here.again_at == NOW + 5 * US_PER_S


@given(per_second=st.floats(0.001, 10_000), pauses_us=st.lists(st.integers(0, 3 * US_PER_S), min_size=1, max_size=200))
def test_a_rate_is_never_exceeded_over_any_stretch(per_second: float, pauses_us: list[int]) -> None:
    rate, now = Rate(per_second, 0), NOW
    starts: list[int] = []
    for pause in pauses_us:
        now += pause
        if rate.allows(now):
            starts.append(now)
            rate = rate.after_start(now)
    at_once = max(1.0, per_second / 10)
    for first in range(len(starts)):
        for last in range(first, len(starts)):
            stretch_s = (starts[last] - starts[first]) / US_PER_S
            assert last - first + 1 <= at_once + stretch_s * per_second * 1.01 + 1.001


@given(per_second=st.floats(0.001, 10_000))
def test_a_call_that_returns_when_the_refusal_says_is_admitted(per_second: float) -> None:
    rate, now = Rate(per_second, 0), NOW
    for _ in range(50):
        assert rate.allows(now)
        rate = rate.after_start(now)
        now = max(now, rate.allows_at())
    assert now - NOW <= 50 * (US_PER_S / per_second + 1)


def test_both_rates_must_allow_a_start() -> None:
    limits = TypeLimits(starts_per_second=1.0, starts_per_second_per_key=1.0)
    assert begins_at(limits, NOW, NOW + 5) == NOW + 5
    assert begins_at(TypeLimits(max_running=1), NOW, NOW) is None
