"""The methods of the contract that this server does not have yet, by the capability that brings them."""

OPERATIONS = "operating Kagzi (versions, schedules, queues, namespaces, bulk, retention)"
WATCHING = "watching runs live"
KEYS = "API keys"
LATER = "a later version"

UNIMPLEMENTED: dict[str, str] = {
    **dict.fromkeys(
        (
            "/kagzi.v1.WorkflowService/StartBulkOperation",
            "/kagzi.v1.WorkflowService/GetBulkOperation",
            "/kagzi.v1.WorkflowService/ListBulkOperations",
            "/kagzi.v1.WorkflowService/ExportWorkflow",
            "/kagzi.v1.WorkflowService/ImportWorkflow",
            "/kagzi.v1.WorkflowScheduleService/CreateWorkflowSchedule",
            "/kagzi.v1.WorkflowScheduleService/GetWorkflowSchedule",
            "/kagzi.v1.WorkflowScheduleService/ListWorkflowSchedules",
            "/kagzi.v1.WorkflowScheduleService/UpdateWorkflowSchedule",
            "/kagzi.v1.WorkflowScheduleService/DeleteWorkflowSchedule",
            "/kagzi.v1.WorkflowScheduleService/UpsertWorkflowSchedule",
            "/kagzi.v1.WorkflowScheduleService/PauseWorkflowSchedule",
            "/kagzi.v1.WorkflowScheduleService/ResumeWorkflowSchedule",
            "/kagzi.v1.WorkflowScheduleService/TriggerWorkflowSchedule",
            "/kagzi.v1.WorkflowScheduleService/BackfillWorkflowSchedule",
            "/kagzi.v1.WorkflowScheduleService/PreviewWorkflowSchedule",
            "/kagzi.v1.WorkflowScheduleService/ListWorkflowScheduleRuns",
            "/kagzi.v1.AdminService/DrainWorker",
            "/kagzi.v1.AdminService/ListWorkerEvents",
            "/kagzi.v1.AdminService/GetStats",
            "/kagzi.v1.AdminService/GetQueueDepth",
            "/kagzi.v1.AdminService/ListWorkflowTypes",
            "/kagzi.v1.AdminService/UpdateWorkflowType",
            "/kagzi.v1.AdminService/PauseWorkflowType",
            "/kagzi.v1.AdminService/ResumeWorkflowType",
            "/kagzi.v1.AdminService/ListVersions",
            "/kagzi.v1.AdminService/SetDefaultVersion",
            "/kagzi.v1.AdminService/DeprecateVersion",
            "/kagzi.v1.NamespaceService/CreateNamespace",
            "/kagzi.v1.NamespaceService/GetNamespace",
            "/kagzi.v1.NamespaceService/ListNamespaces",
            "/kagzi.v1.NamespaceService/UpdateNamespace",
            "/kagzi.v1.NamespaceService/DeleteNamespace",
        ),
        OPERATIONS,
    ),
    "/kagzi.v1.WorkflowService/Watch": WATCHING,
    **dict.fromkeys(
        (
            "/kagzi.v1.KeyService/CreateKey",
            "/kagzi.v1.KeyService/ListKeys",
            "/kagzi.v1.KeyService/RotateKey",
            "/kagzi.v1.KeyService/RevokeKey",
        ),
        KEYS,
    ),
}


def sentence(path: str) -> str:
    return f"{path.rpartition('/')[2]} is not implemented by this server yet. It comes with: {UNIMPLEMENTED.get(path, LATER)}."
