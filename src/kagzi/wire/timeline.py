"""Steps for drawing a timeline."""

from ..core.pages.pauses import Pause
from ..core.pages.timeline import TIMELINE_STEPS, Timeline, TimelineQuery, TimelineRetry, TimelineStep
from ..v1 import admin_pb2 as pb
from ..v1 import worker_pb2
from .common import write_time, write_time_if
from .enums import STEP_KIND_FROM_WIRE, STEP_STATUS_FROM_WIRE, word_of
from .fields import writer

_write_step = writer(
    pb.TimelineStep,
    TimelineStep,
    attempts=lambda step: [
        pb.TimelineAttempt(started_at=write_time_if(began), finished_at=write_time(ended), worker_id=worker or "")
        for began, ended, worker in step.attempts
    ],
)

_write_pause = writer(pb.TimelinePause, Pause)
_write_retry = writer(pb.TimelineRetry, TimelineRetry)


def read_timeline_query(request: pb.GetTimelineRequest) -> TimelineQuery:
    return TimelineQuery(
        after=request.after if request.HasField("after") else None,
        before=request.before if request.HasField("before") else None,
        around=request.around,
        name=request.step_name,
        statuses=tuple(
            word_of(STEP_STATUS_FROM_WIRE, status, worker_pb2.StepStatus.DESCRIPTOR, "statuses")
            for status in request.statuses
        ),
        kinds=tuple(
            word_of(STEP_KIND_FROM_WIRE, kind, worker_pb2.StepKind.DESCRIPTOR, "kinds") for kind in request.kinds
        ),
        size=request.size or TIMELINE_STEPS,
    )


def write_timeline(timeline: Timeline) -> pb.GetTimelineResponse:
    steps = [_write_step(step) for step in timeline.steps]
    pauses = [_write_pause(pause) for pause in timeline.pauses]
    retries = [_write_retry(retry) for retry in timeline.retries]
    return pb.GetTimelineResponse(
        steps=steps, older=timeline.older, newer=timeline.newer, pauses=pauses, retries=retries
    )
