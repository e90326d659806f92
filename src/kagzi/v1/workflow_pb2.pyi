import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from kagzi.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WorkflowStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WORKFLOW_STATUS_UNSPECIFIED: _ClassVar[WorkflowStatus]
    WORKFLOW_STATUS_PENDING: _ClassVar[WorkflowStatus]
    WORKFLOW_STATUS_RUNNING: _ClassVar[WorkflowStatus]
    WORKFLOW_STATUS_SLEEPING: _ClassVar[WorkflowStatus]
    WORKFLOW_STATUS_COMPLETED: _ClassVar[WorkflowStatus]
    WORKFLOW_STATUS_FAILED: _ClassVar[WorkflowStatus]
    WORKFLOW_STATUS_CANCELLED: _ClassVar[WorkflowStatus]
    WORKFLOW_STATUS_PAUSED: _ClassVar[WorkflowStatus]

class WaitReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WAIT_REASON_UNSPECIFIED: _ClassVar[WaitReason]
    WAIT_REASON_TIME: _ClassVar[WaitReason]
    WAIT_REASON_SIGNAL: _ClassVar[WaitReason]
    WAIT_REASON_CHILD: _ClassVar[WaitReason]
    WAIT_REASON_RETRY: _ClassVar[WaitReason]

class OnConflict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ON_CONFLICT_UNSPECIFIED: _ClassVar[OnConflict]
    ON_CONFLICT_EXISTING: _ClassVar[OnConflict]
    ON_CONFLICT_EXISTING_OR_COMPLETED: _ClassVar[OnConflict]
    ON_CONFLICT_FAIL: _ClassVar[OnConflict]
    ON_CONFLICT_REPLACE: _ClassVar[OnConflict]

class RunOrder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_ORDER_UNSPECIFIED: _ClassVar[RunOrder]
    RUN_ORDER_CREATED: _ClassVar[RunOrder]
    RUN_ORDER_ENDED: _ClassVar[RunOrder]

class BulkAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BULK_ACTION_UNSPECIFIED: _ClassVar[BulkAction]
    BULK_ACTION_CANCEL: _ClassVar[BulkAction]
    BULK_ACTION_RETRY: _ClassVar[BulkAction]
    BULK_ACTION_DELETE: _ClassVar[BulkAction]
    BULK_ACTION_TERMINATE: _ClassVar[BulkAction]
    BULK_ACTION_RESUME: _ClassVar[BulkAction]
WORKFLOW_STATUS_UNSPECIFIED: WorkflowStatus
WORKFLOW_STATUS_PENDING: WorkflowStatus
WORKFLOW_STATUS_RUNNING: WorkflowStatus
WORKFLOW_STATUS_SLEEPING: WorkflowStatus
WORKFLOW_STATUS_COMPLETED: WorkflowStatus
WORKFLOW_STATUS_FAILED: WorkflowStatus
WORKFLOW_STATUS_CANCELLED: WorkflowStatus
WORKFLOW_STATUS_PAUSED: WorkflowStatus
WAIT_REASON_UNSPECIFIED: WaitReason
WAIT_REASON_TIME: WaitReason
WAIT_REASON_SIGNAL: WaitReason
WAIT_REASON_CHILD: WaitReason
WAIT_REASON_RETRY: WaitReason
ON_CONFLICT_UNSPECIFIED: OnConflict
ON_CONFLICT_EXISTING: OnConflict
ON_CONFLICT_EXISTING_OR_COMPLETED: OnConflict
ON_CONFLICT_FAIL: OnConflict
ON_CONFLICT_REPLACE: OnConflict
RUN_ORDER_UNSPECIFIED: RunOrder
RUN_ORDER_CREATED: RunOrder
RUN_ORDER_ENDED: RunOrder
BULK_ACTION_UNSPECIFIED: BulkAction
BULK_ACTION_CANCEL: BulkAction
BULK_ACTION_RETRY: BulkAction
BULK_ACTION_DELETE: BulkAction
BULK_ACTION_TERMINATE: BulkAction
BULK_ACTION_RESUME: BulkAction

