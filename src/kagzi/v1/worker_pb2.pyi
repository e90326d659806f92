import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import empty_pb2 as _empty_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from kagzi.v1 import common_pb2 as _common_pb2
from kagzi.v1 import workflow_pb2 as _workflow_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WorkerStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WORKER_STATUS_UNSPECIFIED: _ClassVar[WorkerStatus]
    WORKER_STATUS_ONLINE: _ClassVar[WorkerStatus]
    WORKER_STATUS_DRAINING: _ClassVar[WorkerStatus]
    WORKER_STATUS_OFFLINE: _ClassVar[WorkerStatus]

class StepKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STEP_KIND_UNSPECIFIED: _ClassVar[StepKind]
    STEP_KIND_FUNCTION: _ClassVar[StepKind]
    STEP_KIND_SLEEP: _ClassVar[StepKind]
    STEP_KIND_SIGNAL: _ClassVar[StepKind]
    STEP_KIND_CHILD: _ClassVar[StepKind]
    STEP_KIND_RACE: _ClassVar[StepKind]
    STEP_KIND_PATCH: _ClassVar[StepKind]

class StepStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STEP_STATUS_UNSPECIFIED: _ClassVar[StepStatus]
    STEP_STATUS_PENDING: _ClassVar[StepStatus]
    STEP_STATUS_RUNNING: _ClassVar[StepStatus]
    STEP_STATUS_COMPLETED: _ClassVar[StepStatus]
    STEP_STATUS_FAILED: _ClassVar[StepStatus]
    STEP_STATUS_ABANDONED: _ClassVar[StepStatus]

class ParentClosePolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PARENT_CLOSE_POLICY_UNSPECIFIED: _ClassVar[ParentClosePolicy]
    PARENT_CLOSE_POLICY_CANCEL: _ClassVar[ParentClosePolicy]
    PARENT_CLOSE_POLICY_ABANDON: _ClassVar[ParentClosePolicy]

class RunNoticeKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_NOTICE_KIND_UNSPECIFIED: _ClassVar[RunNoticeKind]
    RUN_NOTICE_KIND_LEASE_LOST: _ClassVar[RunNoticeKind]
    RUN_NOTICE_KIND_CANCEL_REQUESTED: _ClassVar[RunNoticeKind]
    RUN_NOTICE_KIND_PAUSE_REQUESTED: _ClassVar[RunNoticeKind]
    RUN_NOTICE_KIND_RESULT: _ClassVar[RunNoticeKind]
    RUN_NOTICE_KIND_WARNING: _ClassVar[RunNoticeKind]
WORKER_STATUS_UNSPECIFIED: WorkerStatus
WORKER_STATUS_ONLINE: WorkerStatus
WORKER_STATUS_DRAINING: WorkerStatus
WORKER_STATUS_OFFLINE: WorkerStatus
STEP_KIND_UNSPECIFIED: StepKind
STEP_KIND_FUNCTION: StepKind
STEP_KIND_SLEEP: StepKind
STEP_KIND_SIGNAL: StepKind
STEP_KIND_CHILD: StepKind
STEP_KIND_RACE: StepKind
STEP_KIND_PATCH: StepKind
STEP_STATUS_UNSPECIFIED: StepStatus
STEP_STATUS_PENDING: StepStatus
STEP_STATUS_RUNNING: StepStatus
STEP_STATUS_COMPLETED: StepStatus
STEP_STATUS_FAILED: StepStatus
STEP_STATUS_ABANDONED: StepStatus
PARENT_CLOSE_POLICY_UNSPECIFIED: ParentClosePolicy
PARENT_CLOSE_POLICY_CANCEL: ParentClosePolicy
PARENT_CLOSE_POLICY_ABANDON: ParentClosePolicy
RUN_NOTICE_KIND_UNSPECIFIED: RunNoticeKind
RUN_NOTICE_KIND_LEASE_LOST: RunNoticeKind
RUN_NOTICE_KIND_CANCEL_REQUESTED: RunNoticeKind
RUN_NOTICE_KIND_PAUSE_REQUESTED: RunNoticeKind
RUN_NOTICE_KIND_RESULT: RunNoticeKind
RUN_NOTICE_KIND_WARNING: RunNoticeKind

class Worker(_message.Message):
    __slots__ = ("worker_id", "namespace_id", "task_queue", "status", "hostname", "pid", "version", "workflow_types", "max_concurrent", "active_count", "total_completed", "total_failed", "registered_at", "last_heartbeat_at", "labels", "queue_concurrency_limit", "workflow_type_concurrency", "served", "build_id")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPES_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENT_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FAILED_FIELD_NUMBER: _ClassVar[int]
    REGISTERED_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_HEARTBEAT_AT_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_CONCURRENCY_LIMIT_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    SERVED_FIELD_NUMBER: _ClassVar[int]
    BUILD_ID_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    namespace_id: str
    task_queue: str
    status: WorkerStatus
    hostname: str
    pid: int
    version: str
    workflow_types: _containers.RepeatedScalarFieldContainer[str]
    max_concurrent: int
    active_count: int
    total_completed: int
    total_failed: int
    registered_at: _timestamp_pb2.Timestamp
    last_heartbeat_at: _timestamp_pb2.Timestamp
    labels: _containers.ScalarMap[str, str]
    queue_concurrency_limit: int
    workflow_type_concurrency: _containers.RepeatedCompositeFieldContainer[WorkflowTypeConcurrency]
    served: _containers.RepeatedCompositeFieldContainer[WorkflowTypeVersion]
    build_id: str
    def __init__(self, worker_id: _Optional[str] = ..., namespace_id: _Optional[str] = ..., task_queue: _Optional[str] = ..., status: _Optional[_Union[WorkerStatus, str]] = ..., hostname: _Optional[str] = ..., pid: _Optional[int] = ..., version: _Optional[str] = ..., workflow_types: _Optional[_Iterable[str]] = ..., max_concurrent: _Optional[int] = ..., active_count: _Optional[int] = ..., total_completed: _Optional[int] = ..., total_failed: _Optional[int] = ..., registered_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_heartbeat_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ..., queue_concurrency_limit: _Optional[int] = ..., workflow_type_concurrency: _Optional[_Iterable[_Union[WorkflowTypeConcurrency, _Mapping]]] = ..., served: _Optional[_Iterable[_Union[WorkflowTypeVersion, _Mapping]]] = ..., build_id: _Optional[str] = ...) -> None: ...

class WorkflowTypeConcurrency(_message.Message):
    __slots__ = ("workflow_type", "max_concurrent")
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENT_FIELD_NUMBER: _ClassVar[int]
    workflow_type: str
    max_concurrent: int
    def __init__(self, workflow_type: _Optional[str] = ..., max_concurrent: _Optional[int] = ...) -> None: ...

