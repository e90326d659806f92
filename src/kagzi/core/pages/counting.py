"""Which rows to count: those of a list, as its filters leave them."""

from typing import Literal, TypeAlias

import msgspec

from ..states import WorkerStatus
from ..times import Timestamp

CountedList: TypeAlias = Literal[
    "audit",
    "bulk_operations",
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
    """`key` is what the list is about: the workflow type of versions, types, schedules and workers, the worker of
    events, the run of steps and of their logs, the schedule of fires; empty is all of the namespace. Workers not heard
    of since `alive_since` are offline."""

    rows: CountedList
    namespace: str = ""
    key: str = ""
    step_name: str = ""
    status: WorkerStatus | None = None
    alive_since: Timestamp = 0
