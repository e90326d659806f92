"""The JSON of answers has the words of `kagzi --json`: a record is the same JSON, whichever way it was asked for.

Both are made of one record: by the view of the API, and through a message and the client by that of the command line.
Times are compared as points in time: the command line leaves out microseconds where they are usually zero."""

import json
from datetime import datetime
from typing import Any

import msgspec
import pytest

from kagzi.cli.operate import namespaces as cli_namespaces
from kagzi.cli.operate import stats as cli_stats
from kagzi.cli.operate import versions as cli_versions
from kagzi.cli.operate import workers as cli_workers
from kagzi.cli.operate import workflows as cli_workflows
from kagzi.cli.operate.schedule_times import _view as cli_time_view
from kagzi.cli.operate.schedule_views import fire_view as cli_fire_view
from kagzi.cli.operate.schedule_views import schedule_view as cli_schedule_view
from kagzi.core.records import NamespaceRecord, Payload, Served, WorkerRecord
from kagzi.core.schedules.schedule import Fire, ScheduleRecord, ScheduleSpec
from kagzi.core.states import WorkerStatus
from kagzi.core.stats import StatsBucket
from kagzi.core.times import to_datetime
from kagzi.core.workers import WorkerEvent, WorkerEventKind
from kagzi.core.workflow_types.queues import QueueDepth, QueueStanding, TypeLimits, WorkflowTypeRecord
from kagzi.core.workflow_types.schemas import SchemaRecord
from kagzi.core.workflow_types.versions import VersionRecord
from kagzi.sdk.client.operations.namespaces import read_namespace_info
from kagzi.sdk.client.operations.schedule_records import read_schedule, read_schedule_fire
from kagzi.sdk.client.operations.stats import StatsMinute
from kagzi.sdk.client.operations.versions import read_version_info
from kagzi.sdk.client.operations.workers import read_worker_event, read_worker_info
from kagzi.sdk.client.operations.workflow_types import read_queue_info, read_schema, read_type_info
from kagzi.server.http.views.namespaces import namespace_view
from kagzi.server.http.views.queues import queue_view
from kagzi.server.http.views.schedules import fire_view, schedule_view, time_view
from kagzi.server.http.views.stats import _minute_view
from kagzi.server.http.views.versions import version_view
from kagzi.server.http.views.workers import worker_event_view, worker_view
from kagzi.server.http.views.workflows import schema_view, workflow_type_view
from kagzi.v1 import admin_pb2
from kagzi.wire.admin import write_bucket, write_version
from kagzi.wire.fields import _form_of
from kagzi.wire.namespaces import write_namespace
from kagzi.wire.queues import write_standing, write_type
from kagzi.wire.schedules import write_fire, write_schedule
from kagzi.wire.schemas import write_schema
from kagzi.wire.workers import write_worker, write_worker_event

AT = 1_794_821_405_123_456
LATER = AT + 90_061_000_001


def as_json(view: Any) -> Any:
    return _times(json.loads(msgspec.json.encode(view)))


def _times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _times(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_times(each) for each in value]
    if isinstance(value, str) and value.endswith("Z"):
        return datetime.fromisoformat(value)
    return value


def printed(view: Any) -> Any:
    return _times(json.loads(json.dumps(view)))


SPECS = [
    ScheduleSpec(workflow_type="report", cron_expr="0 6 * * *"),
    ScheduleSpec(
        workflow_type="report",
        interval_us=90_061_000_001,
        input=Payload(b'{"name": "ada"}'),
        version="2",
        labels={"team": "a"},
        priority=7,
        overlap="cancel_other",
        jitter_us=1_500_000,
        start_at=AT,
        end_at=LATER,
        max_catchup=3,
        catchup_window_us=3_600_000_000,
        timeout_us=60_000_000,
    ),
]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("enabled", [True, False])
def test_a_schedule(spec: ScheduleSpec, enabled: bool) -> None:
    record = ScheduleRecord(
        namespace="default",
        schedule_id="nightly",
        spec=spec,
        enabled=enabled,
        paused_reason="" if enabled else "holidays",
        next_at=LATER if enabled else None,
        created_at=AT,
        updated_at=LATER,
    )
    answered = as_json(schedule_view(record))
    assert answered.pop("context") is None  # the command line does not know it
    assert answered == printed(cli_schedule_view(read_schedule(write_schedule(record))))


@pytest.mark.parametrize(
    "fire",
    [
        Fire(nominal_at=AT, at=LATER, cause="catchup", run_id="run-1"),
        Fire(nominal_at=AT, at=LATER, cause="clock", reason="it was paused", skipped_until=LATER, count=7),
    ],
)
def test_a_fire(fire: Fire) -> None:
    assert as_json(fire_view(fire)) == printed(cli_fire_view(read_schedule_fire(write_fire(fire))))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_a_time_to_come(zone: str) -> None:
    assert as_json(time_view(zone)(AT)) == printed(cli_time_view(to_datetime(AT), zone))


