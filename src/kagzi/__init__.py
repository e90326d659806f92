"""Kagzi: durable execution for Python.

    from kagzi import Context, Kagzi, Worker, workflow

Names are loaded when first used: the command line and the server, which live in this package, do not pay for the SDK.
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .core.commands import OnConflict
    from .core.duration import Duration, parse_duration
    from .core.errors import (
        AlreadyExists,
        ChildError,
        Diverged,
        ErrorCode,
        ErrorDetail,
        ErrorKind,
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
    from .core.states import RunStatus, StepKind, StepStatus
    from .sdk.children import ChildHandle
    from .sdk.client import Kagzi
    from .sdk.context import Context
    from .sdk.credentials import Tls
    from .sdk.current import StepInfo, current_step
    from .sdk.explanation import Explanation
    from .sdk.lint import KagziWarning
    from .sdk.retry import Retry
    from .sdk.run import Run
    from .sdk.run_info import RunInfo
    from .sdk.signals import Signal, Won
    from .sdk.start import Start
    from .sdk.step import Step, step
    from .sdk.step_records import StepRecord
    from .sdk.worker import Worker
    from .sdk.workflow import Workflow, workflow

__all__ = [
    "AlreadyExists",
    "ChildError",
    "ChildHandle",
    "Context",
    "Diverged",
    "Duration",
    "ErrorCode",
    "ErrorDetail",
    "ErrorKind",
    "Explanation",
    "InternalError",
    "InvalidArgument",
    "Kagzi",
    "KagziError",
    "KagziWarning",
    "LeaseLost",
    "NonRetryable",
    "NotFound",
    "OnConflict",
    "PermissionDenied",
    "PreconditionFailed",
    "RequestError",
    "ResourceExhausted",
    "Retry",
    "RetryAfter",
    "Run",
    "RunError",
    "RunInfo",
    "RunStatus",
    "SchemaMismatch",
    "Signal",
    "Start",
    "Step",
    "StepError",
    "StepInfo",
    "StepKind",
    "StepRecord",
    "StepStatus",
    "Tls",
    "Unavailable",
    "Unimplemented",
    "Won",
    "Worker",
    "Workflow",
    "__version__",
    "current_step",
    "parse_duration",
    "step",
    "workflow",
]

_HOMES = {
    "core.commands": ("OnConflict",),
    "core.duration": ("Duration", "parse_duration"),
    "core.errors": (
        "AlreadyExists",
        "ChildError",
        "Diverged",
        "ErrorCode",
        "ErrorDetail",
        "ErrorKind",
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
    "core.states": ("RunStatus", "StepKind", "StepStatus"),
    "sdk.children": ("ChildHandle",),
    "sdk.client": ("Kagzi",),
    "sdk.context": ("Context",),
    "sdk.credentials": ("Tls",),
    "sdk.current": ("StepInfo", "current_step"),
    "sdk.explanation": ("Explanation",),
    "sdk.lint": ("KagziWarning",),
    "sdk.retry": ("Retry",),
    "sdk.run": ("Run",),
    "sdk.run_info": ("RunInfo",),
    "sdk.signals": ("Signal", "Won"),
    "sdk.start": ("Start",),
    "sdk.step": ("Step", "step"),
    "sdk.step_records": ("StepRecord",),
    "sdk.worker": ("Worker",),
    "sdk.workflow": ("Workflow", "workflow"),
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
