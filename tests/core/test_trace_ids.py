"""Ids of spans: derived, so that they are the same wherever and whenever a span is made."""

import pytest

from kagzi.core.traces.ids import (
    SpanRef,
    attempt_id,
    caller_of_start,
    parse_traceparent,
    start_of,
    start_state,
    stretch_id,
)

RUN = "01a1e504-b1a4-7902-bc69-5218bfa164cc"
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_they_are_those_of_earlier_versions() -> None:
    """Spans of last month's runs are in the backends already: other ids would double them."""
    assert f"{start_of(RUN).trace_id:032x}" == "f15af7e548810e63a23fccf4655d7638"
    assert f"{start_of(RUN).span_id:016x}" == "e1b5068ed7f4c473"
    assert f"{stretch_id(RUN, 3):016x}" == "74daea29ed118af4"
    assert f"{attempt_id(RUN, 'charge', 2, 3):016x}" == "060d00893f5b7fcc"


def test_whatever_differs_has_another_id() -> None:
    ids = [start_of(RUN).span_id]
    ids += [stretch_id(run, claim) for run in (RUN, "other") for claim in range(1, 30)]
    ids += [
        attempt_id(run, step, attempt, claim)
        for run in (RUN, "other")
        for step in ("charge", "charge#2", "1\ncharge")
        for attempt in range(1, 12)
        for claim in range(1, 12)
    ]
    assert len(set(ids)) == len(ids)
    assert all(0 < each < 2**64 for each in ids)


def test_a_traceparent_is_read_as_it_is_written() -> None:
    ref = parse_traceparent(f"00-{TRACE}-{SPAN}-01")
    assert ref is not None
    assert ref == SpanRef(int(TRACE, 16), int(SPAN, 16), sampled=True)
    assert ref.traceparent == f"00-{TRACE}-{SPAN}-01"
    unsampled = parse_traceparent(f"00-{TRACE}-{SPAN}-00")
    assert unsampled is not None
    assert unsampled.traceparent.endswith("-00")
    assert parse_traceparent(f"01-{TRACE}-{SPAN}-03-more") == ref  # a later version


@pytest.mark.parametrize(
    "text",
    [
        None,
        7,
        "",
        f"00-{TRACE}-{SPAN}",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-01\n",
    ],
)
def test_anything_else_is_no_trace(text: object) -> None:
    assert parse_traceparent(text) is None


def test_a_start_says_what_it_hangs_on() -> None:
    assert caller_of_start(start_state(0)) == 0
    assert caller_of_start(start_state(int(SPAN, 16))) == int(SPAN, 16)
    assert caller_of_start(f"other=1,{start_state(5)},third=x") == 5
    assert caller_of_start("other=1") is None
    assert caller_of_start(None) is None