class WorkflowTypeVersion(_message.Message):
    __slots__ = ("workflow_type", "version", "input_schema", "output_schema", "description", "signal_schemas")
    class SignalSchemasEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    INPUT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_SCHEMAS_FIELD_NUMBER: _ClassVar[int]
    workflow_type: str
    version: str
    input_schema: str
    output_schema: str
    description: str
    signal_schemas: _containers.ScalarMap[str, str]
    def __init__(self, workflow_type: _Optional[str] = ..., version: _Optional[str] = ..., input_schema: _Optional[str] = ..., output_schema: _Optional[str] = ..., description: _Optional[str] = ..., signal_schemas: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Step(_message.Message):
    __slots__ = ("step_id", "run_id", "namespace_id", "name", "kind", "status", "attempt_number", "input", "output", "error", "created_at", "started_at", "finished_at", "child_run_id", "seq", "retry_policy", "timeout_ms", "retry_at", "wake_at", "parent_step_id", "parallel_group_id", "attempts", "heartbeat_details", "worker_id", "claim", "begun_seq", "retry_seq", "retried_at")
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_NUMBER_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_FIELD_NUMBER: _ClassVar[int]
    CHILD_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    RETRY_AT_FIELD_NUMBER: _ClassVar[int]
    WAKE_AT_FIELD_NUMBER: _ClassVar[int]
    PARENT_STEP_ID_FIELD_NUMBER: _ClassVar[int]
    PARALLEL_GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_DETAILS_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    BEGUN_SEQ_FIELD_NUMBER: _ClassVar[int]
    RETRY_SEQ_FIELD_NUMBER: _ClassVar[int]
    RETRIED_AT_FIELD_NUMBER: _ClassVar[int]
    step_id: str
    run_id: str
    namespace_id: str
    name: str
    kind: StepKind
    status: StepStatus
    attempt_number: int
    input: _common_pb2.Payload
    output: _common_pb2.Payload
    error: _common_pb2.ErrorDetail
    created_at: _timestamp_pb2.Timestamp
    started_at: _timestamp_pb2.Timestamp
    finished_at: _timestamp_pb2.Timestamp
    child_run_id: str
    seq: int
    retry_policy: _common_pb2.RetryPolicy
    timeout_ms: int
    retry_at: _timestamp_pb2.Timestamp
    wake_at: _timestamp_pb2.Timestamp
    parent_step_id: str
    parallel_group_id: str
    attempts: _containers.RepeatedCompositeFieldContainer[StepAttempt]
    heartbeat_details: _common_pb2.Payload
    worker_id: str
    claim: int
    begun_seq: int
    retry_seq: int
    retried_at: _timestamp_pb2.Timestamp
    def __init__(self, step_id: _Optional[str] = ..., run_id: _Optional[str] = ..., namespace_id: _Optional[str] = ..., name: _Optional[str] = ..., kind: _Optional[_Union[StepKind, str]] = ..., status: _Optional[_Union[StepStatus, str]] = ..., attempt_number: _Optional[int] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., output: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., finished_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., child_run_id: _Optional[str] = ..., seq: _Optional[int] = ..., retry_policy: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ..., timeout_ms: _Optional[int] = ..., retry_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., wake_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., parent_step_id: _Optional[str] = ..., parallel_group_id: _Optional[str] = ..., attempts: _Optional[_Iterable[_Union[StepAttempt, _Mapping]]] = ..., heartbeat_details: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., worker_id: _Optional[str] = ..., claim: _Optional[int] = ..., begun_seq: _Optional[int] = ..., retry_seq: _Optional[int] = ..., retried_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class StepAttempt(_message.Message):
    __slots__ = ("attempt_number", "started_at", "finished_at", "error", "worker_id", "claim", "begun_seq", "input", "before_retry")
    ATTEMPT_NUMBER_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    BEGUN_SEQ_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    BEFORE_RETRY_FIELD_NUMBER: _ClassVar[int]
    attempt_number: int
    started_at: _timestamp_pb2.Timestamp
    finished_at: _timestamp_pb2.Timestamp
    error: _common_pb2.ErrorDetail
    worker_id: str
    claim: int
    begun_seq: int
    input: _common_pb2.Payload
    before_retry: bool
    def __init__(self, attempt_number: _Optional[int] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., finished_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., worker_id: _Optional[str] = ..., claim: _Optional[int] = ..., begun_seq: _Optional[int] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., before_retry: bool = ...) -> None: ...

class RegisterRequest(_message.Message):
    __slots__ = ("namespace_id", "task_queue", "workflow_types", "hostname", "pid", "version", "max_concurrent", "labels", "queue_concurrency_limit", "workflow_type_concurrency", "served", "build_id", "worker_id")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPES_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENT_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_CONCURRENCY_LIMIT_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    SERVED_FIELD_NUMBER: _ClassVar[int]
    BUILD_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    task_queue: str
    workflow_types: _containers.RepeatedScalarFieldContainer[str]
    hostname: str
    pid: int
    version: str
    max_concurrent: int
    labels: _containers.ScalarMap[str, str]
    queue_concurrency_limit: int
    workflow_type_concurrency: _containers.RepeatedCompositeFieldContainer[WorkflowTypeConcurrency]
    served: _containers.RepeatedCompositeFieldContainer[WorkflowTypeVersion]
    build_id: str
    worker_id: str
    def __init__(self, namespace_id: _Optional[str] = ..., task_queue: _Optional[str] = ..., workflow_types: _Optional[_Iterable[str]] = ..., hostname: _Optional[str] = ..., pid: _Optional[int] = ..., version: _Optional[str] = ..., max_concurrent: _Optional[int] = ..., labels: _Optional[_Mapping[str, str]] = ..., queue_concurrency_limit: _Optional[int] = ..., workflow_type_concurrency: _Optional[_Iterable[_Union[WorkflowTypeConcurrency, _Mapping]]] = ..., served: _Optional[_Iterable[_Union[WorkflowTypeVersion, _Mapping]]] = ..., build_id: _Optional[str] = ..., worker_id: _Optional[str] = ...) -> None: ...

class RegisterResponse(_message.Message):
    __slots__ = ("worker_id", "heartbeat_interval_secs", "heartbeat_interval_ms", "lease_ms")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_SECS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    heartbeat_interval_secs: int
    heartbeat_interval_ms: int
    lease_ms: int
    def __init__(self, worker_id: _Optional[str] = ..., heartbeat_interval_secs: _Optional[int] = ..., heartbeat_interval_ms: _Optional[int] = ..., lease_ms: _Optional[int] = ...) -> None: ...

class LeasedRun(_message.Message):
    __slots__ = ("run_id", "lease")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    lease: _common_pb2.Lease
    def __init__(self, run_id: _Optional[str] = ..., lease: _Optional[_Union[_common_pb2.Lease, _Mapping]] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("worker_id", "active_count", "completed_delta", "failed_delta", "namespace_id", "leased", "diagnostics", "step_logs")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_COUNT_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_DELTA_FIELD_NUMBER: _ClassVar[int]
    FAILED_DELTA_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    LEASED_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    STEP_LOGS_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    active_count: int
    completed_delta: int
    failed_delta: int
    namespace_id: str
    leased: _containers.RepeatedCompositeFieldContainer[LeasedRun]
    diagnostics: _containers.RepeatedCompositeFieldContainer[WorkerDiagnostic]
    step_logs: _containers.RepeatedCompositeFieldContainer[StepLog]
    def __init__(self, worker_id: _Optional[str] = ..., active_count: _Optional[int] = ..., completed_delta: _Optional[int] = ..., failed_delta: _Optional[int] = ..., namespace_id: _Optional[str] = ..., leased: _Optional[_Iterable[_Union[LeasedRun, _Mapping]]] = ..., diagnostics: _Optional[_Iterable[_Union[WorkerDiagnostic, _Mapping]]] = ..., step_logs: _Optional[_Iterable[_Union[StepLog, _Mapping]]] = ...) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ("accepted", "should_drain", "lost", "cancel_requested")
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    SHOULD_DRAIN_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    CANCEL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    accepted: bool
    should_drain: bool
    lost: _containers.RepeatedCompositeFieldContainer[LeasedRun]
    cancel_requested: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, accepted: bool = ..., should_drain: bool = ..., lost: _Optional[_Iterable[_Union[LeasedRun, _Mapping]]] = ..., cancel_requested: _Optional[_Iterable[str]] = ...) -> None: ...

class DeregisterRequest(_message.Message):
    __slots__ = ("worker_id", "drain", "namespace_id")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    drain: bool
    namespace_id: str
    def __init__(self, worker_id: _Optional[str] = ..., drain: bool = ..., namespace_id: _Optional[str] = ...) -> None: ...

class PollTaskRequest(_message.Message):
    __slots__ = ("worker_id", "namespace_id", "task_queue", "workflow_types", "max_tasks", "wait")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPES_FIELD_NUMBER: _ClassVar[int]
    MAX_TASKS_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    namespace_id: str
    task_queue: str
    workflow_types: _containers.RepeatedScalarFieldContainer[str]
    max_tasks: int
    wait: _duration_pb2.Duration
    def __init__(self, worker_id: _Optional[str] = ..., namespace_id: _Optional[str] = ..., task_queue: _Optional[str] = ..., workflow_types: _Optional[_Iterable[str]] = ..., max_tasks: _Optional[int] = ..., wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class PollTaskResponse(_message.Message):
    __slots__ = ("run_id", "workflow_type", "input", "lease", "tasks")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    workflow_type: str
    input: _common_pb2.Payload
    lease: _common_pb2.Lease
    tasks: _containers.RepeatedCompositeFieldContainer[Task]
    def __init__(self, run_id: _Optional[str] = ..., workflow_type: _Optional[str] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., lease: _Optional[_Union[_common_pb2.Lease, _Mapping]] = ..., tasks: _Optional[_Iterable[_Union[Task, _Mapping]]] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("run_id", "workflow_type", "input", "lease", "workflow_id", "namespace_id", "version", "attempt", "context", "deadline_at_us", "labels", "history", "cancel_requested", "cancel_reason", "last_seq", "claimed_at_us", "parent_run_id", "created_at_us", "pause_requested", "scheduled_at_us", "own_traces_from")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_AT_US_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    CANCEL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    CANCEL_REASON_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQ_FIELD_NUMBER: _ClassVar[int]
    CLAIMED_AT_US_FIELD_NUMBER: _ClassVar[int]
    PARENT_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_US_FIELD_NUMBER: _ClassVar[int]
    PAUSE_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_AT_US_FIELD_NUMBER: _ClassVar[int]
    OWN_TRACES_FROM_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    workflow_type: str
    input: _common_pb2.Payload
    lease: _common_pb2.Lease
    workflow_id: str
    namespace_id: str
    version: str
    attempt: int
    context: _common_pb2.Payload
    deadline_at_us: int
    labels: _containers.ScalarMap[str, str]
    history: HistoryPage
    cancel_requested: bool
    cancel_reason: str
    last_seq: int
    claimed_at_us: int
    parent_run_id: str
    created_at_us: int
    pause_requested: bool
    scheduled_at_us: int
    own_traces_from: int
    def __init__(self, run_id: _Optional[str] = ..., workflow_type: _Optional[str] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., lease: _Optional[_Union[_common_pb2.Lease, _Mapping]] = ..., workflow_id: _Optional[str] = ..., namespace_id: _Optional[str] = ..., version: _Optional[str] = ..., attempt: _Optional[int] = ..., context: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., deadline_at_us: _Optional[int] = ..., labels: _Optional[_Mapping[str, str]] = ..., history: _Optional[_Union[HistoryPage, _Mapping]] = ..., cancel_requested: bool = ..., cancel_reason: _Optional[str] = ..., last_seq: _Optional[int] = ..., claimed_at_us: _Optional[int] = ..., parent_run_id: _Optional[str] = ..., created_at_us: _Optional[int] = ..., pause_requested: bool = ..., scheduled_at_us: _Optional[int] = ..., own_traces_from: _Optional[int] = ...) -> None: ...

class HistoryPage(_message.Message):
    __slots__ = ("steps", "has_more", "next_after")
    STEPS_FIELD_NUMBER: _ClassVar[int]
    HAS_MORE_FIELD_NUMBER: _ClassVar[int]
    NEXT_AFTER_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.RepeatedCompositeFieldContainer[HistoryStep]
    has_more: bool
    next_after: int
    def __init__(self, steps: _Optional[_Iterable[_Union[HistoryStep, _Mapping]]] = ..., has_more: bool = ..., next_after: _Optional[int] = ...) -> None: ...

class HistoryStep(_message.Message):
    __slots__ = ("step_id", "kind", "status", "attempt", "begun_seq", "seq", "at_us", "output", "error", "retry_at_us", "wake_at_us", "child_run_id", "details")
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    BEGUN_SEQ_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    AT_US_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    RETRY_AT_US_FIELD_NUMBER: _ClassVar[int]
    WAKE_AT_US_FIELD_NUMBER: _ClassVar[int]
    CHILD_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    step_id: str
    kind: StepKind
    status: StepStatus
    attempt: int
    begun_seq: int
    seq: int
    at_us: int
    output: _common_pb2.Payload
    error: _common_pb2.ErrorDetail
    retry_at_us: int
    wake_at_us: int
    child_run_id: str
    details: _common_pb2.Payload
    def __init__(self, step_id: _Optional[str] = ..., kind: _Optional[_Union[StepKind, str]] = ..., status: _Optional[_Union[StepStatus, str]] = ..., attempt: _Optional[int] = ..., begun_seq: _Optional[int] = ..., seq: _Optional[int] = ..., at_us: _Optional[int] = ..., output: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., retry_at_us: _Optional[int] = ..., wake_at_us: _Optional[int] = ..., child_run_id: _Optional[str] = ..., details: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ...) -> None: ...

class GetHistoryRequest(_message.Message):
    __slots__ = ("namespace_id", "run_id", "lease", "after", "known_seq")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    KNOWN_SEQ_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    run_id: str
    lease: _common_pb2.Lease
    after: int
    known_seq: int
    def __init__(self, namespace_id: _Optional[str] = ..., run_id: _Optional[str] = ..., lease: _Optional[_Union[_common_pb2.Lease, _Mapping]] = ..., after: _Optional[int] = ..., known_seq: _Optional[int] = ...) -> None: ...

class BeginStepRequest(_message.Message):
    __slots__ = ("run_id", "step_name", "kind", "input", "retry_policy", "namespace_id", "lease", "step_id", "attempt", "timeout_ms", "parent_step_id", "parallel_group_id")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    PARENT_STEP_ID_FIELD_NUMBER: _ClassVar[int]
    PARALLEL_GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    step_name: str
    kind: StepKind
    input: _common_pb2.Payload
    retry_policy: _common_pb2.RetryPolicy
    namespace_id: str
    lease: _common_pb2.Lease
    step_id: str
    attempt: int
    timeout_ms: int
    parent_step_id: str
    parallel_group_id: str
    def __init__(self, run_id: _Optional[str] = ..., step_name: _Optional[str] = ..., kind: _Optional[_Union[StepKind, str]] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., retry_policy: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ..., namespace_id: _Optional[str] = ..., lease: _Optional[_Union[_common_pb2.Lease, _Mapping]] = ..., step_id: _Optional[str] = ..., attempt: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., parent_step_id: _Optional[str] = ..., parallel_group_id: _Optional[str] = ...) -> None: ...

class BeginStepResponse(_message.Message):
    __slots__ = ("step_id", "should_execute", "cached_output", "attempt", "error", "retry_at")
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    SHOULD_EXECUTE_FIELD_NUMBER: _ClassVar[int]
    CACHED_OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    RETRY_AT_FIELD_NUMBER: _ClassVar[int]
    step_id: str
    should_execute: bool
    cached_output: _common_pb2.Payload
    attempt: int
    error: _common_pb2.ErrorDetail
    retry_at: _timestamp_pb2.Timestamp
    def __init__(self, step_id: _Optional[str] = ..., should_execute: bool = ..., cached_output: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., attempt: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., retry_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CompleteStepRequest(_message.Message):
    __slots__ = ("run_id", "step_id", "output", "namespace_id", "lease", "attempt")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    step_id: str
    output: _common_pb2.Payload
    namespace_id: str
    lease: _common_pb2.Lease
    attempt: int
    def __init__(self, run_id: _Optional[str] = ..., step_id: _Optional[str] = ..., output: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., namespace_id: _Optional[str] = ..., lease: _Optional[_Union[_common_pb2.Lease, _Mapping]] = ..., attempt: _Optional[int] = ...) -> None: ...

class CompleteStepResponse(_message.Message):
    __slots__ = ("step", "seq")
    STEP_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    step: Step
    seq: int
    def __init__(self, step: _Optional[_Union[Step, _Mapping]] = ..., seq: _Optional[int] = ...) -> None: ...

class FailStepRequest(_message.Message):
    __slots__ = ("run_id", "step_id", "error", "namespace_id", "lease", "attempt", "input")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    step_id: str
    error: _common_pb2.ErrorDetail
    namespace_id: str
    lease: _common_pb2.Lease
    attempt: int
    input: _common_pb2.Payload
    def __init__(self, run_id: _Optional[str] = ..., step_id: _Optional[str] = ..., error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., namespace_id: _Optional[str] = ..., lease: _Optional[_Union[_common_pb2.Lease, _Mapping]] = ..., attempt: _Optional[int] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ...) -> None: ...

class FailStepResponse(_message.Message):
    __slots__ = ("scheduled_retry", "retry_at", "next_attempt", "seq")
    SCHEDULED_RETRY_FIELD_NUMBER: _ClassVar[int]
    RETRY_AT_FIELD_NUMBER: _ClassVar[int]
    NEXT_ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    scheduled_retry: bool
    retry_at: _timestamp_pb2.Timestamp
    next_attempt: int
    seq: int
    def __init__(self, scheduled_retry: bool = ..., retry_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., next_attempt: _Optional[int] = ..., seq: _Optional[int] = ...) -> None: ...

class CompleteWorkflowRequest(_message.Message):
    __slots__ = ("run_id", "output", "namespace_id", "lease")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    output: _common_pb2.Payload
    namespace_id: str
    lease: _common_pb2.Lease
    def __init__(self, run_id: _Optional[str] = ..., output: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., namespace_id: _Optional[str] = ..., lease: _Optional[_Union[_common_pb2.Lease, _Mapping]] = ...) -> None: ...

class CompleteWorkflowResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: _workflow_pb2.WorkflowStatus
    def __init__(self, status: _Optional[_Union[_workflow_pb2.WorkflowStatus, str]] = ...) -> None: ...

class FailWorkflowRequest(_message.Message):
    __slots__ = ("run_id", "error", "namespace_id", "lease")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    error: _common_pb2.ErrorDetail
    namespace_id: str
    lease: _common_pb2.Lease
    def __init__(self, run_id: _Optional[str] = ..., error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., namespace_id: _Optional[str] = ..., lease: _Optional[_Union[_common_pb2.Lease, _Mapping]] = ...) -> None: ...

class FailWorkflowResponse(_message.Message):
    __slots__ = ("status", "retry_at")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    RETRY_AT_FIELD_NUMBER: _ClassVar[int]
    status: _workflow_pb2.WorkflowStatus
    retry_at: _timestamp_pb2.Timestamp
    def __init__(self, status: _Optional[_Union[_workflow_pb2.WorkflowStatus, str]] = ..., retry_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class SleepRequest(_message.Message):
    __slots__ = ("run_id", "step_id", "duration_seconds", "namespace_id", "lease", "duration", "until", "step_name")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    DURATION_SECONDS_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    STEP_NAME_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    step_id: str
    duration_seconds: int
    namespace_id: str
    lease: _common_pb2.Lease
    duration: _duration_pb2.Duration
    until: _timestamp_pb2.Timestamp
    step_name: str
    def __init__(self, run_id: _Optional[str] = ..., step_id: _Optional[str] = ..., duration_seconds: _Optional[int] = ..., namespace_id: _Optional[str] = ..., lease: _Optional[_Union[_common_pb2.Lease, _Mapping]] = ..., duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., step_name: _Optional[str] = ...) -> None: ...

class SleepResponse(_message.Message):
    __slots__ = ("remaining_ms", "wake_at", "parked")
    REMAINING_MS_FIELD_NUMBER: _ClassVar[int]
    WAKE_AT_FIELD_NUMBER: _ClassVar[int]
    PARKED_FIELD_NUMBER: _ClassVar[int]
    remaining_ms: int
    wake_at: _timestamp_pb2.Timestamp
    parked: bool
    def __init__(self, remaining_ms: _Optional[int] = ..., wake_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., parked: bool = ...) -> None: ...

class ParkRequest(_message.Message):
    __slots__ = ("namespace_id", "run_id", "lease", "waits", "known_seq")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    KNOWN_SEQ_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    run_id: str
    lease: _common_pb2.Lease
    waits: _containers.RepeatedScalarFieldContainer[str]
    known_seq: int
    def __init__(self, namespace_id: _Optional[str] = ..., run_id: _Optional[str] = ..., lease: _Optional[_Union[_common_pb2.Lease, _Mapping]] = ..., waits: _Optional[_Iterable[str]] = ..., known_seq: _Optional[int] = ...) -> None: ...

class ParkResponse(_message.Message):
    __slots__ = ("parked", "results", "more")
    PARKED_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    parked: bool
    results: _containers.RepeatedCompositeFieldContainer[HistoryStep]
    more: bool
    def __init__(self, parked: bool = ..., results: _Optional[_Iterable[_Union[HistoryStep, _Mapping]]] = ..., more: bool = ...) -> None: ...

class ReleaseRequest(_message.Message):
    __slots__ = ("namespace_id", "run_id", "lease", "reason")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    run_id: str
    lease: _common_pb2.Lease
    reason: str
    def __init__(self, namespace_id: _Optional[str] = ..., run_id: _Optional[str] = ..., lease: _Optional[_Union[_common_pb2.Lease, _Mapping]] = ..., reason: _Optional[str] = ...) -> None: ...

class ReleaseResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: _workflow_pb2.WorkflowStatus
    def __init__(self, status: _Optional[_Union[_workflow_pb2.WorkflowStatus, str]] = ...) -> None: ...

class WaitSignalRequest(_message.Message):
    __slots__ = ("namespace_id", "run_id", "lease", "step_id", "signal_name", "timeout", "input")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_NAME_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    run_id: str
    lease: _common_pb2.Lease
    step_id: str
    signal_name: str
    timeout: _duration_pb2.Duration
    input: _common_pb2.Payload
    def __init__(self, namespace_id: _Optional[str] = ..., run_id: _Optional[str] = ..., lease: _Optional[_Union[_common_pb2.Lease, _Mapping]] = ..., step_id: _Optional[str] = ..., signal_name: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ...) -> None: ...

class WaitSignalResponse(_message.Message):
    __slots__ = ("received", "payload", "timed_out")
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    TIMED_OUT_FIELD_NUMBER: _ClassVar[int]
    received: bool
    payload: _common_pb2.Payload
    timed_out: bool
    def __init__(self, received: bool = ..., payload: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., timed_out: bool = ...) -> None: ...

class StartChildRequest(_message.Message):
    __slots__ = ("namespace_id", "run_id", "lease", "step_id", "start", "on_close", "attach")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    ON_CLOSE_FIELD_NUMBER: _ClassVar[int]
    ATTACH_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    run_id: str
    lease: _common_pb2.Lease
    step_id: str
    start: _workflow_pb2.StartWorkflowRequest
    on_close: ParentClosePolicy
    attach: bool
    def __init__(self, namespace_id: _Optional[str] = ..., run_id: _Optional[str] = ..., lease: _Optional[_Union[_common_pb2.Lease, _Mapping]] = ..., step_id: _Optional[str] = ..., start: _Optional[_Union[_workflow_pb2.StartWorkflowRequest, _Mapping]] = ..., on_close: _Optional[_Union[ParentClosePolicy, str]] = ..., attach: bool = ...) -> None: ...

class StartChildResponse(_message.Message):
    __slots__ = ("child_run_id", "already_exists")
    CHILD_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ALREADY_EXISTS_FIELD_NUMBER: _ClassVar[int]
    child_run_id: str
    already_exists: bool
    def __init__(self, child_run_id: _Optional[str] = ..., already_exists: bool = ...) -> None: ...

class SessionRequest(_message.Message):
    __slots__ = ("hello", "runs", "heartbeat", "received", "update", "part", "is_last_part")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    UPDATE_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    IS_LAST_PART_FIELD_NUMBER: _ClassVar[int]
    hello: SessionHello
    runs: _containers.RepeatedCompositeFieldContainer[RunOperations]
    heartbeat: _containers.RepeatedCompositeFieldContainer[LeasedRun]
    received: _containers.RepeatedCompositeFieldContainer[LeasedRun]
    update: SessionUpdate
    part: bytes
    is_last_part: bool
    def __init__(self, hello: _Optional[_Union[SessionHello, _Mapping]] = ..., runs: _Optional[_Iterable[_Union[RunOperations, _Mapping]]] = ..., heartbeat: _Optional[_Iterable[_Union[LeasedRun, _Mapping]]] = ..., received: _Optional[_Iterable[_Union[LeasedRun, _Mapping]]] = ..., update: _Optional[_Union[SessionUpdate, _Mapping]] = ..., part: _Optional[bytes] = ..., is_last_part: bool = ...) -> None: ...

class SessionHello(_message.Message):
    __slots__ = ("register", "leased")
    REGISTER_FIELD_NUMBER: _ClassVar[int]
    LEASED_FIELD_NUMBER: _ClassVar[int]
    register: RegisterRequest
    leased: _containers.RepeatedCompositeFieldContainer[LeasedRun]
    def __init__(self, register: _Optional[_Union[RegisterRequest, _Mapping]] = ..., leased: _Optional[_Iterable[_Union[LeasedRun, _Mapping]]] = ...) -> None: ...

class WorkerDiagnostic(_message.Message):
    __slots__ = ("kind", "detail")
    KIND_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    kind: str
    detail: str
    def __init__(self, kind: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...

class StepLogLine(_message.Message):
    __slots__ = ("at_us", "attempt", "level", "text")
    AT_US_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    at_us: int
    attempt: int
    level: str
    text: _common_pb2.Payload
    def __init__(self, at_us: _Optional[int] = ..., attempt: _Optional[int] = ..., level: _Optional[str] = ..., text: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ...) -> None: ...

class StepLog(_message.Message):
    __slots__ = ("run_id", "step_id", "lines", "dropped")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    step_id: str
    lines: _containers.RepeatedCompositeFieldContainer[StepLogLine]
    dropped: int
    def __init__(self, run_id: _Optional[str] = ..., step_id: _Optional[str] = ..., lines: _Optional[_Iterable[_Union[StepLogLine, _Mapping]]] = ..., dropped: _Optional[int] = ...) -> None: ...

class SessionUpdate(_message.Message):
    __slots__ = ("drain", "completed_delta", "failed_delta", "goodbye", "diagnostics", "step_logs")
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_DELTA_FIELD_NUMBER: _ClassVar[int]
    FAILED_DELTA_FIELD_NUMBER: _ClassVar[int]
    GOODBYE_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    STEP_LOGS_FIELD_NUMBER: _ClassVar[int]
    drain: bool
    completed_delta: int
    failed_delta: int
    goodbye: bool
    diagnostics: _containers.RepeatedCompositeFieldContainer[WorkerDiagnostic]
    step_logs: _containers.RepeatedCompositeFieldContainer[StepLog]
    def __init__(self, drain: bool = ..., completed_delta: _Optional[int] = ..., failed_delta: _Optional[int] = ..., goodbye: bool = ..., diagnostics: _Optional[_Iterable[_Union[WorkerDiagnostic, _Mapping]]] = ..., step_logs: _Optional[_Iterable[_Union[StepLog, _Mapping]]] = ...) -> None: ...

class RunOperations(_message.Message):
    __slots__ = ("run_id", "lease", "operations")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    lease: _common_pb2.Lease
    operations: _containers.RepeatedCompositeFieldContainer[Operation]
    def __init__(self, run_id: _Optional[str] = ..., lease: _Optional[_Union[_common_pb2.Lease, _Mapping]] = ..., operations: _Optional[_Iterable[_Union[Operation, _Mapping]]] = ...) -> None: ...

class Operation(_message.Message):
    __slots__ = ("id", "begin_step", "complete_step", "fail_step", "sleep", "finish_sleep", "park", "complete_run", "fail_run", "cancel_run", "release", "wait_signal", "start_child", "race", "patch", "set_status", "step_heartbeat", "continue_as_new", "diverged", "fetch_results", "record_step", "set_state")
    ID_FIELD_NUMBER: _ClassVar[int]
    BEGIN_STEP_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_STEP_FIELD_NUMBER: _ClassVar[int]
    FAIL_STEP_FIELD_NUMBER: _ClassVar[int]
    SLEEP_FIELD_NUMBER: _ClassVar[int]
    FINISH_SLEEP_FIELD_NUMBER: _ClassVar[int]
    PARK_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_RUN_FIELD_NUMBER: _ClassVar[int]
    FAIL_RUN_FIELD_NUMBER: _ClassVar[int]
    CANCEL_RUN_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    WAIT_SIGNAL_FIELD_NUMBER: _ClassVar[int]
    START_CHILD_FIELD_NUMBER: _ClassVar[int]
    RACE_FIELD_NUMBER: _ClassVar[int]
    PATCH_FIELD_NUMBER: _ClassVar[int]
    SET_STATUS_FIELD_NUMBER: _ClassVar[int]
    STEP_HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    CONTINUE_AS_NEW_FIELD_NUMBER: _ClassVar[int]
    DIVERGED_FIELD_NUMBER: _ClassVar[int]
    FETCH_RESULTS_FIELD_NUMBER: _ClassVar[int]
    RECORD_STEP_FIELD_NUMBER: _ClassVar[int]
    SET_STATE_FIELD_NUMBER: _ClassVar[int]
    id: int
    begin_step: BeginStepOperation
    complete_step: CompleteStepOperation
    fail_step: FailStepOperation
    sleep: SleepOperation
    finish_sleep: FinishSleepOperation
    park: ParkOperation
    complete_run: CompleteRunOperation
    fail_run: FailRunOperation
    cancel_run: CancelRunOperation
    release: ReleaseOperation
    wait_signal: WaitSignalOperation
    start_child: StartChildOperation
    race: RaceOperation
    patch: PatchOperation
    set_status: SetStatusOperation
    step_heartbeat: StepHeartbeatOperation
    continue_as_new: ContinueAsNewOperation
    diverged: DivergedOperation
    fetch_results: FetchResultsOperation
    record_step: RecordStepOperation
    set_state: SetStateOperation
    def __init__(self, id: _Optional[int] = ..., begin_step: _Optional[_Union[BeginStepOperation, _Mapping]] = ..., complete_step: _Optional[_Union[CompleteStepOperation, _Mapping]] = ..., fail_step: _Optional[_Union[FailStepOperation, _Mapping]] = ..., sleep: _Optional[_Union[SleepOperation, _Mapping]] = ..., finish_sleep: _Optional[_Union[FinishSleepOperation, _Mapping]] = ..., park: _Optional[_Union[ParkOperation, _Mapping]] = ..., complete_run: _Optional[_Union[CompleteRunOperation, _Mapping]] = ..., fail_run: _Optional[_Union[FailRunOperation, _Mapping]] = ..., cancel_run: _Optional[_Union[CancelRunOperation, _Mapping]] = ..., release: _Optional[_Union[ReleaseOperation, _Mapping]] = ..., wait_signal: _Optional[_Union[WaitSignalOperation, _Mapping]] = ..., start_child: _Optional[_Union[StartChildOperation, _Mapping]] = ..., race: _Optional[_Union[RaceOperation, _Mapping]] = ..., patch: _Optional[_Union[PatchOperation, _Mapping]] = ..., set_status: _Optional[_Union[SetStatusOperation, _Mapping]] = ..., step_heartbeat: _Optional[_Union[StepHeartbeatOperation, _Mapping]] = ..., continue_as_new: _Optional[_Union[ContinueAsNewOperation, _Mapping]] = ..., diverged: _Optional[_Union[DivergedOperation, _Mapping]] = ..., fetch_results: _Optional[_Union[FetchResultsOperation, _Mapping]] = ..., record_step: _Optional[_Union[RecordStepOperation, _Mapping]] = ..., set_state: _Optional[_Union[SetStateOperation, _Mapping]] = ...) -> None: ...

class BeginStepOperation(_message.Message):
    __slots__ = ("step_id", "name", "attempt", "retry_policy", "timeout_ms", "parent_step_id", "parallel_group_id", "once", "input", "cleanup")
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    PARENT_STEP_ID_FIELD_NUMBER: _ClassVar[int]
    PARALLEL_GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    ONCE_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    CLEANUP_FIELD_NUMBER: _ClassVar[int]
    step_id: str
    name: str
    attempt: int
    retry_policy: _common_pb2.RetryPolicy
    timeout_ms: int
    parent_step_id: str
    parallel_group_id: str
    once: bool
    input: _common_pb2.Payload
    cleanup: bool
    def __init__(self, step_id: _Optional[str] = ..., name: _Optional[str] = ..., attempt: _Optional[int] = ..., retry_policy: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ..., timeout_ms: _Optional[int] = ..., parent_step_id: _Optional[str] = ..., parallel_group_id: _Optional[str] = ..., once: bool = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., cleanup: bool = ...) -> None: ...

class RecordStepOperation(_message.Message):
    __slots__ = ("step_id", "name", "attempt", "retry_policy", "timeout_ms", "parent_step_id", "parallel_group_id", "input", "cleanup", "output")
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    PARENT_STEP_ID_FIELD_NUMBER: _ClassVar[int]
    PARALLEL_GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    CLEANUP_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    step_id: str
    name: str
    attempt: int
    retry_policy: _common_pb2.RetryPolicy
    timeout_ms: int
    parent_step_id: str
    parallel_group_id: str
    input: _common_pb2.Payload
    cleanup: bool
    output: _common_pb2.Payload
    def __init__(self, step_id: _Optional[str] = ..., name: _Optional[str] = ..., attempt: _Optional[int] = ..., retry_policy: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ..., timeout_ms: _Optional[int] = ..., parent_step_id: _Optional[str] = ..., parallel_group_id: _Optional[str] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., cleanup: bool = ..., output: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ...) -> None: ...

class CompleteStepOperation(_message.Message):
    __slots__ = ("step_id", "attempt", "output")
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    step_id: str
    attempt: int
    output: _common_pb2.Payload
    def __init__(self, step_id: _Optional[str] = ..., attempt: _Optional[int] = ..., output: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ...) -> None: ...

class FailStepOperation(_message.Message):
    __slots__ = ("step_id", "attempt", "error", "input")
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    step_id: str
    attempt: int
    error: _common_pb2.ErrorDetail
    input: _common_pb2.Payload
    def __init__(self, step_id: _Optional[str] = ..., attempt: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ...) -> None: ...

class SleepOperation(_message.Message):
    __slots__ = ("step_id", "name", "duration_us", "until_us", "parent_step_id", "parallel_group_id", "cleanup")
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DURATION_US_FIELD_NUMBER: _ClassVar[int]
    UNTIL_US_FIELD_NUMBER: _ClassVar[int]
    PARENT_STEP_ID_FIELD_NUMBER: _ClassVar[int]
    PARALLEL_GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    CLEANUP_FIELD_NUMBER: _ClassVar[int]
    step_id: str
    name: str
    duration_us: int
    until_us: int
    parent_step_id: str
    parallel_group_id: str
    cleanup: bool
    def __init__(self, step_id: _Optional[str] = ..., name: _Optional[str] = ..., duration_us: _Optional[int] = ..., until_us: _Optional[int] = ..., parent_step_id: _Optional[str] = ..., parallel_group_id: _Optional[str] = ..., cleanup: bool = ...) -> None: ...

class FinishSleepOperation(_message.Message):
    __slots__ = ("step_id",)
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    step_id: str
    def __init__(self, step_id: _Optional[str] = ...) -> None: ...

class ParkOperation(_message.Message):
    __slots__ = ("waits", "known_seq")
    WAITS_FIELD_NUMBER: _ClassVar[int]
    KNOWN_SEQ_FIELD_NUMBER: _ClassVar[int]
    waits: _containers.RepeatedScalarFieldContainer[str]
    known_seq: int
    def __init__(self, waits: _Optional[_Iterable[str]] = ..., known_seq: _Optional[int] = ...) -> None: ...

class FetchResultsOperation(_message.Message):
    __slots__ = ("waits", "known_seq")
    WAITS_FIELD_NUMBER: _ClassVar[int]
    KNOWN_SEQ_FIELD_NUMBER: _ClassVar[int]
    waits: _containers.RepeatedScalarFieldContainer[str]
    known_seq: int
    def __init__(self, waits: _Optional[_Iterable[str]] = ..., known_seq: _Optional[int] = ...) -> None: ...

class CompleteRunOperation(_message.Message):
    __slots__ = ("output", "after_step_id", "open_waits")
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    AFTER_STEP_ID_FIELD_NUMBER: _ClassVar[int]
    OPEN_WAITS_FIELD_NUMBER: _ClassVar[int]
    output: _common_pb2.Payload
    after_step_id: str
    open_waits: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, output: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., after_step_id: _Optional[str] = ..., open_waits: _Optional[_Iterable[str]] = ...) -> None: ...

class FailRunOperation(_message.Message):
    __slots__ = ("error", "after_step_id", "open_waits")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    AFTER_STEP_ID_FIELD_NUMBER: _ClassVar[int]
    OPEN_WAITS_FIELD_NUMBER: _ClassVar[int]
    error: _common_pb2.ErrorDetail
    after_step_id: str
    open_waits: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., after_step_id: _Optional[str] = ..., open_waits: _Optional[_Iterable[str]] = ...) -> None: ...

class CancelRunOperation(_message.Message):
    __slots__ = ("error", "open_waits")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    OPEN_WAITS_FIELD_NUMBER: _ClassVar[int]
    error: _common_pb2.ErrorDetail
    open_waits: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., open_waits: _Optional[_Iterable[str]] = ...) -> None: ...

class ReleaseOperation(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class WaitSignalOperation(_message.Message):
    __slots__ = ("step_id", "signal_name", "timeout_us", "parent_step_id", "parallel_group_id", "cleanup", "input")
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_NAME_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_US_FIELD_NUMBER: _ClassVar[int]
    PARENT_STEP_ID_FIELD_NUMBER: _ClassVar[int]
    PARALLEL_GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    CLEANUP_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    step_id: str
    signal_name: str
    timeout_us: int
    parent_step_id: str
    parallel_group_id: str
    cleanup: bool
    input: _common_pb2.Payload
    def __init__(self, step_id: _Optional[str] = ..., signal_name: _Optional[str] = ..., timeout_us: _Optional[int] = ..., parent_step_id: _Optional[str] = ..., parallel_group_id: _Optional[str] = ..., cleanup: bool = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ...) -> None: ...

class StartChildOperation(_message.Message):
    __slots__ = ("step_id", "start", "on_close", "attach", "parent_step_id", "parallel_group_id", "name", "cleanup")
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    ON_CLOSE_FIELD_NUMBER: _ClassVar[int]
    ATTACH_FIELD_NUMBER: _ClassVar[int]
    PARENT_STEP_ID_FIELD_NUMBER: _ClassVar[int]
    PARALLEL_GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CLEANUP_FIELD_NUMBER: _ClassVar[int]
    step_id: str
    start: _workflow_pb2.StartWorkflowRequest
    on_close: ParentClosePolicy
    attach: bool
    parent_step_id: str
    parallel_group_id: str
    name: str
    cleanup: bool
    def __init__(self, step_id: _Optional[str] = ..., start: _Optional[_Union[_workflow_pb2.StartWorkflowRequest, _Mapping]] = ..., on_close: _Optional[_Union[ParentClosePolicy, str]] = ..., attach: bool = ..., parent_step_id: _Optional[str] = ..., parallel_group_id: _Optional[str] = ..., name: _Optional[str] = ..., cleanup: bool = ...) -> None: ...

class RaceOperation(_message.Message):
    __slots__ = ("step_id", "winner", "losers", "name", "parent_step_id")
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    WINNER_FIELD_NUMBER: _ClassVar[int]
    LOSERS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARENT_STEP_ID_FIELD_NUMBER: _ClassVar[int]
    step_id: str
    winner: str
    losers: _containers.RepeatedScalarFieldContainer[str]
    name: str
    parent_step_id: str
    def __init__(self, step_id: _Optional[str] = ..., winner: _Optional[str] = ..., losers: _Optional[_Iterable[str]] = ..., name: _Optional[str] = ..., parent_step_id: _Optional[str] = ...) -> None: ...

class PatchOperation(_message.Message):
    __slots__ = ("step_id", "name")
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    step_id: str
    name: str
    def __init__(self, step_id: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class SetStatusOperation(_message.Message):
    __slots__ = ("text", "progress")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    text: str
    progress: float
    def __init__(self, text: _Optional[str] = ..., progress: _Optional[float] = ...) -> None: ...

class SetStateOperation(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: _common_pb2.Payload
    def __init__(self, state: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ...) -> None: ...

class StepHeartbeatOperation(_message.Message):
    __slots__ = ("step_id", "attempt", "details")
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    step_id: str
    attempt: int
    details: _common_pb2.Payload
    def __init__(self, step_id: _Optional[str] = ..., attempt: _Optional[int] = ..., details: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ...) -> None: ...

class ContinueAsNewOperation(_message.Message):
    __slots__ = ("input", "version", "context", "open_waits")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    OPEN_WAITS_FIELD_NUMBER: _ClassVar[int]
    input: _common_pb2.Payload
    version: str
    context: _common_pb2.Payload
    open_waits: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., version: _Optional[str] = ..., context: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., open_waits: _Optional[_Iterable[str]] = ...) -> None: ...

class DivergedOperation(_message.Message):
    __slots__ = ("problem", "build_id")
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    BUILD_ID_FIELD_NUMBER: _ClassVar[int]
    problem: _common_pb2.ErrorDetail
    build_id: str
    def __init__(self, problem: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., build_id: _Optional[str] = ...) -> None: ...

class SessionResponse(_message.Message):
    __slots__ = ("welcome", "tasks", "acknowledged", "answers", "notices", "notice")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    NOTICES_FIELD_NUMBER: _ClassVar[int]
    NOTICE_FIELD_NUMBER: _ClassVar[int]
    welcome: SessionWelcome
    tasks: _containers.RepeatedCompositeFieldContainer[Task]
    acknowledged: _containers.RepeatedCompositeFieldContainer[Acknowledged]
    answers: _containers.RepeatedCompositeFieldContainer[OperationAnswer]
    notices: _containers.RepeatedCompositeFieldContainer[RunNotice]
    notice: SessionNotice
    def __init__(self, welcome: _Optional[_Union[SessionWelcome, _Mapping]] = ..., tasks: _Optional[_Iterable[_Union[Task, _Mapping]]] = ..., acknowledged: _Optional[_Iterable[_Union[Acknowledged, _Mapping]]] = ..., answers: _Optional[_Iterable[_Union[OperationAnswer, _Mapping]]] = ..., notices: _Optional[_Iterable[_Union[RunNotice, _Mapping]]] = ..., notice: _Optional[_Union[SessionNotice, _Mapping]] = ...) -> None: ...

class SessionWelcome(_message.Message):
    __slots__ = ("worker_id", "lease_ms", "heartbeat_ms", "server_version", "now_us", "lost", "features")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_MS_FIELD_NUMBER: _ClassVar[int]
    SERVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    NOW_US_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    lease_ms: int
    heartbeat_ms: int
    server_version: str
    now_us: int
    lost: _containers.RepeatedCompositeFieldContainer[LeasedRun]
    features: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, worker_id: _Optional[str] = ..., lease_ms: _Optional[int] = ..., heartbeat_ms: _Optional[int] = ..., server_version: _Optional[str] = ..., now_us: _Optional[int] = ..., lost: _Optional[_Iterable[_Union[LeasedRun, _Mapping]]] = ..., features: _Optional[_Iterable[str]] = ...) -> None: ...

class Acknowledged(_message.Message):
    __slots__ = ("at_us", "ids", "seqs")
    AT_US_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    SEQS_FIELD_NUMBER: _ClassVar[int]
    at_us: int
    ids: _containers.RepeatedScalarFieldContainer[int]
    seqs: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, at_us: _Optional[int] = ..., ids: _Optional[_Iterable[int]] = ..., seqs: _Optional[_Iterable[int]] = ...) -> None: ...

class OperationAnswer(_message.Message):
    __slots__ = ("id", "seq", "at_us", "refused", "retry", "exhausted", "timer", "parked", "not_parked", "closed", "child", "signal", "fetched")
    ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    AT_US_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    EXHAUSTED_FIELD_NUMBER: _ClassVar[int]
    TIMER_FIELD_NUMBER: _ClassVar[int]
    PARKED_FIELD_NUMBER: _ClassVar[int]
    NOT_PARKED_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    CHILD_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    FETCHED_FIELD_NUMBER: _ClassVar[int]
    id: int
    seq: int
    at_us: int
    refused: _common_pb2.ErrorDetail
    retry: RetryScheduled
    exhausted: StepExhausted
    timer: TimerSet
    parked: Parked
    not_parked: NotParked
    closed: RunClosed
    child: ChildStarted
    signal: SignalBound
    fetched: Fetched
    def __init__(self, id: _Optional[int] = ..., seq: _Optional[int] = ..., at_us: _Optional[int] = ..., refused: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., retry: _Optional[_Union[RetryScheduled, _Mapping]] = ..., exhausted: _Optional[_Union[StepExhausted, _Mapping]] = ..., timer: _Optional[_Union[TimerSet, _Mapping]] = ..., parked: _Optional[_Union[Parked, _Mapping]] = ..., not_parked: _Optional[_Union[NotParked, _Mapping]] = ..., closed: _Optional[_Union[RunClosed, _Mapping]] = ..., child: _Optional[_Union[ChildStarted, _Mapping]] = ..., signal: _Optional[_Union[SignalBound, _Mapping]] = ..., fetched: _Optional[_Union[Fetched, _Mapping]] = ...) -> None: ...

class RetryScheduled(_message.Message):
    __slots__ = ("next_attempt", "retry_at_us", "remaining_us")
    NEXT_ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    RETRY_AT_US_FIELD_NUMBER: _ClassVar[int]
    REMAINING_US_FIELD_NUMBER: _ClassVar[int]
    next_attempt: int
    retry_at_us: int
    remaining_us: int
    def __init__(self, next_attempt: _Optional[int] = ..., retry_at_us: _Optional[int] = ..., remaining_us: _Optional[int] = ...) -> None: ...

class StepExhausted(_message.Message):
    __slots__ = ("error", "attempts")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    error: _common_pb2.ErrorDetail
    attempts: int
    def __init__(self, error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., attempts: _Optional[int] = ...) -> None: ...

class TimerSet(_message.Message):
    __slots__ = ("wake_at_us", "remaining_us")
    WAKE_AT_US_FIELD_NUMBER: _ClassVar[int]
    REMAINING_US_FIELD_NUMBER: _ClassVar[int]
    wake_at_us: int
    remaining_us: int
    def __init__(self, wake_at_us: _Optional[int] = ..., remaining_us: _Optional[int] = ...) -> None: ...

class Parked(_message.Message):
    __slots__ = ("wake_at_us",)
    WAKE_AT_US_FIELD_NUMBER: _ClassVar[int]
    wake_at_us: int
    def __init__(self, wake_at_us: _Optional[int] = ...) -> None: ...

class DueRetry(_message.Message):
    __slots__ = ("step_id", "attempt")
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    step_id: str
    attempt: int
    def __init__(self, step_id: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...

class NotParked(_message.Message):
    __slots__ = ("results", "more", "retries")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    RETRIES_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[HistoryStep]
    more: bool
    retries: _containers.RepeatedCompositeFieldContainer[DueRetry]
    def __init__(self, results: _Optional[_Iterable[_Union[HistoryStep, _Mapping]]] = ..., more: bool = ..., retries: _Optional[_Iterable[_Union[DueRetry, _Mapping]]] = ...) -> None: ...

class Fetched(_message.Message):
    __slots__ = ("results", "more", "retries")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    RETRIES_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[HistoryStep]
    more: bool
    retries: _containers.RepeatedCompositeFieldContainer[DueRetry]
    def __init__(self, results: _Optional[_Iterable[_Union[HistoryStep, _Mapping]]] = ..., more: bool = ..., retries: _Optional[_Iterable[_Union[DueRetry, _Mapping]]] = ...) -> None: ...

class RunClosed(_message.Message):
    __slots__ = ("status", "retry_at_us", "continued_as")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    RETRY_AT_US_FIELD_NUMBER: _ClassVar[int]
    CONTINUED_AS_FIELD_NUMBER: _ClassVar[int]
    status: _workflow_pb2.WorkflowStatus
    retry_at_us: int
    continued_as: str
    def __init__(self, status: _Optional[_Union[_workflow_pb2.WorkflowStatus, str]] = ..., retry_at_us: _Optional[int] = ..., continued_as: _Optional[str] = ...) -> None: ...

class ChildStarted(_message.Message):
    __slots__ = ("child_run_id", "already_exists")
    CHILD_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ALREADY_EXISTS_FIELD_NUMBER: _ClassVar[int]
    child_run_id: str
    already_exists: bool
    def __init__(self, child_run_id: _Optional[str] = ..., already_exists: bool = ...) -> None: ...

class SignalBound(_message.Message):
    __slots__ = ("payload",)
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    payload: _common_pb2.Payload
    def __init__(self, payload: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ...) -> None: ...

class RunNotice(_message.Message):
    __slots__ = ("run_id", "lease", "kind", "reason", "results")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    lease: _common_pb2.Lease
    kind: RunNoticeKind
    reason: str
    results: _containers.RepeatedCompositeFieldContainer[HistoryStep]
    def __init__(self, run_id: _Optional[str] = ..., lease: _Optional[_Union[_common_pb2.Lease, _Mapping]] = ..., kind: _Optional[_Union[RunNoticeKind, str]] = ..., reason: _Optional[str] = ..., results: _Optional[_Iterable[_Union[HistoryStep, _Mapping]]] = ...) -> None: ...

class SessionNotice(_message.Message):
    __slots__ = ("should_drain", "server_stopping")
    SHOULD_DRAIN_FIELD_NUMBER: _ClassVar[int]
    SERVER_STOPPING_FIELD_NUMBER: _ClassVar[int]
    should_drain: bool
    server_stopping: bool
    def __init__(self, should_drain: bool = ..., server_stopping: bool = ...) -> None: ...
