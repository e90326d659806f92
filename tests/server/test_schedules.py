"""WorkflowScheduleService through real gRPC, on both stores."""

from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from kagzi.v1 import common_pb2, workflow_pb2
from kagzi.v1 import workflow_schedule_pb2 as pb
from kagzi.v1.workflow_schedule_pb2_grpc import WorkflowScheduleServiceStub
from tests.server.stubs import TIMEOUT_S, Stubs, json_payload


class Schedules:
    """Calls by their short names, with the answer's schedule where there is one."""

    def __init__(self, stubs: Stubs) -> None:
        self._stub: Any = WorkflowScheduleServiceStub(stubs.channel)

    async def call(self, method: str, request: Any) -> Any:
        return await getattr(self._stub, method)(request, timeout=TIMEOUT_S)

    async def create(self, **fields: Any) -> pb.WorkflowSchedule:
        values = {"schedule_id": "s", "workflow_type": "greet", "cron_expr": "0 6 * * *", **fields}
        return (await self.call("CreateWorkflowSchedule", pb.CreateWorkflowScheduleRequest(**values))).schedule

    async def update(self, **fields: Any) -> pb.WorkflowSchedule:
        request = pb.UpdateWorkflowScheduleRequest(schedule_id="s", **fields)
        return (await self.call("UpdateWorkflowSchedule", request)).schedule

    async def get(self, **fields: Any) -> pb.WorkflowSchedule:
        request = pb.GetWorkflowScheduleRequest(**{"schedule_id": "s", **fields})
        return (await self.call("GetWorkflowSchedule", request)).schedule

    async def fires(self) -> list[pb.ScheduleFire]:
        request = pb.ListWorkflowScheduleRunsRequest(schedule_id="s")
        return list((await self.call("ListWorkflowScheduleRuns", request)).fires)


@pytest.fixture
def schedules(stubs: Stubs) -> Schedules:
    return Schedules(stubs)


async def refused(call: Any, code: grpc.StatusCode, says: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match=says) as refusal:
        await call
    assert refusal.value.code() is code


EVERYTHING: dict[str, Any] = {
    "task_queue": "greet",
    "cron_expr": "*/15 3 * * MON",
    "timezone": "Europe/Berlin",
    "input": json_payload('{"a":1}'),
    "context": json_payload('{"traceparent":"x"}'),
    "enabled": False,
    "max_catchup": 7,
    "version": "2",
    "overlap": pb.OVERLAP_POLICY_BUFFER_ONE,
    "jitter": Duration(seconds=30),
    "start_at": Timestamp(seconds=1_000_000_000),
    "end_at": Timestamp(seconds=5_000_000_000),
    "catchup_window": Duration(seconds=3600),
    "labels": {"team": "growth"},
    "priority": 5,
    "timeout": Duration(seconds=90),
}


async def test_every_field_comes_back(schedules: Schedules) -> None:
    made = await schedules.create(**EVERYTHING, request_id="r")
    assert made == await schedules.get()
    for field, value in EVERYTHING.items():
        assert getattr(made, field) == value, field
    assert made.namespace_id == "default"
    assert not made.HasField("next_fire_at")
    assert await schedules.create(**EVERYTHING, request_id="r") == made
    await refused(schedules.create(), grpc.StatusCode.ALREADY_EXISTS, "exists")


