"""Kagzi: durable execution for Python.

    from kagzi import Context, Kagzi, Worker, workflow

Names are loaded when first used: the command line and the server, which live in this package, do not pay for the SDK.
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .core.commands import OnConflict
    from .core.duration import Duration, parse_duration
    from .core.error_details import ErrorCode, ErrorDetail, ErrorKind
    from .core.errors import (
        AlreadyExists,
        ChildError,
        Diverged,
        InternalError,
        InvalidArgument,
        KagziError,
        LeaseLost,
        NonRetryable,
        NotFound,
        PermissionDenied,
        PreconditionFailed,
        RequestError,
        ResourceExhausted,
        RetryAfter,
        RunError,
        SchemaMismatch,
        StepError,
        Unavailable,
        Unimplemented,
    )
    from .core.states import RunStatus, StepKind, StepStatus, WorkerStatus
    from .sdk.bulk import BulkOperation, BulkProgress
    from .sdk.children import ChildHandle
    from .sdk.client import Kagzi
    from .sdk.context import Context
    from .sdk.credentials import Tls
    from .sdk.current import StepInfo, current_step
    from .sdk.explanation import Explanation
    from .sdk.lint import KagziWarning
    from .sdk.log_context import RunContextFilter
    from .sdk.namespaces import NamespaceInfo
    from .sdk.retry import Retry
    from .sdk.run import Run, RunQuery
    from .sdk.run_info import RunInfo
    from .sdk.schedule_options import DeclaredSchedule, schedule
    from .sdk.schedule_records import Schedule, ScheduleFire
    from .sdk.schedules import ScheduleBuilder
    from .sdk.signals import Signal, Won
    from .sdk.start import Start
    from .sdk.stats import Stats, StatsMinute
    from .sdk.step import Step, step
    from .sdk.step_records import StepRecord
    from .sdk.transfers import ImportedRun
    from .sdk.versions import VersionInfo
    from .sdk.worker import Worker
    from .sdk.workers import WorkerEvent, WorkerInfo
    from .sdk.workflow import Workflow, workflow
    from .sdk.workflow_types import QueueInfo, WorkflowTypeInfo

__all__ = [
    "AlreadyExists",
    "BulkOperation",
    "BulkProgress",
    "ChildError",
    "ChildHandle",
    "Context",
    "DeclaredSchedule",
    "Diverged",
    "Duration",
    "ErrorCode",
    "ErrorDetail",
    "ErrorKind",
    "Explanation",
    "ImportedRun",
    "InternalError",
    "InvalidArgument",
    "Kagzi",
    "KagziError",
    "KagziWarning",
    "LeaseLost",
    "NamespaceInfo",
    "NonRetryable",
    "NotFound",
    "OnConflict",
    "PermissionDenied",
    "PreconditionFailed",
    "QueueInfo",
    "RequestError",
    "ResourceExhausted",
    "Retry",
    "RetryAfter",
    "Run",
    "RunContextFilter",
    "RunError",
    "RunInfo",
    "RunQuery",
    "RunStatus",
    "Schedule",
    "ScheduleBuilder",
    "ScheduleFire",
    "SchemaMismatch",
    "Signal",
    "Start",
    "Stats",
    "StatsMinute",
    "Step",
    "StepError",
    "StepInfo",
    "StepKind",
    "StepRecord",
    "StepStatus",
    "Tls",
    "Unavailable",
    "Unimplemented",
    "VersionInfo",
    "Won",
    "Worker",
    "WorkerEvent",
    "WorkerInfo",
    "WorkerStatus",
    "Workflow",
    "WorkflowTypeInfo",
    "__version__",
    "current_step",
    "parse_duration",
    "schedule",
    "step",
    "workflow",
]

_HOMES = {
    "core.commands": ("OnConflict",),
    "core.duration": ("Duration", "parse_duration"),
    "core.error_details": ("ErrorCode", "ErrorDetail", "ErrorKind"),
    "core.errors": (
        "AlreadyExists",
        "ChildError",
        "Diverged",
        "InternalError",
        "InvalidArgument",
        "KagziError",
        "LeaseLost",
        "NonRetryable",
        "NotFound",
        "PermissionDenied",
        "PreconditionFailed",
        "RequestError",
        "ResourceExhausted",
        "RetryAfter",
        "RunError",
        "SchemaMismatch",
        "StepError",
        "Unavailable",
        "Unimplemented",
    ),
    "core.states": ("RunStatus", "StepKind", "StepStatus", "WorkerStatus"),
    "sdk.bulk": ("BulkOperation", "BulkProgress"),
    "sdk.children": ("ChildHandle",),
    "sdk.client": ("Kagzi",),
    "sdk.context": ("Context",),
    "sdk.credentials": ("Tls",),
    "sdk.current": ("StepInfo", "current_step"),
    "sdk.explanation": ("Explanation",),
    "sdk.lint": ("KagziWarning",),
    "sdk.log_context": ("RunContextFilter",),
    "sdk.namespaces": ("NamespaceInfo",),
    "sdk.retry": ("Retry",),
    "sdk.run": ("Run", "RunQuery"),
    "sdk.run_info": ("RunInfo",),
    "sdk.schedule_options": ("DeclaredSchedule", "schedule"),
    "sdk.schedule_records": ("Schedule", "ScheduleFire"),
    "sdk.schedules": ("ScheduleBuilder",),
    "sdk.signals": ("Signal", "Won"),
    "sdk.start": ("Start",),
    "sdk.stats": ("Stats", "StatsMinute"),
    "sdk.step": ("Step", "step"),
    "sdk.step_records": ("StepRecord",),
    "sdk.transfers": ("ImportedRun",),
    "sdk.versions": ("VersionInfo",),
    "sdk.worker": ("Worker",),
    "sdk.workers": ("WorkerEvent", "WorkerInfo"),
    "sdk.workflow": ("Workflow", "workflow"),
    "sdk.workflow_types": ("QueueInfo", "WorkflowTypeInfo"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # or every name would seem to be here

    def __getattr__(name: str) -> object:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415  lazy, as everything here

        value: object = getattr(import_module(f"{__name__}.{home}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
