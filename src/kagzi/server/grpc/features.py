"""The features of this server beyond the first contract, by the names that GetServerInfo returns.

Clients check for a feature by name instead of comparing versions. Each name maps to the calls (`Service/Method`) and
fields (`Message.field`) of the feature; a test checks that they exist.
"""

from ...wire.enums import PARTS, RECORD_STEP

FEATURES: dict[str, tuple[str, ...]] = {
    "adopt": ("WorkflowService/AdoptWorkflow", "Workflow.pinned_build"),
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
    "forgotten-steps": ("ListStepsRequest.forgotten", "GetStepRequest.retry_seq", "Step.retry_seq"),
    "history": ("WorkerService/GetHistory",),
    "keys": (
        "KeyService/CreateKey",
        "KeyService/ListKeys",
        "KeyService/RotateKey",
        "KeyService/RevokeKey",
        "KeyService/ListAudit",
    ),
    "leases": ("BeginStepRequest.lease", "PollTaskResponse.lease"),
    "namespaces": (
        "NamespaceService/CreateNamespace",
        "NamespaceService/GetNamespace",
        "NamespaceService/ListNamespaces",
        "NamespaceService/UpdateNamespace",
        "NamespaceService/DeleteNamespace",
    ),
    "park": ("WorkerService/Park",),
    PARTS: ("SessionRequest.part", "SessionRequest.is_last_part"),
    "pause": ("WorkflowService/PauseWorkflow", "WorkflowService/ResumeWorkflow"),
    RECORD_STEP: ("Operation.record_step", "SessionWelcome.features"),
    "release": ("WorkerService/Release",),
    "retry-on": ("RetryPolicy.retry_on_errors", "ErrorDetail.exhausted"),
    "retry-runs": ("WorkflowService/RetryWorkflow",),
    "run-state": ("Operation.set_state", "Workflow.state", "WatchResponse.state_at"),
    "schedule-owners": ("WorkflowSchedule.owner", "CreateWorkflowScheduleRequest.owner"),
    "schedule-preview": ("WorkflowScheduleService/PreviewWorkflowSchedule",),
    "schedules": (
        "WorkflowScheduleService/UpsertWorkflowSchedule",
        "WorkflowScheduleService/PauseWorkflowSchedule",
        "WorkflowScheduleService/ResumeWorkflowSchedule",
        "WorkflowScheduleService/TriggerWorkflowSchedule",
        "WorkflowScheduleService/ListWorkflowScheduleRuns",
    ),
    "schemas": (
        "AdminService/GetWorkflowSchema",
        "WorkflowTypeVersion.input_schema",
        "WorkflowTypeVersion.output_schema",
        "WorkflowTypeVersion.description",
        "WorkflowTypeVersion.signal_schemas",
    ),
    "session": ("WorkerService/Session",),
    "signal-with-start": ("WorkflowService/SignalWithStart",),
    "signals": ("WorkflowService/SignalWorkflow", "WorkflowService/ReplaceSignal", "WorkerService/WaitSignal"),
    "start-and-wait": (
        "StartBatchRequest.wait_stream_id",
        "StartBatchRequest.waited",
        "StartBatchResponse.subscribed",
        "WaitStreamRequest.stream_id",
    ),
    "start-batch": ("WorkflowService/StartBatch",),
    "stats": ("AdminService/GetStats", "AdminService/GetQueueDepth"),
    "step-logs": ("AdminService/ListStepLogs", "SessionUpdate.step_logs"),
    "step-timeouts": ("BeginStepRequest.timeout_ms",),
    "terminate": ("WorkflowService/TerminateWorkflow",),
    "timeline": ("AdminService/GetTimeline",),
    "timeline-pauses": ("GetTimelineResponse.pauses", "TimelineAttempt.worker_id"),
    "total-counts": ("PageRequest.include_total_count",),
    "versions": ("AdminService/ListVersions", "AdminService/SetDefaultVersion", "AdminService/DeprecateVersion"),
    "wait": ("WorkflowService/Wait",),
    "wait-stream": ("WorkflowService/WaitStream",),
    "wake": ("WorkflowService/WakeStep", "Fetched.retries", "NotParked.retries"),
    "watch": ("WorkflowService/Watch",),
    "worker-events": ("AdminService/ListWorkerEvents",),
    "workflow-types": (
        "AdminService/ListWorkflowTypes",
        "AdminService/UpdateWorkflowType",
        "AdminService/PauseWorkflowType",
        "AdminService/ResumeWorkflowType",
    ),
}

SESSION_FEATURES = (RECORD_STEP, PARTS)
"""The features in a session's welcome: a worker may use them in what it sends."""