class Workflow(_message.Message):
    __slots__ = ("run_id", "workflow_id", "namespace_id", "task_queue", "workflow_type", "status", "input", "output", "context", "error", "attempts", "created_at", "started_at", "finished_at", "wake_up_at", "deadline_at", "worker_id", "version", "parent_step_id", "parent_run_id", "wait_reason", "labels", "priority", "cancel_requested", "cancel_reason", "problem", "status_text", "progress", "forked_from", "continued_as", "schedule_id", "last_seq", "url", "retry_policy", "pause_requested", "waits", "concurrency_key", "pause_reason", "blocked_by", "scheduled_at", "awaits_signal", "retrying_steps", "claims", "own_traces_from", "pinned_build", "state", "state_at", "unread_signals", "handed_on_to", "ready_at", "queued_at", "queued")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_FIELD_NUMBER: _ClassVar[int]
    WAKE_UP_AT_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_AT_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PARENT_STEP_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_REASON_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    CANCEL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    CANCEL_REASON_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    STATUS_TEXT_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    FORKED_FROM_FIELD_NUMBER: _ClassVar[int]
    CONTINUED_AS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQ_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    PAUSE_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    PAUSE_REASON_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_BY_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_AT_FIELD_NUMBER: _ClassVar[int]
    AWAITS_SIGNAL_FIELD_NUMBER: _ClassVar[int]
    RETRYING_STEPS_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    OWN_TRACES_FROM_FIELD_NUMBER: _ClassVar[int]
    PINNED_BUILD_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_AT_FIELD_NUMBER: _ClassVar[int]
    UNREAD_SIGNALS_FIELD_NUMBER: _ClassVar[int]
    HANDED_ON_TO_FIELD_NUMBER: _ClassVar[int]
    READY_AT_FIELD_NUMBER: _ClassVar[int]
    QUEUED_AT_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    workflow_id: str
    namespace_id: str
    task_queue: str
    workflow_type: str
    status: WorkflowStatus
    input: _common_pb2.Payload
    output: _common_pb2.Payload
    context: _common_pb2.Payload
    error: _common_pb2.ErrorDetail
    attempts: int
    created_at: _timestamp_pb2.Timestamp
    started_at: _timestamp_pb2.Timestamp
    finished_at: _timestamp_pb2.Timestamp
    wake_up_at: _timestamp_pb2.Timestamp
    deadline_at: _timestamp_pb2.Timestamp
    worker_id: str
    version: str
    parent_step_id: str
    parent_run_id: str
    wait_reason: WaitReason
    labels: _containers.ScalarMap[str, str]
    priority: int
    cancel_requested: bool
    cancel_reason: str
    problem: _common_pb2.ErrorDetail
    status_text: str
    progress: float
    forked_from: str
    continued_as: str
    schedule_id: str
    last_seq: int
    url: str
    retry_policy: _common_pb2.RetryPolicy
    pause_requested: bool
    waits: _containers.RepeatedScalarFieldContainer[str]
    concurrency_key: str
    pause_reason: str
    blocked_by: str
    scheduled_at: _timestamp_pb2.Timestamp
    awaits_signal: int
    retrying_steps: int
    claims: int
    own_traces_from: int
    pinned_build: str
    state: _common_pb2.Payload
    state_at: _timestamp_pb2.Timestamp
    unread_signals: int
    handed_on_to: str
    ready_at: _timestamp_pb2.Timestamp
    queued_at: _timestamp_pb2.Timestamp
    queued: _duration_pb2.Duration
    def __init__(self, run_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., namespace_id: _Optional[str] = ..., task_queue: _Optional[str] = ..., workflow_type: _Optional[str] = ..., status: _Optional[_Union[WorkflowStatus, str]] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., output: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., context: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., attempts: _Optional[int] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., finished_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., wake_up_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., deadline_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., worker_id: _Optional[str] = ..., version: _Optional[str] = ..., parent_step_id: _Optional[str] = ..., parent_run_id: _Optional[str] = ..., wait_reason: _Optional[_Union[WaitReason, str]] = ..., labels: _Optional[_Mapping[str, str]] = ..., priority: _Optional[int] = ..., cancel_requested: bool = ..., cancel_reason: _Optional[str] = ..., problem: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., status_text: _Optional[str] = ..., progress: _Optional[float] = ..., forked_from: _Optional[str] = ..., continued_as: _Optional[str] = ..., schedule_id: _Optional[str] = ..., last_seq: _Optional[int] = ..., url: _Optional[str] = ..., retry_policy: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ..., pause_requested: bool = ..., waits: _Optional[_Iterable[str]] = ..., concurrency_key: _Optional[str] = ..., pause_reason: _Optional[str] = ..., blocked_by: _Optional[str] = ..., scheduled_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., awaits_signal: _Optional[int] = ..., retrying_steps: _Optional[int] = ..., claims: _Optional[int] = ..., own_traces_from: _Optional[int] = ..., pinned_build: _Optional[str] = ..., state: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., state_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., unread_signals: _Optional[int] = ..., handed_on_to: _Optional[str] = ..., ready_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., queued_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., queued: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class StartWorkflowRequest(_message.Message):
    __slots__ = ("workflow_id", "namespace_id", "task_queue", "workflow_type", "input", "context", "deadline_at", "version", "retry_policy", "request_id", "on_conflict", "labels", "priority", "start_at", "delay", "concurrency_key", "timeout")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_AT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ON_CONFLICT_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    START_AT_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    workflow_id: str
    namespace_id: str
    task_queue: str
    workflow_type: str
    input: _common_pb2.Payload
    context: _common_pb2.Payload
    deadline_at: _timestamp_pb2.Timestamp
    version: str
    retry_policy: _common_pb2.RetryPolicy
    request_id: str
    on_conflict: OnConflict
    labels: _containers.ScalarMap[str, str]
    priority: int
    start_at: _timestamp_pb2.Timestamp
    delay: _duration_pb2.Duration
    concurrency_key: str
    timeout: _duration_pb2.Duration
    def __init__(self, workflow_id: _Optional[str] = ..., namespace_id: _Optional[str] = ..., task_queue: _Optional[str] = ..., workflow_type: _Optional[str] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., context: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., deadline_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., version: _Optional[str] = ..., retry_policy: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ..., request_id: _Optional[str] = ..., on_conflict: _Optional[_Union[OnConflict, str]] = ..., labels: _Optional[_Mapping[str, str]] = ..., priority: _Optional[int] = ..., start_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., concurrency_key: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class StartWorkflowResponse(_message.Message):
    __slots__ = ("run_id", "already_exists", "workflow_id", "status", "url", "warning")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ALREADY_EXISTS_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    WARNING_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    already_exists: bool
    workflow_id: str
    status: WorkflowStatus
    url: str
    warning: str
    def __init__(self, run_id: _Optional[str] = ..., already_exists: bool = ..., workflow_id: _Optional[str] = ..., status: _Optional[_Union[WorkflowStatus, str]] = ..., url: _Optional[str] = ..., warning: _Optional[str] = ...) -> None: ...

class StartBatchRequest(_message.Message):
    __slots__ = ("namespace_id", "starts", "wait_stream_id", "waited")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    STARTS_FIELD_NUMBER: _ClassVar[int]
    WAIT_STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    WAITED_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    starts: _containers.RepeatedCompositeFieldContainer[StartWorkflowRequest]
    wait_stream_id: str
    waited: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, namespace_id: _Optional[str] = ..., starts: _Optional[_Iterable[_Union[StartWorkflowRequest, _Mapping]]] = ..., wait_stream_id: _Optional[str] = ..., waited: _Optional[_Iterable[int]] = ...) -> None: ...

class StartBatchResponse(_message.Message):
    __slots__ = ("items", "subscribed")
    class Item(_message.Message):
        __slots__ = ("started", "error")
        STARTED_FIELD_NUMBER: _ClassVar[int]
        ERROR_FIELD_NUMBER: _ClassVar[int]
        started: StartWorkflowResponse
        error: _common_pb2.ErrorDetail
        def __init__(self, started: _Optional[_Union[StartWorkflowResponse, _Mapping]] = ..., error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ...) -> None: ...
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBED_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[StartBatchResponse.Item]
    subscribed: bool
    def __init__(self, items: _Optional[_Iterable[_Union[StartBatchResponse.Item, _Mapping]]] = ..., subscribed: bool = ...) -> None: ...

class GetWorkflowRequest(_message.Message):
    __slots__ = ("run_id", "namespace_id", "workflow_id")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    namespace_id: str
    workflow_id: str
    def __init__(self, run_id: _Optional[str] = ..., namespace_id: _Optional[str] = ..., workflow_id: _Optional[str] = ...) -> None: ...

class GetWorkflowResponse(_message.Message):
    __slots__ = ("workflow",)
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    workflow: Workflow
    def __init__(self, workflow: _Optional[_Union[Workflow, _Mapping]] = ...) -> None: ...

class WorkflowFilter(_message.Message):
    __slots__ = ("statuses", "workflow_types", "labels", "created_after", "created_before", "workflow_id", "version", "parent_run_id", "schedule_id", "has_problem", "concurrency_key", "failing", "waiting", "ended_after", "ended_before", "id_prefix", "run_ids", "worker_id")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPES_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AFTER_FIELD_NUMBER: _ClassVar[int]
    CREATED_BEFORE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PARENT_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    HAS_PROBLEM_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    FAILING_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    ENDED_AFTER_FIELD_NUMBER: _ClassVar[int]
    ENDED_BEFORE_FIELD_NUMBER: _ClassVar[int]
    ID_PREFIX_FIELD_NUMBER: _ClassVar[int]
    RUN_IDS_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    statuses: _containers.RepeatedScalarFieldContainer[WorkflowStatus]
    workflow_types: _containers.RepeatedScalarFieldContainer[str]
    labels: _containers.ScalarMap[str, str]
    created_after: _timestamp_pb2.Timestamp
    created_before: _timestamp_pb2.Timestamp
    workflow_id: str
    version: str
    parent_run_id: str
    schedule_id: str
    has_problem: bool
    concurrency_key: str
    failing: bool
    waiting: bool
    ended_after: _timestamp_pb2.Timestamp
    ended_before: _timestamp_pb2.Timestamp
    id_prefix: str
    run_ids: _containers.RepeatedScalarFieldContainer[str]
    worker_id: str
    def __init__(self, statuses: _Optional[_Iterable[_Union[WorkflowStatus, str]]] = ..., workflow_types: _Optional[_Iterable[str]] = ..., labels: _Optional[_Mapping[str, str]] = ..., created_after: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., created_before: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., workflow_id: _Optional[str] = ..., version: _Optional[str] = ..., parent_run_id: _Optional[str] = ..., schedule_id: _Optional[str] = ..., has_problem: bool = ..., concurrency_key: _Optional[str] = ..., failing: bool = ..., waiting: bool = ..., ended_after: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended_before: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., id_prefix: _Optional[str] = ..., run_ids: _Optional[_Iterable[str]] = ..., worker_id: _Optional[str] = ...) -> None: ...

class ListWorkflowsRequest(_message.Message):
    __slots__ = ("namespace_id", "status_filter", "page", "filter", "order")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    status_filter: WorkflowStatus
    page: _common_pb2.PageRequest
    filter: WorkflowFilter
    order: RunOrder
    def __init__(self, namespace_id: _Optional[str] = ..., status_filter: _Optional[_Union[WorkflowStatus, str]] = ..., page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ..., filter: _Optional[_Union[WorkflowFilter, _Mapping]] = ..., order: _Optional[_Union[RunOrder, str]] = ...) -> None: ...

class ListWorkflowsResponse(_message.Message):
    __slots__ = ("workflows", "page")
    WORKFLOWS_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    workflows: _containers.RepeatedCompositeFieldContainer[Workflow]
    page: _common_pb2.PageInfo
    def __init__(self, workflows: _Optional[_Iterable[_Union[Workflow, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class CancelWorkflowRequest(_message.Message):
    __slots__ = ("run_id", "namespace_id", "reason", "workflow_id", "request_id")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    namespace_id: str
    reason: str
    workflow_id: str
    request_id: str
    def __init__(self, run_id: _Optional[str] = ..., namespace_id: _Optional[str] = ..., reason: _Optional[str] = ..., workflow_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class CancelWorkflowResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: WorkflowStatus
    def __init__(self, status: _Optional[_Union[WorkflowStatus, str]] = ...) -> None: ...

class WaitRequest(_message.Message):
    __slots__ = ("namespace_id", "run_id", "workflow_id", "timeout")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    run_id: str
    workflow_id: str
    timeout: _duration_pb2.Duration
    def __init__(self, namespace_id: _Optional[str] = ..., run_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WaitResponse(_message.Message):
    __slots__ = ("ended", "outcome", "status")
    ENDED_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ended: bool
    outcome: RunOutcome
    status: WorkflowStatus
    def __init__(self, ended: bool = ..., outcome: _Optional[_Union[RunOutcome, _Mapping]] = ..., status: _Optional[_Union[WorkflowStatus, str]] = ...) -> None: ...

class RunOutcome(_message.Message):
    __slots__ = ("run_id", "status", "output", "error", "continued_as")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    CONTINUED_AS_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    status: WorkflowStatus
    output: _common_pb2.Payload
    error: _common_pb2.ErrorDetail
    continued_as: str
    def __init__(self, run_id: _Optional[str] = ..., status: _Optional[_Union[WorkflowStatus, str]] = ..., output: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., continued_as: _Optional[str] = ...) -> None: ...

class WaitStreamRequest(_message.Message):
    __slots__ = ("namespace_id", "run_ids", "forget", "stream_id")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_IDS_FIELD_NUMBER: _ClassVar[int]
    FORGET_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    run_ids: _containers.RepeatedScalarFieldContainer[str]
    forget: _containers.RepeatedScalarFieldContainer[str]
    stream_id: str
    def __init__(self, namespace_id: _Optional[str] = ..., run_ids: _Optional[_Iterable[str]] = ..., forget: _Optional[_Iterable[str]] = ..., stream_id: _Optional[str] = ...) -> None: ...

class WaitStreamResponse(_message.Message):
    __slots__ = ("outcomes", "not_found")
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    NOT_FOUND_FIELD_NUMBER: _ClassVar[int]
    outcomes: _containers.RepeatedCompositeFieldContainer[RunOutcome]
    not_found: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, outcomes: _Optional[_Iterable[_Union[RunOutcome, _Mapping]]] = ..., not_found: _Optional[_Iterable[str]] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("namespace_id", "run_id", "after_seq")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQ_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    run_id: str
    after_seq: int
    def __init__(self, namespace_id: _Optional[str] = ..., run_id: _Optional[str] = ..., after_seq: _Optional[int] = ...) -> None: ...

class RunEvent(_message.Message):
    __slots__ = ("seq", "at", "kind", "step_id", "data", "error", "name", "attempt", "until", "child_run_id", "continued_as")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    CHILD_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    CONTINUED_AS_FIELD_NUMBER: _ClassVar[int]
    seq: int
    at: _timestamp_pb2.Timestamp
    kind: str
    step_id: str
    data: _common_pb2.Payload
    error: _common_pb2.ErrorDetail
    name: str
    attempt: int
    until: _timestamp_pb2.Timestamp
    child_run_id: str
    continued_as: str
    def __init__(self, seq: _Optional[int] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., kind: _Optional[str] = ..., step_id: _Optional[str] = ..., data: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., name: _Optional[str] = ..., attempt: _Optional[int] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., child_run_id: _Optional[str] = ..., continued_as: _Optional[str] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("events", "status", "status_text", "progress", "pause_reason", "pause_requested", "cancel_requested", "state_at")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    STATUS_TEXT_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    PAUSE_REASON_FIELD_NUMBER: _ClassVar[int]
    PAUSE_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    CANCEL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    STATE_AT_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[RunEvent]
    status: WorkflowStatus
    status_text: str
    progress: float
    pause_reason: str
    pause_requested: bool
    cancel_requested: bool
    state_at: _timestamp_pb2.Timestamp
    def __init__(self, events: _Optional[_Iterable[_Union[RunEvent, _Mapping]]] = ..., status: _Optional[_Union[WorkflowStatus, str]] = ..., status_text: _Optional[str] = ..., progress: _Optional[float] = ..., pause_reason: _Optional[str] = ..., pause_requested: bool = ..., cancel_requested: bool = ..., state_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class TerminateWorkflowRequest(_message.Message):
    __slots__ = ("namespace_id", "run_id", "workflow_id", "reason", "request_id")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    run_id: str
    workflow_id: str
    reason: str
    request_id: str
    def __init__(self, namespace_id: _Optional[str] = ..., run_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class TerminateWorkflowResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: WorkflowStatus
    def __init__(self, status: _Optional[_Union[WorkflowStatus, str]] = ...) -> None: ...

class PauseWorkflowRequest(_message.Message):
    __slots__ = ("namespace_id", "run_id", "workflow_id", "reason")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    run_id: str
    workflow_id: str
    reason: str
    def __init__(self, namespace_id: _Optional[str] = ..., run_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class PauseWorkflowResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: WorkflowStatus
    def __init__(self, status: _Optional[_Union[WorkflowStatus, str]] = ...) -> None: ...

class ResumeWorkflowRequest(_message.Message):
    __slots__ = ("namespace_id", "run_id", "workflow_id")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    run_id: str
    workflow_id: str
    def __init__(self, namespace_id: _Optional[str] = ..., run_id: _Optional[str] = ..., workflow_id: _Optional[str] = ...) -> None: ...

class ResumeWorkflowResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: WorkflowStatus
    def __init__(self, status: _Optional[_Union[WorkflowStatus, str]] = ...) -> None: ...

class AdoptWorkflowRequest(_message.Message):
    __slots__ = ("namespace_id", "run_id", "workflow_id", "build_id", "reason")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    BUILD_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    run_id: str
    workflow_id: str
    build_id: str
    reason: str
    def __init__(self, namespace_id: _Optional[str] = ..., run_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., build_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class AdoptWorkflowResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: WorkflowStatus
    def __init__(self, status: _Optional[_Union[WorkflowStatus, str]] = ...) -> None: ...

class RetryWorkflowRequest(_message.Message):
    __slots__ = ("namespace_id", "run_id", "workflow_id", "from_step", "request_id")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_STEP_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    run_id: str
    workflow_id: str
    from_step: str
    request_id: str
    def __init__(self, namespace_id: _Optional[str] = ..., run_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., from_step: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class RetryWorkflowResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: WorkflowStatus
    def __init__(self, status: _Optional[_Union[WorkflowStatus, str]] = ...) -> None: ...

class WakeStepRequest(_message.Message):
    __slots__ = ("namespace_id", "run_id", "workflow_id", "step_id", "request_id")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    run_id: str
    workflow_id: str
    step_id: str
    request_id: str
    def __init__(self, namespace_id: _Optional[str] = ..., run_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., step_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class WakeStepResponse(_message.Message):
    __slots__ = ("status", "woken", "step_id", "due_at", "run_id")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    WOKEN_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    DUE_AT_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    status: WorkflowStatus
    woken: bool
    step_id: str
    due_at: _timestamp_pb2.Timestamp
    run_id: str
    def __init__(self, status: _Optional[_Union[WorkflowStatus, str]] = ..., woken: bool = ..., step_id: _Optional[str] = ..., due_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., run_id: _Optional[str] = ...) -> None: ...

class ForkWorkflowRequest(_message.Message):
    __slots__ = ("namespace_id", "run_id", "from_step", "outputs", "version", "workflow_id", "request_id")
    class OutputsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _common_pb2.Payload
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ...) -> None: ...
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_STEP_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    run_id: str
    from_step: str
    outputs: _containers.MessageMap[str, _common_pb2.Payload]
    version: str
    workflow_id: str
    request_id: str
    def __init__(self, namespace_id: _Optional[str] = ..., run_id: _Optional[str] = ..., from_step: _Optional[str] = ..., outputs: _Optional[_Mapping[str, _common_pb2.Payload]] = ..., version: _Optional[str] = ..., workflow_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ForkWorkflowResponse(_message.Message):
    __slots__ = ("run_id", "workflow_id", "url")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    workflow_id: str
    url: str
    def __init__(self, run_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., url: _Optional[str] = ...) -> None: ...

class SignalWorkflowRequest(_message.Message):
    __slots__ = ("namespace_id", "run_id", "workflow_id", "signal_name", "payload", "request_id")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_NAME_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    run_id: str
    workflow_id: str
    signal_name: str
    payload: _common_pb2.Payload
    request_id: str
    def __init__(self, namespace_id: _Optional[str] = ..., run_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., signal_name: _Optional[str] = ..., payload: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class SignalWorkflowResponse(_message.Message):
    __slots__ = ("delivered", "run_id")
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    delivered: bool
    run_id: str
    def __init__(self, delivered: bool = ..., run_id: _Optional[str] = ...) -> None: ...

class ReplaceSignalRequest(_message.Message):
    __slots__ = ("namespace_id", "run_id", "workflow_id", "signal_name", "payload", "drop", "request_id")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_NAME_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    DROP_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    run_id: str
    workflow_id: str
    signal_name: str
    payload: _common_pb2.Payload
    drop: bool
    request_id: str
    def __init__(self, namespace_id: _Optional[str] = ..., run_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., signal_name: _Optional[str] = ..., payload: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., drop: bool = ..., request_id: _Optional[str] = ...) -> None: ...

class ReplaceSignalResponse(_message.Message):
    __slots__ = ("run_id", "status", "resumed")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    status: WorkflowStatus
    resumed: bool
    def __init__(self, run_id: _Optional[str] = ..., status: _Optional[_Union[WorkflowStatus, str]] = ..., resumed: bool = ...) -> None: ...

class SignalWithStartRequest(_message.Message):
    __slots__ = ("start", "signal_name", "payload", "request_id", "namespace_id")
    START_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_NAME_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    start: StartWorkflowRequest
    signal_name: str
    payload: _common_pb2.Payload
    request_id: str
    namespace_id: str
    def __init__(self, start: _Optional[_Union[StartWorkflowRequest, _Mapping]] = ..., signal_name: _Optional[str] = ..., payload: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., request_id: _Optional[str] = ..., namespace_id: _Optional[str] = ...) -> None: ...

class SignalWithStartResponse(_message.Message):
    __slots__ = ("started",)
    STARTED_FIELD_NUMBER: _ClassVar[int]
    started: StartWorkflowResponse
    def __init__(self, started: _Optional[_Union[StartWorkflowResponse, _Mapping]] = ...) -> None: ...

class CountWorkflowsRequest(_message.Message):
    __slots__ = ("namespace_id", "filter")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    filter: WorkflowFilter
    def __init__(self, namespace_id: _Optional[str] = ..., filter: _Optional[_Union[WorkflowFilter, _Mapping]] = ...) -> None: ...

class CountWorkflowsResponse(_message.Message):
    __slots__ = ("count", "capped")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    CAPPED_FIELD_NUMBER: _ClassVar[int]
    count: int
    capped: bool
    def __init__(self, count: _Optional[int] = ..., capped: bool = ...) -> None: ...

class ExplainWorkflowRequest(_message.Message):
    __slots__ = ("namespace_id", "run_id", "workflow_id")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    run_id: str
    workflow_id: str
    def __init__(self, namespace_id: _Optional[str] = ..., run_id: _Optional[str] = ..., workflow_id: _Optional[str] = ...) -> None: ...

class ExplainWorkflowResponse(_message.Message):
    __slots__ = ("sentence", "reason", "facts", "remedy")
    class FactsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SENTENCE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    REMEDY_FIELD_NUMBER: _ClassVar[int]
    sentence: str
    reason: str
    facts: _containers.ScalarMap[str, str]
    remedy: str
    def __init__(self, sentence: _Optional[str] = ..., reason: _Optional[str] = ..., facts: _Optional[_Mapping[str, str]] = ..., remedy: _Optional[str] = ...) -> None: ...

class StartBulkOperationRequest(_message.Message):
    __slots__ = ("namespace_id", "action", "filter", "reason", "request_id")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    action: BulkAction
    filter: WorkflowFilter
    reason: str
    request_id: str
    def __init__(self, namespace_id: _Optional[str] = ..., action: _Optional[_Union[BulkAction, str]] = ..., filter: _Optional[_Union[WorkflowFilter, _Mapping]] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class BulkOperation(_message.Message):
    __slots__ = ("operation_id", "action", "matched", "done", "failed", "finished", "created_at", "finished_at", "filter", "reason", "stopped", "last_error")
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    MATCHED_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    STOPPED_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    operation_id: str
    action: BulkAction
    matched: int
    done: int
    failed: int
    finished: bool
    created_at: _timestamp_pb2.Timestamp
    finished_at: _timestamp_pb2.Timestamp
    filter: WorkflowFilter
    reason: str
    stopped: bool
    last_error: str
    def __init__(self, operation_id: _Optional[str] = ..., action: _Optional[_Union[BulkAction, str]] = ..., matched: _Optional[int] = ..., done: _Optional[int] = ..., failed: _Optional[int] = ..., finished: bool = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., finished_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., filter: _Optional[_Union[WorkflowFilter, _Mapping]] = ..., reason: _Optional[str] = ..., stopped: bool = ..., last_error: _Optional[str] = ...) -> None: ...

class StopBulkOperationRequest(_message.Message):
    __slots__ = ("namespace_id", "operation_id")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    operation_id: str
    def __init__(self, namespace_id: _Optional[str] = ..., operation_id: _Optional[str] = ...) -> None: ...

class GetBulkOperationRequest(_message.Message):
    __slots__ = ("namespace_id", "operation_id")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    operation_id: str
    def __init__(self, namespace_id: _Optional[str] = ..., operation_id: _Optional[str] = ...) -> None: ...

class ListBulkOperationsRequest(_message.Message):
    __slots__ = ("namespace_id", "page")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    page: _common_pb2.PageRequest
    def __init__(self, namespace_id: _Optional[str] = ..., page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ...) -> None: ...

class ListBulkOperationsResponse(_message.Message):
    __slots__ = ("operations", "page")
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    operations: _containers.RepeatedCompositeFieldContainer[BulkOperation]
    page: _common_pb2.PageInfo
    def __init__(self, operations: _Optional[_Iterable[_Union[BulkOperation, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class ExportWorkflowRequest(_message.Message):
    __slots__ = ("namespace_id", "run_id")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    run_id: str
    def __init__(self, namespace_id: _Optional[str] = ..., run_id: _Optional[str] = ...) -> None: ...

class ExportWorkflowResponse(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: bytes
    def __init__(self, json: _Optional[bytes] = ...) -> None: ...

class ImportWorkflowRequest(_message.Message):
    __slots__ = ("namespace_id", "json")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    json: bytes
    def __init__(self, namespace_id: _Optional[str] = ..., json: _Optional[bytes] = ...) -> None: ...

class ImportWorkflowResponse(_message.Message):
    __slots__ = ("run_id", "already_exists")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ALREADY_EXISTS_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    already_exists: bool
    def __init__(self, run_id: _Optional[str] = ..., already_exists: bool = ...) -> None: ...