async def test_an_update_changes_what_it_names(schedules: Schedules) -> None:
    await schedules.create(**EVERYTHING)
    changed = await schedules.update(interval=Duration(seconds=90), enabled=True, max_catchup=0)
    assert (changed.cron_expr, changed.timezone, changed.interval.seconds) == ("", "", 90)
    assert (changed.enabled, changed.max_catchup, changed.priority) == (True, 0, 5)
    assert changed.HasField("next_fire_at")
    cleared = await schedules.update(
        cron_expr="0 7 * * *",
        timezone="America/New_York",
        start_at=Timestamp(),
        end_at=Timestamp(),
        input=common_pb2.Payload(),
        context=common_pb2.Payload(),
        timeout=Duration(),
        set_labels=True,
        overlap=pb.OVERLAP_POLICY_SKIP,
        jitter=Duration(),
        version="",
        workflow_type="other",
        priority=0,
        catchup_window=Duration(seconds=60),
    )
    for field in ("start_at", "end_at", "input", "context", "timeout", "interval"):
        assert not cleared.HasField(field), field
    assert (cleared.cron_expr, cleared.timezone, cleared.version) == ("0 7 * * *", "America/New_York", "")
    assert (cleared.workflow_type, cleared.task_queue) == ("other", "other")
    assert not cleared.labels
    assert cleared.created_at == changed.created_at
    ahead = Timestamp(seconds=cleared.next_fire_at.seconds + 1)
    moved = await schedules.update(next_fire_at=ahead)
    assert moved.next_fire_at.seconds > cleared.next_fire_at.seconds
    [skip] = await schedules.fires()
    assert (skip.nominal_at, skip.skipped_count, skip.run_id) == (cleared.next_fire_at, 1, "")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"cron_expr": "not cron"}, "cron_expr"),
        ({"cron_expr": "0 0 30 2 *"}, "day-of-month"),
        ({"cron_expr": ""}, "exactly one"),
        ({"interval": Duration(seconds=5)}, "exactly one"),
        ({"cron_expr": "", "interval": Duration(nanos=5)}, "minimum is 1s"),
        ({"timezone": "Mars/Base"}, "time zone"),
        ({"cron_expr": "", "interval": Duration(seconds=5), "timezone": "Europe/Berlin"}, "timezone"),
        ({"workflow_type": ""}, "workflow_type"),
        ({"schedule_id": "x" * 201}, "200"),
        ({"max_catchup": -1}, "max_catchup"),
        ({"max_catchup": 1001}, "max_catchup"),
        ({"overlap": 9}, "overlap"),
        ({"jitter": Duration(seconds=-1)}, "jitter"),
        ({"priority": 101}, "priority"),
        ({"end_at": Timestamp(seconds=1), "start_at": Timestamp(seconds=1)}, "end_at"),
        ({"timeout": Duration(seconds=-1)}, "timeout"),
        ({"labels": {"": "x"}}, "labels"),
    ],
)
async def test_what_cannot_be_is_refused(memory_stubs: Stubs, fields: dict[str, Any], says: str) -> None:
    schedules = Schedules(memory_stubs)
    await refused(schedules.create(**fields), grpc.StatusCode.INVALID_ARGUMENT, says)
    await refused(schedules.get(), grpc.StatusCode.NOT_FOUND, "not found")


async def test_a_foreign_schedule_is_not_found(memory_stubs: Stubs) -> None:
    schedules = Schedules(memory_stubs)
    await schedules.create()
    elsewhere = {"namespace_id": "elsewhere", "schedule_id": "s"}
    moments = {"from": Timestamp(seconds=1), "to": Timestamp(seconds=2)}
    requests = {
        "GetWorkflowSchedule": pb.GetWorkflowScheduleRequest(**elsewhere),
        "UpdateWorkflowSchedule": pb.UpdateWorkflowScheduleRequest(**elsewhere, priority=1),
        "PauseWorkflowSchedule": pb.PauseWorkflowScheduleRequest(**elsewhere),
        "ResumeWorkflowSchedule": pb.ResumeWorkflowScheduleRequest(**elsewhere),
        "TriggerWorkflowSchedule": pb.TriggerWorkflowScheduleRequest(**elsewhere),
        "BackfillWorkflowSchedule": pb.BackfillWorkflowScheduleRequest(**elsewhere, **moments),
        "PreviewWorkflowSchedule": pb.PreviewWorkflowScheduleRequest(**elsewhere),
        "ListWorkflowScheduleRuns": pb.ListWorkflowScheduleRunsRequest(**elsewhere),
    }
    for method, request in requests.items():
        await refused(schedules.call(method, request), grpc.StatusCode.NOT_FOUND, "schedule s not found")
    deleted = await schedules.call("DeleteWorkflowSchedule", pb.DeleteWorkflowScheduleRequest(**elsewhere))
    assert not deleted.deleted
    listed = await schedules.call("ListWorkflowSchedules", pb.ListWorkflowSchedulesRequest(namespace_id="elsewhere"))
    assert not listed.schedules
    assert (await schedules.get()).schedule_id == "s"


async def test_an_upsert_is_for_every_deploy(schedules: Schedules) -> None:
    schedule = pb.CreateWorkflowScheduleRequest(schedule_id="s", workflow_type="greet", cron_expr="0 6 * * *")
    request = pb.UpsertWorkflowScheduleRequest(schedule=schedule)
    first = await schedules.call("UpsertWorkflowSchedule", request)
    again = await schedules.call("UpsertWorkflowSchedule", request)
    assert (first.created, again.created) == (True, False)
    assert first.schedule == again.schedule
    request.schedule.cron_expr = "0 7 * * *"
    changed = await schedules.call("UpsertWorkflowSchedule", request)
    assert changed.schedule.cron_expr == "0 7 * * *"
    request.namespace_id, request.schedule.namespace_id = "a", "b"
    await refused(schedules.call("UpsertWorkflowSchedule", request), grpc.StatusCode.INVALID_ARGUMENT, "namespace_id")


