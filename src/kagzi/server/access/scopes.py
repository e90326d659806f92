"""The table of scopes that methods require. A server starts only if the table matches the methods that it serves."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...core.access import Scope
from ..startup import CannotStart


class Need(NamedTuple):
    """`scope` None: any valid key. `everywhere`: the key must cover every namespace, as the method concerns the server.
    `public`: no key is required."""

    scope: Scope | None
    everywhere: bool = False
    public: bool = False


_PUBLIC = Need(None, public=True)
_ANY_KEY = Need(None)
_READ, _CLIENT, _WORKER, _ADMIN = (Need(scope) for scope in (Scope.READ, Scope.CLIENT, Scope.WORKER, Scope.ADMIN))
_READ_EVERYWHERE, _ADMIN_EVERYWHERE = Need(Scope.READ, everywhere=True), Need(Scope.ADMIN, everywhere=True)

_NEEDS_BY_SERVICE: Mapping[str, Mapping[Need, str]] = {
    "kagzi.v1.WorkflowService": {
        _READ: "GetWorkflow ListWorkflows CountWorkflows ExplainWorkflow Wait WaitStream Watch ExportWorkflow "
        "GetBulkOperation ListBulkOperations",
        _CLIENT: "StartWorkflow StartBatch SignalWithStart SignalWorkflow ReplaceSignal CancelWorkflow "
        "TerminateWorkflow WakeStep PauseWorkflow ResumeWorkflow AdoptWorkflow RetryWorkflow ForkWorkflow "
        "ImportWorkflow StartBulkOperation StopBulkOperation",
    },
    "kagzi.v1.WorkerService": {
        _WORKER: "Register Heartbeat Deregister PollTask BeginStep CompleteStep FailStep CompleteWorkflow FailWorkflow "
        "Sleep Session GetHistory Park Release WaitSignal StartChild",
    },
    "kagzi.v1.WorkflowScheduleService": {
        _READ: "GetWorkflowSchedule ListWorkflowSchedules PreviewWorkflowSchedule ListWorkflowScheduleRuns",
        _CLIENT: "CreateWorkflowSchedule UpdateWorkflowSchedule DeleteWorkflowSchedule UpsertWorkflowSchedule "
        "PauseWorkflowSchedule ResumeWorkflowSchedule TriggerWorkflowSchedule BackfillWorkflowSchedule",
    },
    "kagzi.v1.AdminService": {
        _PUBLIC: "HealthCheck",
        _ANY_KEY: "GetServerInfo",
        _READ: "ListWorkers GetWorker GetStep ListSteps GetTimeline ListStepLogs ListWorkerEvents GetStats "
        "GetQueueDepth ListWorkflowTypes ListVersions GetWorkflowSchema",
        _ADMIN: "DrainWorker UpdateWorkflowType PauseWorkflowType ResumeWorkflowType SetDefaultVersion "
        "DeprecateVersion",
    },
    "kagzi.v1.NamespaceService": {
        _READ: "GetNamespace",
        _READ_EVERYWHERE: "ListNamespaces",
        _ADMIN_EVERYWHERE: "CreateNamespace UpdateNamespace DeleteNamespace",
    },
    "kagzi.v1.KeyService": {_ADMIN: "CreateKey ListKeys RotateKey RevokeKey ListAudit"},
    "grpc.health.v1.Health": {_PUBLIC: "Check Watch List"},
    "grpc.reflection.v1.ServerReflection": {_ANY_KEY: "ServerReflectionInfo"},
    "grpc.reflection.v1alpha.ServerReflection": {_ANY_KEY: "ServerReflectionInfo"},
}
"""Starting and changing runs is `client`, whatever the change; changing how other callers' runs are executed is
`admin`."""

NEEDS: Mapping[str, Need] = {
    f"/{service}/{method}": need
    for service, needs in _NEEDS_BY_SERVICE.items()
    for need, methods in needs.items()
    for method in methods.split()
}
"""By path."""

_OTHERS = ("/grpc.health.", "/grpc.reflection.")  # their libraries define the methods


def check_methods(paths: Iterable[str], needs: Mapping[str, Need] = NEEDS) -> None:
    """Raises CannotStart if a method has no scope, or the table names a method that does not exist."""
    served = set(paths)
    if missing := sorted(served - needs.keys()):
        raise CannotStart(
            f"no scope is declared for {', '.join(missing)}. Add it to kagzi/server/access/scopes.py: without one, "
            "nobody knows who may call it."
        )
    unknown = sorted(path for path in needs.keys() - served if not path.startswith(_OTHERS))
    if unknown:
        raise CannotStart(f"a scope is declared for {', '.join(unknown)}, which is not served. Remove it.")


def check_routes(routes: Iterable[tuple[str, object]]) -> None:
    """Raises CannotStart for a route (its name and scope) without a scope."""
    if missing := sorted(name for name, scope in routes if not isinstance(scope, Scope)):
        raise CannotStart(f"no scope is declared for the HTTP routes {', '.join(missing)}. Add it to their table.")
