"""Records converted by the names of their fields: what is the same needs no line, and nothing is lost in silence."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec
import pytest

from kagzi.core.errors import InvalidArgument
from kagzi.core.records import Payload, RunKey
from kagzi.core.states import WorkerStatus
from kagzi.v1 import admin_pb2, worker_pb2, workflow_pb2, workflow_schedule_pb2
from kagzi.wire.common import write_duration
from kagzi.wire.fields import form, reader, writer


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """As kagzi.v1.RunOutcome."""

    run_id: str
    status: Literal["completed", "failed"]
    output: Payload | None = None
    continued_as: str | None = None


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """As kagzi.v1.WorkerEvent, in core."""

    worker_id: str
    kind: str
    at: int
    detail: str = "none"


@dataclass(frozen=True)
class ShownEvent:
    """As kagzi.v1.WorkerEvent, for people."""

    worker: str
    kind: str
    at: datetime
    detail: str


def test_fields_of_the_same_name_are_converted_by_their_types() -> None:
    outcome = Outcome(run_id="r", status="failed", output=Payload(b"1", {"encoding": "x"}), continued_as="s")
    write = writer(workflow_pb2.RunOutcome, Outcome, unset=("error",))
    read = reader(workflow_pb2.RunOutcome, Outcome, unread=("error",))
    assert write(outcome).status == workflow_pb2.WORKFLOW_STATUS_FAILED
    assert read(write(outcome)) == outcome
    least = Outcome(run_id="r", status="completed")
    assert not write(least).HasField("output")
    assert read(write(least)) == least


def test_what_is_left_out_is_the_default_of_the_record() -> None:
    class Limits(msgspec.Struct):
        max_running: int | None = 5
        paused: bool = True
        versions: tuple[str, ...] = ("1",)

    others = ("workflow_type", "default_version", "max_running_per_key", "starts_per_second", "when_full", "open_runs")
    read = reader(admin_pb2.WorkflowType, Limits, unread=(*others, "starts_per_second_per_key"))
    # Only what a message can leave out has a default: a bool that is not there is False.
    assert read(admin_pb2.WorkflowType()) == Limits(5, False, ())
    assert read(admin_pb2.WorkflowType(max_running=0, versions=["2"])) == Limits(0, False, ("2",))


def test_times_and_durations_in_the_units_of_core_and_of_people() -> None:
    event = Event(worker_id="w", kind="left", at=1_500_000)
    message = writer(admin_pb2.WorkerEvent, Event)(event)
    assert reader(admin_pb2.WorkerEvent, Event)(message) == event
    shown = reader(admin_pb2.WorkerEvent, ShownEvent, names={"worker": "worker_id"})(message)
    assert shown == ShownEvent("w", "left", datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC), "none")

    class Spec(msgspec.Struct):
        interval_us: int | None = None
        jitter: timedelta | None = None

    names = ("interval", "jitter")
    others = {field.name for field in workflow_schedule_pb2.WorkflowSchedule.DESCRIPTOR.fields}.difference(names)
    read = reader(workflow_schedule_pb2.WorkflowSchedule, Spec, unread=others)
    schedule = workflow_schedule_pb2.WorkflowSchedule(interval=write_duration(7), jitter=write_duration(8))
    assert read(schedule) == Spec(7, timedelta(microseconds=8))
    assert read(workflow_schedule_pb2.WorkflowSchedule()) == Spec()


def test_parts_of_a_record_are_fields_of_the_message_and_parts_of_the_message_are_records() -> None:
    class Attempt(msgspec.Struct):
        number: int
        finished_at: int

    class Step(msgspec.Struct):
        run: RunKey
        attempts: tuple[Attempt, ...] = ()

    fields = {field.name for field in worker_pb2.Step.DESCRIPTOR.fields} - {"run_id", "namespace_id", "attempts"}
    with pytest.raises(
        TypeError,
        match=r"Attempt has no field for before_retry, begun_seq, claim, error, input, started_at, worker_id of "
        r"kagzi.v1.StepAttempt",
    ):
        reader(worker_pb2.Step, Step, names={"number": "attempt_number"}, unread=fields)

    class Pair(msgspec.Struct):
        workflow_type: str
        version: str

    class Worker(msgspec.Struct):
        namespace: str
        served: tuple[Pair, ...]
        status: WorkerStatus

    def read_pair(pair: worker_pb2.WorkflowTypeVersion) -> Pair:
        return Pair(pair.workflow_type, pair.version)

    def write_pair(pair: Pair) -> worker_pb2.WorkflowTypeVersion:
        return worker_pb2.WorkflowTypeVersion(workflow_type=pair.workflow_type, version=pair.version)

    form(worker_pb2.WorkflowTypeVersion, Pair, read_pair, write_pair)
    others = {field.name for field in worker_pb2.Worker.DESCRIPTOR.fields} - {"namespace_id", "served", "status"}
    worker = Worker("shop", (Pair("order", "2"), Pair("refund", "1")), WorkerStatus.DRAINING)
    message = writer(worker_pb2.Worker, Worker, unset=others)(worker)
    read = reader(worker_pb2.Worker, Worker, unread=others)
    assert read(message) == worker
    message.namespace_id = ""
    assert read(message).namespace == "default"


def test_an_unknown_number_of_an_enum_is_refused_with_the_known_ones() -> None:
    read = reader(workflow_pb2.RunOutcome, Outcome, unread=("error",))
    with pytest.raises(InvalidArgument, match=r"status=42 must be one of WORKFLOW_STATUS_") as refusal:
        read(workflow_pb2.RunOutcome(status=42))  # type: ignore[arg-type]
    assert refusal.value.field == "status"


def test_what_has_no_counterpart_is_found_when_a_module_is_imported() -> None:
    class Extended(Event, frozen=True, kw_only=True):
        team: str = ""

    with pytest.raises(TypeError, match=r"kagzi.v1.WorkerEvent has no field for Extended.team"):
        writer(admin_pb2.WorkerEvent, Extended)
    with pytest.raises(TypeError, match=r"kagzi.v1.WorkerEvent has no field for Extended.team"):
        reader(admin_pb2.WorkerEvent, Extended)
    assert reader(admin_pb2.WorkerEvent, Extended, unsent=("team",))(admin_pb2.WorkerEvent(kind="left")).team == ""

    class Less(msgspec.Struct):
        kind: str
        at: int

    with pytest.raises(TypeError, match=r"Less has no field for detail, worker_id of kagzi.v1.WorkerEvent"):
        writer(admin_pb2.WorkerEvent, Less)
    with pytest.raises(TypeError, match=r"Less has no field for detail, worker_id of kagzi.v1.WorkerEvent"):
        reader(admin_pb2.WorkerEvent, Less)
    with pytest.raises(TypeError, match=r"Less has no field nick"):
        reader(admin_pb2.WorkerEvent, Less, unread=("detail", "worker_id"), nick=lambda _: 1)
    with pytest.raises(TypeError, match=r"Less.kind has no default"):
        reader(admin_pb2.WorkerEvent, Less, unread=("detail", "worker_id"), unsent=("kind",))


@pytest.mark.parametrize("kind", [int, bool, bytes | None, Mapping[str, str], timedelta])
def test_types_that_do_not_fit_are_found_when_a_module_is_imported(kind: object) -> None:
    wrong = msgspec.defstruct("Wrong", [("at", kind), ("started", str)])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        reader(admin_pb2.StatsBucket, wrong, unread=("minute",), names={"at": "workflow_type", "started": "started"})
    with pytest.raises(TypeError):
        writer(admin_pb2.StatsBucket, wrong, unset=("minute",), names={"at": "workflow_type", "started": "started"})


def test_a_microsecond_is_not_taken_for_a_moment() -> None:
    class Wrong(msgspec.Struct):
        at_us: int

    others = ("worker_id", "kind", "detail")
    with pytest.raises(TypeError, match="cannot be at_us"):
        reader(admin_pb2.WorkerEvent, Wrong, names={"at_us": "at"}, unread=others)
