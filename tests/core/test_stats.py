"""Figures that can be added up: classes of durations, percentiles read from them, steps and types as one."""

from hypothesis import given
from hypothesis import strategies as st

from kagzi.core.stats import (
    CLASSES,
    MINUTE_US,
    OTHER,
    STEPS,
    TOOK_BOUNDS_US,
    LiveStats,
    NotedStats,
    StatsBucket,
    bounds_of,
    busiest,
    merge,
    merge_by,
    percentile_us,
    with_live,
)
from tests.support.duration_classes import class_of

durations = st.lists(st.integers(0, 1 << 45), max_size=60)
percents = st.integers(1, 100)


def counted(durations_us: list[int]) -> tuple[int, ...]:
    classes = [class_of(each) for each in durations_us]
    return tuple(classes.count(place) for place in range(CLASSES))


def exact(durations_us: list[int], percent: int) -> int:
    """As the stores compute it for a minute."""
    return sorted(durations_us)[-(-len(durations_us) * percent // 100) - 1]


@given(st.integers(0, 1 << 62))
def test_every_duration_is_in_one_class(took_us: int) -> None:
    place = class_of(took_us)
    assert 0 <= place < CLASSES
    least, end = bounds_of(place)
    assert least <= took_us
    assert end is None or took_us < end


def test_classes_double_and_lie_side_by_side() -> None:
    assert TOOK_BOUNDS_US[:3] == (1_000, 2_000, 4_000)
    assert [bounds_of(place)[1] for place in range(CLASSES - 1)] == [bounds_of(place)[0] for place in range(1, CLASSES)]
    assert TOOK_BOUNDS_US[-1] > 12 * 86_400 * 1_000_000  # twelve days


@given(durations, percents)
def test_the_true_percentile_lies_in_the_class_of_the_estimate(durations_us: list[int], percent: int) -> None:
    estimate = percentile_us(counted(durations_us), percent)
    if not durations_us:
        assert estimate is None
        return
    assert estimate is not None
    assert class_of(estimate) == class_of(exact(durations_us, percent))


@given(st.lists(durations, min_size=1, max_size=8), percents)
def test_merging_parts_is_counting_the_whole(parts: list[list[int]], percent: int) -> None:
    buckets = [
        StatsBucket(minute=0, workflow_type="a", completed=len(part), started=1, took=counted(part)) for part in parts
    ]
    whole = merge(buckets, 0, "a")
    everything = [each for part in parts for each in part]
    assert (whole.completed, whole.started) == (len(everything), len(parts))
    if len(parts) > 1:
        assert whole.p50_us == percentile_us(counted(everything), 50)
        assert percentile_us(whole.took, percent) == percentile_us(counted(everything), percent)


def test_one_minute_stays_exact_and_old_ones_without_classes_are_left_out() -> None:
    exactly = StatsBucket(minute=60, workflow_type="a", completed=1, p50_us=1_234_567, p95_us=1_234_567)
    assert merge([exactly], 0, "a").p50_us == 1_234_567
    with_classes = StatsBucket(minute=120, workflow_type="a", completed=1, took=counted([5_000_000]))
    both = merge([exactly, with_classes], 0, "a")
    assert (both.completed, both.took) == (2, with_classes.took)
    assert merge([exactly, exactly], 0, "a").p50_us is None


def test_types_beyond_the_busiest_are_one() -> None:
    buckets = [
        StatsBucket(minute=minute * MINUTE_US, workflow_type=f"t{number}", started=number)
        for minute in range(5)
        for number in range(1, 21)
    ]
    named = busiest(buckets, 10)
    assert named == {f"t{number}" for number in range(11, 21)}
    [*rows] = merge_by(buckets, STEPS["5m"], named)
    assert len(rows) == 11
    assert [(row.workflow_type, row.started) for row in rows if row.workflow_type == OTHER] == [(OTHER, 5 * 55)]
    assert sum(row.started for row in rows) == sum(bucket.started for bucket in buckets)
    assert busiest(buckets, 20) is None


def test_a_look_that_is_older_than_the_notes_counts_nothing_twice() -> None:
    def minute(place: int, started: int) -> StatsBucket:
        return StatsBucket(minute=place * MINUTE_US, workflow_type="a", started=started)

    noted = NotedStats(3 * MINUTE_US, (minute(1, 1), minute(2, 2)))
    live = LiveStats(2 * MINUTE_US, (minute(2, 2), minute(3, 3), minute(4, 4)))
    assert [row.started for row in with_live(noted, live, 0, 4 * MINUTE_US, MINUTE_US, "")] == [1, 2, 3]
    assert [row.started for row in with_live(noted, live, 0, 10 * MINUTE_US, STEPS["5m"], "a")] == [10]
    assert with_live(noted, live, 0, 10 * MINUTE_US, STEPS["5m"], "b")[0].started == 3  # notes are asked for one type
