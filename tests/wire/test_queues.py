"""Workflow types and queues as messages, there and back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kagzi.core.errors import InvalidArgument
from kagzi.core.workflow_types.queues import QueueDepth, QueueStanding, TypeLimits, WorkflowTypeRecord
from kagzi.v1 import admin_pb2
from kagzi.wire.queues import read_limits, write_standing, write_type

from . import strategies as some
from .reading import read_standing, read_type
from .test_round_trips import posted

few = settings(max_examples=40, deadline=None)
counts = st.integers(1, 2**31 - 1)
rates = st.floats(0.001, 1e6)

type_limits = st.builds(
    TypeLimits,
    paused=st.booleans(),
    max_running=st.none() | counts,
    max_running_per_key=st.none() | counts,
    starts_per_second=st.none() | rates,
    starts_per_second_per_key=st.none() | rates,
    when_full=st.sampled_from(["queue", "reject", "cancel-oldest"]),
)
types = st.builds(
    WorkflowTypeRecord,
    namespace=st.just("default"),
    workflow_type=some.names,
    limits=type_limits,
    versions=st.lists(some.names, max_size=3).map(tuple),
    default_version=some.texts,
    open_runs=counts,
)
depths = st.builds(
    QueueDepth,
    workflow_type=some.names,
    version=some.texts,
    waiting=counts,
    oldest_since=st.none() | st.integers(0, 2**51),
)
standings = st.builds(QueueStanding, depth=depths, workers=counts, free_slots=counts, limit_reason=some.texts)


@few
@given(types)
def test_types(record: WorkflowTypeRecord) -> None:
    assert read_type(posted(write_type(record))) == record


@few
@given(standings)
def test_queues(standing: QueueStanding) -> None:
    assert read_standing(posted(write_standing(standing))) == standing


def test_an_empty_field_is_not_a_limit() -> None:
    assert read_limits(admin_pb2.WorkflowType()) == TypeLimits()


def test_an_unknown_way_out_is_refused() -> None:
    with pytest.raises(InvalidArgument) as refused:
        read_limits(admin_pb2.WorkflowType(when_full="explode"))
    assert refused.value.field == "when_full"