async def test_pause_trigger_backfill_preview_and_delete(schedules: Schedules, stubs: Stubs) -> None:
    await schedules.create(cron_expr="* * * * *", overlap=pb.OVERLAP_POLICY_SKIP, input=json_payload("3"))
    paused = await schedules.call(
        "PauseWorkflowSchedule", pb.PauseWorkflowScheduleRequest(schedule_id="s", reason="why")
    )
    assert (paused.schedule.enabled, paused.schedule.paused_reason) == (False, "why")
    trigger = pb.TriggerWorkflowScheduleRequest(schedule_id="s", request_id="r")
    first = await schedules.call("TriggerWorkflowSchedule", trigger)
    assert await schedules.call("TriggerWorkflowSchedule", trigger) == first
    run = await stubs.get(first.run_id)
    assert (run.workflow_id, run.schedule_id, run.input.data) == (first.workflow_id, "s", b"3")
    trigger.request_id = "another"
    await refused(schedules.call("TriggerWorkflowSchedule", trigger), grpc.StatusCode.FAILED_PRECONDITION, first.run_id)
    begin = Timestamp(seconds=1_767_225_600)  # 2026-01-01
    backfill = pb.BackfillWorkflowScheduleRequest(
        schedule_id="s", **{"from": begin, "to": Timestamp(seconds=begin.seconds + 300)}
    )
    filled = await schedules.call("BackfillWorkflowSchedule", backfill)
    assert [fire.nominal_at.seconds - begin.seconds for fire in filled.fires] == [0, 60, 120, 180, 240]
    assert await schedules.call("BackfillWorkflowSchedule", backfill) == filled
    too_many = pb.BackfillWorkflowScheduleRequest(
        schedule_id="s", **{"from": begin, "to": Timestamp(seconds=begin.seconds + 60 * 1001)}
    )
    await refused(schedules.call("BackfillWorkflowSchedule", too_many), grpc.StatusCode.INVALID_ARGUMENT, "1000")
    preview = pb.PreviewWorkflowScheduleRequest(schedule_id="s", count=3, after=begin)
    times = await schedules.call("PreviewWorkflowSchedule", preview)
    assert [at.seconds - begin.seconds for at in times.fires] == [60, 120, 180]
    fires = await schedules.fires()
    assert [fire.cause for fire in fires] == ["trigger", *["backfill"] * 5]
    listed = await stubs.workflows.ListWorkflows(
        workflow_pb2.ListWorkflowsRequest(filter=workflow_pb2.WorkflowFilter(schedule_id="s")), timeout=TIMEOUT_S
    )
    assert len(listed.workflows) == 6
    delete = pb.DeleteWorkflowScheduleRequest(schedule_id="s")
    assert (await schedules.call("DeleteWorkflowSchedule", delete)).deleted
    assert not (await schedules.call("DeleteWorkflowSchedule", delete)).deleted
    assert (await stubs.get(first.run_id)).run_id == first.run_id


async def test_an_expression_can_be_previewed_without_saving_it(memory_stubs: Stubs) -> None:
    schedules = Schedules(memory_stubs)
    after = Timestamp(seconds=1_774_742_400)  # 2026-03-29 00:00 UTC: the clock is turned in an hour
    request = pb.PreviewWorkflowScheduleRequest(cron_expr="30 2 * * *", timezone="Europe/Berlin", after=after, count=2)
    times = await schedules.call("PreviewWorkflowSchedule", request)
    assert [at.ToJsonString() for at in times.fires] == ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]
    request = pb.PreviewWorkflowScheduleRequest(interval=Duration(seconds=30), after=after)
    times = await schedules.call("PreviewWorkflowSchedule", request)
    assert [at.seconds - after.seconds for at in times.fires] == list(range(30, 301, 30))
    for request, says in (
        (pb.PreviewWorkflowScheduleRequest(), "schedule_id"),
        (pb.PreviewWorkflowScheduleRequest(schedule_id="s", cron_expr="* * * * *"), "not both"),
        (pb.PreviewWorkflowScheduleRequest(cron_expr="* * * * *", count=1001), "count"),
        (pb.PreviewWorkflowScheduleRequest(cron_expr="x"), "cron_expr"),
    ):
        await refused(schedules.call("PreviewWorkflowSchedule", request), grpc.StatusCode.INVALID_ARGUMENT, says)


async def test_the_clock_starts_runs(schedules: Schedules, stubs: Stubs) -> None:
    await schedules.create(cron_expr="* * * * * *", timeout=Duration(seconds=90))
    worker_id = await stubs.register()
    task = await stubs.poll(worker_id)
    run = await stubs.get(task.run_id)
    assert run.schedule_id == "s"
    assert run.workflow_id.startswith("s/20")
    assert run.deadline_at.seconds == run.created_at.seconds + 90
    fires = await schedules.fires()
    assert task.run_id in {fire.run_id for fire in fires}
    assert (await schedules.get()).HasField("last_fired_at")
