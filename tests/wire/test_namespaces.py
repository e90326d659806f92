"""Namespaces and figures come back as they were sent; a mask names what it changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagzi.core.errors import InvalidArgument
from kagzi.core.records import NamespaceRecord
from kagzi.core.stats import StatsBucket
from kagzi.v1 import namespace_pb2 as pb
from kagzi.wire.admin import write_bucket
from kagzi.wire.namespaces import read_namespace_fields, read_new_namespace, write_changes, write_namespace

from .reading import read_bucket, read_namespace_record
from .strategies import counts, longs, maybe_times, names, times

limits = st.none() | counts

namespaces = st.builds(
    NamespaceRecord,
    namespace=names,
    enabled=st.booleans(),
    created_at=times,
    open_runs_limit=st.none() | longs,
    running_runs_limit=st.none() | longs,
    starts_per_second_limit=st.none() | st.floats(0.001, 1_000_000),
    stored_bytes_limit=st.none() | longs,
    sessions_limit=limits,
    schedules_limit=limits,
    retention_seconds=st.dictionaries(st.sampled_from(["completed", "failed", "cancelled"]), counts),
    deleting=st.booleans(),
    stored_bytes=st.none() | longs,
    stored_bytes_at=maybe_times,
)


@given(record=namespaces)
def test_a_namespace(record: NamespaceRecord) -> None:
    assert read_namespace_record(write_namespace(record)) == record


@given(
    bucket=st.builds(
        StatsBucket,
        minute=times,
        workflow_type=names,
        started=counts,
        completed=counts,
        failed=counts,
        cancelled=counts,
        p50_us=st.none() | st.integers(0, 10**12),
        p95_us=st.none() | st.integers(0, 10**12),
    )
)
def test_a_minute(bucket: StatsBucket) -> None:
    assert read_bucket(write_bucket(bucket)) == bucket


def test_a_mask_names_fields_of_a_record() -> None:
    assert read_namespace_fields(["enabled", "limits.open_runs"]) == {"enabled", "open_runs_limit"}
    assert len(read_namespace_fields(["limits"])) == 6
    changed = ("open_runs_limit", "retention_seconds", "enabled")
    message, mask = write_changes(NamespaceRecord(namespace="shop", created_at=7), changed)
    assert read_namespace_fields(mask) == set(changed)
    assert not message.HasField("created_at")
    with pytest.raises(InvalidArgument, match="cannot be changed"):
        read_namespace_fields(["namespace_id"])


def test_a_namespace_is_named_once_or_twice_alike() -> None:
    message = pb.Namespace(namespace_id="shop")
    assert read_new_namespace(message, "").namespace == read_new_namespace(message, "shop").namespace == "shop"
    assert read_new_namespace(pb.Namespace(), "shop").namespace == "shop"
    with pytest.raises(InvalidArgument, match="differ"):
        read_new_namespace(message, "other")
    with pytest.raises(InvalidArgument, match="empty"):
        read_new_namespace(pb.Namespace(), "")
