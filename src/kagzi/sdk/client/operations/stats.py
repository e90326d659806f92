"""`client.stats`: runs started and ended per minute or longer step, and open runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ....core.duration import Duration
from ....core.public import exported
from ....v1 import admin_pb2 as pb
from ....wire.common import write_time_if
from ....wire.fields import form, reader
from ...transport.connection import Connection
from ...workflow.workflow import Workflow
from ..filters import moment


@exported
@dataclass(frozen=True, slots=True)
class StatsMinute:
    """Runs of a workflow that started or ended in one minute, or in a longer step."""

    minute: datetime  #: the start of the minute or step, in UTC
    workflow: str  #: the name of the workflow; empty: all others together
    started: int  #: runs started
    completed: int  #: runs completed
    failed: int  #: runs failed
    cancelled: int  #: runs cancelled
    p50: timedelta | None  #: median time from the first claim to the end; None if none ended
    p95: timedelta | None  #: 95th percentile of the same; within a factor of two if the step is longer than a minute
    took: tuple[int, ...] = ()  #: counts of runs by duration: below 1 ms, 2 ms, 4 ms ...; can be added up


@exported
@dataclass(frozen=True, slots=True)
class Stats:
    """Counts per minute or longer step, and open runs: `await client.stats()`."""

    minutes: tuple[StatsMinute, ...]  #: oldest first
    open: Mapping[str, int]  #: runs that have not ended, by status
    open_is_capped: bool  #: whether a count stopped at 10,000
    step: str = "1m"  #: the length of a step


def _milliseconds(name: Any) -> Callable[[pb.StatsBucket], timedelta | None]:
    return lambda bucket: timedelta(milliseconds=getattr(bucket, name)) if bucket.HasField(name) else None


form(
    pb.StatsBucket,
    StatsMinute,
    reader(
        pb.StatsBucket,
        StatsMinute,
        names={"workflow": "workflow_type", "p50": "p50_ms", "p95": "p95_ms"},
        p50=_milliseconds("p50_ms"),
        p95=_milliseconds("p95_ms"),
        took=lambda bucket: tuple(bucket.took),
    ),
)
_read_stats = reader(pb.GetStatsResponse, Stats, names={"minutes": "buckets", "open": "open_by_status"})


async def get_stats(
    connection: Connection,
    namespace: str,
    *,
    workflow: Workflow[Any, Any] | str,
    since: datetime | Duration | None,
    until: datetime | Duration | None,
    step: str,
) -> Stats:
    now = connection.clock.now()
    request = pb.GetStatsRequest(
        namespace_id=namespace,
        since=write_time_if(moment(since, now, "since")),
        until=write_time_if(moment(until, now, "until")),
        workflow_type=workflow if isinstance(workflow, str) else workflow.name,
        step=step,
    )
    response = await connection.call(lambda link: link.admin.GetStats, request)
    return _read_stats(response)
