"""What this server can do beyond the first contract, by the names that GetServerInfo tells: one list, here.

A client asks for a feature by its name instead of comparing versions. Behind each name is what makes it up: calls
(`Service/Method`) and fields (`Message.field`); a test looks each of them up.
"""

FEATURES: dict[str, tuple[str, ...]] = {
    "backfill": ("WorkflowScheduleService/BackfillWorkflowSchedule",),
    "bulk-operations": (
        "WorkflowService/StartBulkOperation",
        "WorkflowService/GetBulkOperation",
        "WorkflowService/StopBulkOperation",
        "WorkflowService/ListBulkOperations",
    ),
    "children": ("WorkerService/StartChild",),
    "concurrency-keys": ("StartWorkflowRequest.concurrency_key",),
    "count": ("WorkflowService/CountWorkflows",),
    "drain": ("AdminService/DrainWorker",),
    "explain": ("WorkflowService/ExplainWorkflow",),
    "export-import": ("WorkflowService/ExportWorkflow", "WorkflowService/ImportWorkflow"),
    "fork": ("WorkflowService/ForkWorkflow",),
    "history": ("WorkerService/GetHistory",),
    "leases": ("BeginStepRequest.lease", "PollTaskResponse.lease"),
    "namespaces": (
        "NamespaceService/CreateNamespace",
        "NamespaceService/GetNamespace",
        "NamespaceService/ListNamespaces",
        "NamespaceService/UpdateNamespace",
        "NamespaceService/DeleteNamespace",
    ),
    "park": ("WorkerService/Park",),
    "pause": ("WorkflowService/PauseWorkflow", "WorkflowService/ResumeWorkflow"),
    "release": ("WorkerService/Release",),
    "retry-on": ("RetryPolicy.retry_on_errors", "ErrorDetail.exhausted"),
    "retry-runs": ("WorkflowService/RetryWorkflow",),
    "schedule-preview": ("WorkflowScheduleService/PreviewWorkflowSchedule",),
    "schedules": (
        "WorkflowScheduleService/UpsertWorkflowSchedule",
        "WorkflowScheduleService/PauseWorkflowSchedule",
        "WorkflowScheduleService/ResumeWorkflowSchedule",
        "WorkflowScheduleService/TriggerWorkflowSchedule",
        "WorkflowScheduleService/ListWorkflowScheduleRuns",
    ),
    "session": ("WorkerService/Session",),
    "signal-with-start": ("WorkflowService/SignalWithStart",),
    "signals": ("WorkflowService/SignalWorkflow", "WorkflowService/ReplaceSignal", "WorkerService/WaitSignal"),
    "start-batch": ("WorkflowService/StartBatch",),
    "stats": ("AdminService/GetStats", "AdminService/GetQueueDepth"),
    "step-timeouts": ("BeginStepRequest.timeout_ms",),
    "terminate": ("WorkflowService/TerminateWorkflow",),
    "total-counts": ("PageRequest.include_total_count",),
    "versions": ("AdminService/ListVersions", "AdminService/SetDefaultVersion", "AdminService/DeprecateVersion"),
    "wait": ("WorkflowService/Wait",),
    "wait-stream": ("WorkflowService/WaitStream",),
    "watch": ("WorkflowService/Watch",),
    "worker-events": ("AdminService/ListWorkerEvents",),
    "workflow-types": (
        "AdminService/ListWorkflowTypes",
        "AdminService/UpdateWorkflowType",
        "AdminService/PauseWorkflowType",
        "AdminService/ResumeWorkflowType",
    ),
}