@pytest.mark.parametrize(
    "record",
    [
        WorkflowTypeRecord(namespace="default", workflow_type="report"),
        WorkflowTypeRecord(
            namespace="default",
            workflow_type="report",
            limits=TypeLimits(paused=True, max_running=3, starts_per_second=0.5, when_full="cancel-oldest"),
            versions=("2", "1"),
            default_version="2",
            open_runs=9,
        ),
    ],
)
def test_a_workflow_type(record: WorkflowTypeRecord) -> None:
    assert as_json(workflow_type_view(record)) == printed(cli_workflows._view(read_type_info(write_type(record))))


@pytest.mark.parametrize(
    "record",
    [
        SchemaRecord(workflow_type="report", version="2"),
        SchemaRecord(
            workflow_type="report",
            version="2",
            description="Reports.",
            input_schema='{"type":"string"}',
            output_schema='{"type":"integer"}',
            signal_schemas={"approve": '{"type":"boolean"}'},
            registered_at=AT,
        ),
    ],
)
def test_a_schema(record: SchemaRecord) -> None:
    assert as_json(schema_view(record)) == printed(cli_workflows._schema_view(read_schema(write_schema(record))))


@pytest.mark.parametrize("version", ["", "2"])
def test_a_queue(version: str) -> None:
    depth = QueueDepth(workflow_type="report", version=version, waiting=4, oldest_since=AT if version else None)
    standing = QueueStanding(depth=depth, workers=1, free_slots=2, limit_reason="it is paused" if version else "")
    printed_queue = printed(cli_workflows._queue_view(read_queue_info(write_standing(standing))))
    assert as_json(queue_view(standing)) == printed_queue


def test_a_version() -> None:
    record = VersionRecord(workflow_type="report", version="2", first_seen_at=AT, is_set=True, open_runs=3, workers=1)
    assert as_json(version_view(record)) == printed(cli_versions._view(read_version_info(write_version(record))))


def test_a_worker() -> None:
    record = WorkerRecord(
        worker_id="worker-1",
        namespace="default",
        served=(Served("report", "2"), Served("report", "1")),
        max_concurrent=100,
        hostname="host",
        pid=7,
        sdk_version="0.1.0",
        build_id="b1",
        labels={"zone": "a"},
        status=WorkerStatus.DRAINING,
        active_count=2,
        total_completed=5,
        total_failed=1,
        registered_at=AT,
        last_heartbeat_at=LATER,
    )
    assert as_json(worker_view(record)) == printed(cli_workers._view(read_worker_info(write_worker(record))))


def test_an_event_of_a_worker() -> None:
    event = WorkerEvent(worker_id="worker-1", kind=WorkerEventKind.LOST, at=AT, detail="it was lost", number=3)
    answered = as_json(worker_event_view(event))
    assert answered == printed(cli_workers._event_view(read_worker_event(write_worker_event(event))))


@pytest.mark.parametrize("p50_us", [None, 1_500])
def test_a_minute(p50_us: int | None) -> None:
    bucket = StatsBucket(minute=AT, workflow_type="report", started=3, failed=1, p50_us=p50_us, p95_us=p50_us)
    form = _form_of(admin_pb2.StatsBucket.DESCRIPTOR, StatsMinute, "minutes")
    assert form is not None
    assert as_json(_minute_view(bucket)) == printed(cli_stats._view(form.read(write_bucket(bucket))))


@pytest.mark.parametrize(
    "record",
    [
        NamespaceRecord(namespace="shop", created_at=AT),
        NamespaceRecord(
            namespace="shop",
            enabled=False,
            deleting=True,
            created_at=AT,
            open_runs_limit=1,
            running_runs_limit=2,
            starts_per_second_limit=0.5,
            stored_bytes_limit=4,
            sessions_limit=5,
            schedules_limit=6,
            retention_seconds={"failed": 86_400},
            stored_bytes=7,
            stored_bytes_at=LATER,
        ),
    ],
)
def test_a_namespace(record: NamespaceRecord) -> None:
    answered = as_json(namespace_view(record))
    assert answered == printed(cli_namespaces._view(read_namespace_info(write_namespace(record))))


def test_times_have_microseconds() -> None:
    at = json.loads(msgspec.json.encode(version_view(VersionRecord(workflow_type="a", version="1", first_seen_at=0))))
    assert at["first_seen_at"] == "1970-01-01T00:00:00.000000Z"
