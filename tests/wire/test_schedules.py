"""Schedules and what became of their times: as messages and back they are what they were."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kagzi.core.schedules.schedule import OVERLAPS, Fire, ScheduleRecord, ScheduleSpec, write_spec
from kagzi.v1 import workflow_schedule_pb2 as pb
from kagzi.wire.requests import ScheduleRequest, write_schedule_request
from kagzi.wire.schedules import read_changes, read_schedule_request, write_fire, write_schedule
from tests.wire.reading import read_fire, read_schedule
from tests.wire.strategies import counts, labels, maybe_payloads, maybe_times, names, texts, times, types

spans = st.integers(0, 10**15)

specs = st.builds(
    ScheduleSpec,
    workflow_type=types,
    cron_expr=texts,
    interval_us=st.none() | spans,
    timezone=texts,
    input=maybe_payloads,
    context=maybe_payloads,
    version=texts,
    labels=labels,
    priority=st.integers(-100, 100),
    overlap=st.sampled_from(OVERLAPS),
    jitter_us=spans,
    start_at=maybe_times,
    end_at=maybe_times,
    max_catchup=counts,
    catchup_window_us=spans,
    timeout_us=st.none() | spans,
)
records = st.builds(
    ScheduleRecord,
    namespace=names,
    schedule_id=names,
    spec=specs,
    enabled=st.booleans(),
    paused_reason=texts,
    next_at=maybe_times,
    last_fired_at=maybe_times,
    created_at=times,
    updated_at=times,
)
schedule_requests = st.builds(
    ScheduleRequest, namespace=names, schedule_id=names, spec=specs, enabled=st.none() | st.booleans(), request_id=texts
)
fires = st.builds(
    Fire,
    nominal_at=times,
    at=times,
    cause=st.sampled_from(["clock", "catchup", "trigger", "backfill"]),
    run_id=st.none() | names,
    reason=texts,
    skipped_until=maybe_times,
    count=counts,
)


@given(records)
def test_a_schedule(record: ScheduleRecord) -> None:
    message = pb.WorkflowSchedule.FromString(write_schedule(record).SerializeToString())
    assert read_schedule(message) == record


@given(schedule_requests)
def test_a_schedule_request(request: ScheduleRequest) -> None:
    message = pb.CreateWorkflowScheduleRequest.FromString(write_schedule_request(request).SerializeToString())
    assert read_schedule_request(message) == request


@given(fires)
def test_a_fire(fire: Fire) -> None:
    assert read_fire(pb.ScheduleFire.FromString(write_fire(fire).SerializeToString())) == fire


@given(specs)
def test_a_spec_as_both_stores_keep_it(spec: ScheduleSpec) -> None:
    assert msgspec.json.decode(write_spec(spec), type=ScheduleSpec) == spec


def test_an_update_that_says_nothing_changes_nothing() -> None:
    assert read_changes(pb.UpdateWorkflowScheduleRequest()) == {}


def test_every_field_of_a_schedule_can_be_updated() -> None:
    """Nothing is accepted and ignored: a field that is added to the message has to be read."""
    from kagzi.wire import schedules

    handled = {
        *schedules._UPDATES,
        *("schedule_id", "namespace_id", "task_queue", "enabled", "next_fire_at", "labels", "set_labels"),
    }
    assert handled == {field.name for field in pb.UpdateWorkflowScheduleRequest.DESCRIPTOR.fields}
