"""Which rows to count: those of a list with its filters."""

from typing import Literal, TypeAlias

import msgspec

from ..states import WorkerStatus
from ..times import Timestamp

CountedList: TypeAlias = Literal[
    "audit",
    "bulk_operations",
    "forgotten_steps",
    "keys",
    "namespaces",
    "schedule_fires",
    "schedules",
    "step_logs",
    "steps",
    "versions",
    "worker_events",
    "workers",
    "workflow_types",
]


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """`key` selects within the list: the workflow type for versions, types, schedules and workers, the worker for
    events, the run for steps and their logs, the schedule for fires; empty selects the whole namespace. Workers that
    have not reported since `alive_since` are offline."""

    rows: CountedList
    namespace: str = ""
    key: str = ""
    step_name: str = ""
    status: WorkerStatus | None = None
    alive_since: Timestamp = 0
