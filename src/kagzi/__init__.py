"""Kagzi: durable execution for Python.

    from kagzi import Context, Kagzi, Worker, workflow

The names that this module exports are public. Every module below it is private and may move or change in any version.

Names are loaded on first use, so the command line and the server, which are in this package, do not load the SDK.
"""

from typing import TYPE_CHECKING

from .core.version import __version__

if TYPE_CHECKING:
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
        RunError,
        SchemaMismatch,
        StepError,
        Unauthenticated,
        Unavailable,
        Unimplemented,
    )
    from .core.records import Explanation
    from .core.retry.retry_after import RetryAfter
    from .core.run.commands import OnConflict
    from .core.states import RunStatus, StepKind, StepStatus, WaitReason, WorkerStatus
    from .sdk.client.client import Kagzi
    from .sdk.client.operations.bulk import BulkOperation, BulkProgress
    from .sdk.client.operations.keys import AuditRecord, KeyInfo, NewKey
    from .sdk.client.operations.namespaces import NamespaceInfo
    from .sdk.client.operations.schedule_options import DeclaredSchedule, schedule
    from .sdk.client.operations.schedule_records import Schedule, ScheduleFire, SyncedSchedules
    from .sdk.client.operations.schedules import ScheduleBuilder
    from .sdk.client.operations.stats import Stats, StatsMinute
    from .sdk.client.operations.transfers import ImportedRun
    from .sdk.client.operations.versions import VersionInfo
    from .sdk.client.operations.workers import WorkerEvent, WorkerInfo
    from .sdk.client.operations.workflow_types import QueueInfo, WorkflowSchema, WorkflowTypeInfo
    from .sdk.client.run import Run, RunQuery
    from .sdk.client.run_records import RunInfo
    from .sdk.client.start import Start
    from .sdk.client.step_logs import LogLine, StepLogs
    from .sdk.client.step_records import StepRecord
    from .sdk.lint.kagzi_warning import KagziWarning
    from .sdk.transactions.effect import Effect, effect
    from .sdk.transport.credentials import Tls
    from .sdk.transport.payload_codec import Codec
    from .sdk.worker.log_context import RunContextFilter
    from .sdk.worker.worker import Worker
    from .sdk.workflow.children import ChildHandle
    from .sdk.workflow.context import Context
    from .sdk.workflow.current import StepInfo, current_step
    from .sdk.workflow.decorator import workflow
    from .sdk.workflow.retry import Retry
    from .sdk.workflow.signals import Signal, Won
    from .sdk.workflow.step import Step, step
    from .sdk.workflow.workflow import Workflow

__all__ = [
    "AlreadyExists",
    "AuditRecord",
    "BulkOperation",
    "BulkProgress",
    "ChildError",
    "ChildHandle",
    "Codec",
    "Context",
    "DeclaredSchedule",
    "Diverged",
    "Duration",
    "Effect",
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
    "KeyInfo",
    "LeaseLost",
    "LogLine",
    "NamespaceInfo",
    "NewKey",
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
    "StepLogs",
    "StepRecord",
    "StepStatus",
    "SyncedSchedules",
    "Tls",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "VersionInfo",
    "WaitReason",
    "Won",
    "Worker",
    "WorkerEvent",
    "WorkerInfo",
    "WorkerStatus",
    "Workflow",
    "WorkflowSchema",
    "WorkflowTypeInfo",
    "__version__",
    "current_step",
    "effect",
    "parse_duration",
    "schedule",
    "step",
    "workflow",
]

_HOMES = {
    "core.run.commands": ("OnConflict",),
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
        "RunError",
        "SchemaMismatch",
        "StepError",
        "Unauthenticated",
        "Unavailable",
        "Unimplemented",
    ),
    "core.records": ("Explanation",),
    "core.retry.retry_after": ("RetryAfter",),
    "core.states": ("RunStatus", "StepKind", "StepStatus", "WaitReason", "WorkerStatus"),
    "sdk.client.operations.bulk": ("BulkOperation", "BulkProgress"),
    "sdk.workflow.children": ("ChildHandle",),
    "sdk.client.client": ("Kagzi",),
    "sdk.workflow.context": ("Context",),
    "sdk.transactions.effect": ("Effect", "effect"),
    "sdk.transport.credentials": ("Tls",),
    "sdk.transport.payload_codec": ("Codec",),
    "sdk.workflow.current": ("StepInfo", "current_step"),
    "sdk.client.run_records": ("RunInfo",),
    "sdk.client.step_logs": ("LogLine", "StepLogs"),
    "sdk.client.step_records": ("StepRecord",),
    "sdk.lint.kagzi_warning": ("KagziWarning",),
    "sdk.worker.log_context": ("RunContextFilter",),
    "sdk.client.operations.keys": ("AuditRecord", "KeyInfo", "NewKey"),
    "sdk.client.operations.namespaces": ("NamespaceInfo",),
    "sdk.workflow.retry": ("Retry",),
    "sdk.client.run": ("Run", "RunQuery"),
    "sdk.client.operations.schedule_options": ("DeclaredSchedule", "schedule"),
    "sdk.client.operations.schedule_records": ("Schedule", "ScheduleFire", "SyncedSchedules"),
    "sdk.client.operations.schedules": ("ScheduleBuilder",),
    "sdk.workflow.signals": ("Signal", "Won"),
    "sdk.client.start": ("Start",),
    "sdk.client.operations.stats": ("Stats", "StatsMinute"),
    "sdk.workflow.step": ("Step", "step"),
    "sdk.client.operations.transfers": ("ImportedRun",),
    "sdk.client.operations.versions": ("VersionInfo",),
    "sdk.worker.worker": ("Worker",),
    "sdk.client.operations.workers": ("WorkerEvent", "WorkerInfo"),
    "sdk.workflow.decorator": ("workflow",),
    "sdk.workflow.workflow": ("Workflow",),
    "sdk.client.operations.workflow_types": ("QueueInfo", "WorkflowSchema", "WorkflowTypeInfo"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # otherwise a type checker would accept every name

    def __getattr__(name: str) -> object:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415  lazy, like every import here

        value: object = getattr(import_module(f"{__name__}.{home}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
