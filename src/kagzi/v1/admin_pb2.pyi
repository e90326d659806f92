import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from kagzi.v1 import common_pb2 as _common_pb2
from kagzi.v1 import worker_pb2 as _worker_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListWorkersRequest(_message.Message):
    __slots__ = ("namespace_id", "task_queue", "status_filter", "page")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    task_queue: str
    status_filter: _worker_pb2.WorkerStatus
    page: _common_pb2.PageRequest
    def __init__(self, namespace_id: _Optional[str] = ..., task_queue: _Optional[str] = ..., status_filter: _Optional[_Union[_worker_pb2.WorkerStatus, str]] = ..., page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ...) -> None: ...

class ListWorkersResponse(_message.Message):
    __slots__ = ("workers", "page")
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    workers: _containers.RepeatedCompositeFieldContainer[_worker_pb2.Worker]
    page: _common_pb2.PageInfo
    def __init__(self, workers: _Optional[_Iterable[_Union[_worker_pb2.Worker, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class GetWorkerRequest(_message.Message):
    __slots__ = ("worker_id", "namespace_id")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    namespace_id: str
    def __init__(self, worker_id: _Optional[str] = ..., namespace_id: _Optional[str] = ...) -> None: ...

class GetWorkerResponse(_message.Message):
    __slots__ = ("worker",)
    WORKER_FIELD_NUMBER: _ClassVar[int]
    worker: _worker_pb2.Worker
    def __init__(self, worker: _Optional[_Union[_worker_pb2.Worker, _Mapping]] = ...) -> None: ...

class GetStepRequest(_message.Message):
    __slots__ = ("step_id", "namespace_id", "run_id", "retry_seq")
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    RETRY_SEQ_FIELD_NUMBER: _ClassVar[int]
    step_id: str
    namespace_id: str
    run_id: str
    retry_seq: int
    def __init__(self, step_id: _Optional[str] = ..., namespace_id: _Optional[str] = ..., run_id: _Optional[str] = ..., retry_seq: _Optional[int] = ...) -> None: ...

class GetStepResponse(_message.Message):
    __slots__ = ("step",)
    STEP_FIELD_NUMBER: _ClassVar[int]
    step: _worker_pb2.Step
    def __init__(self, step: _Optional[_Union[_worker_pb2.Step, _Mapping]] = ...) -> None: ...

class ListStepsRequest(_message.Message):
    __slots__ = ("run_id", "step_name", "page", "namespace_id", "include_payloads", "forgotten")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_NAME_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_PAYLOADS_FIELD_NUMBER: _ClassVar[int]
    FORGOTTEN_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    step_name: str
    page: _common_pb2.PageRequest
    namespace_id: str
    include_payloads: bool
    forgotten: bool
    def __init__(self, run_id: _Optional[str] = ..., step_name: _Optional[str] = ..., page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ..., namespace_id: _Optional[str] = ..., include_payloads: bool = ..., forgotten: bool = ...) -> None: ...

class ListStepsResponse(_message.Message):
    __slots__ = ("steps", "page")
    STEPS_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.RepeatedCompositeFieldContainer[_worker_pb2.Step]
    page: _common_pb2.PageInfo
    def __init__(self, steps: _Optional[_Iterable[_Union[_worker_pb2.Step, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class GetTimelineRequest(_message.Message):
    __slots__ = ("namespace_id", "run_id", "after", "before", "around", "step_name", "statuses", "kinds", "size")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AROUND_FIELD_NUMBER: _ClassVar[int]
    STEP_NAME_FIELD_NUMBER: _ClassVar[int]
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    run_id: str
    after: int
    before: int
    around: str
    step_name: str
    statuses: _containers.RepeatedScalarFieldContainer[_worker_pb2.StepStatus]
    kinds: _containers.RepeatedScalarFieldContainer[_worker_pb2.StepKind]
    size: int
    def __init__(self, namespace_id: _Optional[str] = ..., run_id: _Optional[str] = ..., after: _Optional[int] = ..., before: _Optional[int] = ..., around: _Optional[str] = ..., step_name: _Optional[str] = ..., statuses: _Optional[_Iterable[_Union[_worker_pb2.StepStatus, str]]] = ..., kinds: _Optional[_Iterable[_Union[_worker_pb2.StepKind, str]]] = ..., size: _Optional[int] = ...) -> None: ...

class TimelineAttempt(_message.Message):
    __slots__ = ("started_at", "finished_at", "worker_id")
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    started_at: _timestamp_pb2.Timestamp
    finished_at: _timestamp_pb2.Timestamp
    worker_id: str
    def __init__(self, started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., finished_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., worker_id: _Optional[str] = ...) -> None: ...

class TimelineStep(_message.Message):
    __slots__ = ("step_id", "name", "kind", "status", "begun_seq", "seq", "attempt", "created_at", "started_at", "finished_at", "retry_at", "wake_at", "attempts", "error", "child_run_id", "parent_step_id", "parallel_group_id", "worker_id")
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    BEGUN_SEQ_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_FIELD_NUMBER: _ClassVar[int]
    RETRY_AT_FIELD_NUMBER: _ClassVar[int]
    WAKE_AT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    CHILD_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_STEP_ID_FIELD_NUMBER: _ClassVar[int]
    PARALLEL_GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    step_id: str
    name: str
    kind: _worker_pb2.StepKind
    status: _worker_pb2.StepStatus
    begun_seq: int
    seq: int
    attempt: int
    created_at: _timestamp_pb2.Timestamp
    started_at: _timestamp_pb2.Timestamp
    finished_at: _timestamp_pb2.Timestamp
    retry_at: _timestamp_pb2.Timestamp
    wake_at: _timestamp_pb2.Timestamp
    attempts: _containers.RepeatedCompositeFieldContainer[TimelineAttempt]
    error: str
    child_run_id: str
    parent_step_id: str
    parallel_group_id: str
    worker_id: str
    def __init__(self, step_id: _Optional[str] = ..., name: _Optional[str] = ..., kind: _Optional[_Union[_worker_pb2.StepKind, str]] = ..., status: _Optional[_Union[_worker_pb2.StepStatus, str]] = ..., begun_seq: _Optional[int] = ..., seq: _Optional[int] = ..., attempt: _Optional[int] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., finished_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., retry_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., wake_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., attempts: _Optional[_Iterable[_Union[TimelineAttempt, _Mapping]]] = ..., error: _Optional[str] = ..., child_run_id: _Optional[str] = ..., parent_step_id: _Optional[str] = ..., parallel_group_id: _Optional[str] = ..., worker_id: _Optional[str] = ...) -> None: ...

class GetTimelineResponse(_message.Message):
    __slots__ = ("steps", "older", "newer", "pauses", "retries")
    STEPS_FIELD_NUMBER: _ClassVar[int]
    OLDER_FIELD_NUMBER: _ClassVar[int]
    NEWER_FIELD_NUMBER: _ClassVar[int]
    PAUSES_FIELD_NUMBER: _ClassVar[int]
    RETRIES_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.RepeatedCompositeFieldContainer[TimelineStep]
    older: bool
    newer: bool
    pauses: _containers.RepeatedCompositeFieldContainer[TimelinePause]
    retries: _containers.RepeatedCompositeFieldContainer[TimelineRetry]
    def __init__(self, steps: _Optional[_Iterable[_Union[TimelineStep, _Mapping]]] = ..., older: bool = ..., newer: bool = ..., pauses: _Optional[_Iterable[_Union[TimelinePause, _Mapping]]] = ..., retries: _Optional[_Iterable[_Union[TimelineRetry, _Mapping]]] = ...) -> None: ...

class TimelineRetry(_message.Message):
    __slots__ = ("retry_seq", "retried_at", "steps")
    RETRY_SEQ_FIELD_NUMBER: _ClassVar[int]
    RETRIED_AT_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    retry_seq: int
    retried_at: _timestamp_pb2.Timestamp
    steps: int
    def __init__(self, retry_seq: _Optional[int] = ..., retried_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., steps: _Optional[int] = ...) -> None: ...

class TimelinePause(_message.Message):
    __slots__ = ("started_at", "finished_at", "reason")
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    started_at: _timestamp_pb2.Timestamp
    finished_at: _timestamp_pb2.Timestamp
    reason: str
    def __init__(self, started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., finished_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reason: _Optional[str] = ...) -> None: ...

class HealthCheckRequest(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: str
    def __init__(self, service: _Optional[str] = ...) -> None: ...

class HealthCheckResponse(_message.Message):
    __slots__ = ("status", "message", "timestamp")
    class ServingStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SERVING_STATUS_UNSPECIFIED: _ClassVar[HealthCheckResponse.ServingStatus]
        SERVING: _ClassVar[HealthCheckResponse.ServingStatus]
        NOT_SERVING: _ClassVar[HealthCheckResponse.ServingStatus]
    SERVING_STATUS_UNSPECIFIED: HealthCheckResponse.ServingStatus
    SERVING: HealthCheckResponse.ServingStatus
    NOT_SERVING: HealthCheckResponse.ServingStatus
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    status: HealthCheckResponse.ServingStatus
    message: str
    timestamp: _timestamp_pb2.Timestamp
    def __init__(self, status: _Optional[_Union[HealthCheckResponse.ServingStatus, str]] = ..., message: _Optional[str] = ..., timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class GetServerInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetServerInfoResponse(_message.Message):
    __slots__ = ("version", "api_version", "supported_features", "min_sdk_version", "http_url", "store", "server_id", "max_payload_bytes", "now", "store_problem", "websocket_url", "websocket_version", "listener_id", "start_batches", "auth")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    API_VERSION_FIELD_NUMBER: _ClassVar[int]
    SUPPORTED_FEATURES_FIELD_NUMBER: _ClassVar[int]
    MIN_SDK_VERSION_FIELD_NUMBER: _ClassVar[int]
    HTTP_URL_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    SERVER_ID_FIELD_NUMBER: _ClassVar[int]
    MAX_PAYLOAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    STORE_PROBLEM_FIELD_NUMBER: _ClassVar[int]
    WEBSOCKET_URL_FIELD_NUMBER: _ClassVar[int]
    WEBSOCKET_VERSION_FIELD_NUMBER: _ClassVar[int]
    LISTENER_ID_FIELD_NUMBER: _ClassVar[int]
    START_BATCHES_FIELD_NUMBER: _ClassVar[int]
    AUTH_FIELD_NUMBER: _ClassVar[int]
    version: str
    api_version: str
    supported_features: _containers.RepeatedScalarFieldContainer[str]
    min_sdk_version: str
    http_url: str
    store: str
    server_id: str
    max_payload_bytes: int
    now: _timestamp_pb2.Timestamp
    store_problem: str
    websocket_url: str
    websocket_version: int
    listener_id: str
    start_batches: int
    auth: str
    def __init__(self, version: _Optional[str] = ..., api_version: _Optional[str] = ..., supported_features: _Optional[_Iterable[str]] = ..., min_sdk_version: _Optional[str] = ..., http_url: _Optional[str] = ..., store: _Optional[str] = ..., server_id: _Optional[str] = ..., max_payload_bytes: _Optional[int] = ..., now: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., store_problem: _Optional[str] = ..., websocket_url: _Optional[str] = ..., websocket_version: _Optional[int] = ..., listener_id: _Optional[str] = ..., start_batches: _Optional[int] = ..., auth: _Optional[str] = ...) -> None: ...

class DrainWorkerRequest(_message.Message):
    __slots__ = ("namespace_id", "worker_id")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    worker_id: str
    def __init__(self, namespace_id: _Optional[str] = ..., worker_id: _Optional[str] = ...) -> None: ...

class DrainWorkerResponse(_message.Message):
    __slots__ = ("worker",)
    WORKER_FIELD_NUMBER: _ClassVar[int]
    worker: _worker_pb2.Worker
    def __init__(self, worker: _Optional[_Union[_worker_pb2.Worker, _Mapping]] = ...) -> None: ...

class WorkerEvent(_message.Message):
    __slots__ = ("worker_id", "kind", "at", "detail")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    kind: str
    at: _timestamp_pb2.Timestamp
    detail: str
    def __init__(self, worker_id: _Optional[str] = ..., kind: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., detail: _Optional[str] = ...) -> None: ...

class ListWorkerEventsRequest(_message.Message):
    __slots__ = ("namespace_id", "worker_id", "page")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    worker_id: str
    page: _common_pb2.PageRequest
    def __init__(self, namespace_id: _Optional[str] = ..., worker_id: _Optional[str] = ..., page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ...) -> None: ...

class ListWorkerEventsResponse(_message.Message):
    __slots__ = ("events", "page")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[WorkerEvent]
    page: _common_pb2.PageInfo
    def __init__(self, events: _Optional[_Iterable[_Union[WorkerEvent, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class GetStatsRequest(_message.Message):
    __slots__ = ("namespace_id", "since", "until", "workflow_type", "step")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    since: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    workflow_type: str
    step: str
    def __init__(self, namespace_id: _Optional[str] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., workflow_type: _Optional[str] = ..., step: _Optional[str] = ...) -> None: ...

class StatsBucket(_message.Message):
    __slots__ = ("minute", "workflow_type", "started", "completed", "failed", "cancelled", "p50_ms", "p95_ms", "took")
    MINUTE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    P50_MS_FIELD_NUMBER: _ClassVar[int]
    P95_MS_FIELD_NUMBER: _ClassVar[int]
    TOOK_FIELD_NUMBER: _ClassVar[int]
    minute: _timestamp_pb2.Timestamp
    workflow_type: str
    started: int
    completed: int
    failed: int
    cancelled: int
    p50_ms: float
    p95_ms: float
    took: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, minute: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., workflow_type: _Optional[str] = ..., started: _Optional[int] = ..., completed: _Optional[int] = ..., failed: _Optional[int] = ..., cancelled: _Optional[int] = ..., p50_ms: _Optional[float] = ..., p95_ms: _Optional[float] = ..., took: _Optional[_Iterable[int]] = ...) -> None: ...

class GetStatsResponse(_message.Message):
    __slots__ = ("buckets", "open_by_status", "open_is_capped", "step")
    class OpenByStatusEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    BUCKETS_FIELD_NUMBER: _ClassVar[int]
    OPEN_BY_STATUS_FIELD_NUMBER: _ClassVar[int]
    OPEN_IS_CAPPED_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    buckets: _containers.RepeatedCompositeFieldContainer[StatsBucket]
    open_by_status: _containers.ScalarMap[str, int]
    open_is_capped: bool
    step: str
    def __init__(self, buckets: _Optional[_Iterable[_Union[StatsBucket, _Mapping]]] = ..., open_by_status: _Optional[_Mapping[str, int]] = ..., open_is_capped: bool = ..., step: _Optional[str] = ...) -> None: ...

class GetQueueDepthRequest(_message.Message):
    __slots__ = ("namespace_id", "workflow_type")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    workflow_type: str
    def __init__(self, namespace_id: _Optional[str] = ..., workflow_type: _Optional[str] = ...) -> None: ...

class QueueDepth(_message.Message):
    __slots__ = ("workflow_type", "version", "waiting", "oldest_waiting_since", "workers", "free_slots", "limit_reason")
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    OLDEST_WAITING_SINCE_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    FREE_SLOTS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_REASON_FIELD_NUMBER: _ClassVar[int]
    workflow_type: str
    version: str
    waiting: int
    oldest_waiting_since: _timestamp_pb2.Timestamp
    workers: int
    free_slots: int
    limit_reason: str
    def __init__(self, workflow_type: _Optional[str] = ..., version: _Optional[str] = ..., waiting: _Optional[int] = ..., oldest_waiting_since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., workers: _Optional[int] = ..., free_slots: _Optional[int] = ..., limit_reason: _Optional[str] = ...) -> None: ...

class GetQueueDepthResponse(_message.Message):
    __slots__ = ("queues",)
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedCompositeFieldContainer[QueueDepth]
    def __init__(self, queues: _Optional[_Iterable[_Union[QueueDepth, _Mapping]]] = ...) -> None: ...

class WorkflowType(_message.Message):
    __slots__ = ("workflow_type", "paused", "default_version", "versions", "max_running", "max_running_per_key", "starts_per_second", "when_full", "open_runs", "starts_per_second_per_key")
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VERSION_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_RUNNING_FIELD_NUMBER: _ClassVar[int]
    MAX_RUNNING_PER_KEY_FIELD_NUMBER: _ClassVar[int]
    STARTS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    WHEN_FULL_FIELD_NUMBER: _ClassVar[int]
    OPEN_RUNS_FIELD_NUMBER: _ClassVar[int]
    STARTS_PER_SECOND_PER_KEY_FIELD_NUMBER: _ClassVar[int]
    workflow_type: str
    paused: bool
    default_version: str
    versions: _containers.RepeatedScalarFieldContainer[str]
    max_running: int
    max_running_per_key: int
    starts_per_second: float
    when_full: str
    open_runs: int
    starts_per_second_per_key: float
    def __init__(self, workflow_type: _Optional[str] = ..., paused: bool = ..., default_version: _Optional[str] = ..., versions: _Optional[_Iterable[str]] = ..., max_running: _Optional[int] = ..., max_running_per_key: _Optional[int] = ..., starts_per_second: _Optional[float] = ..., when_full: _Optional[str] = ..., open_runs: _Optional[int] = ..., starts_per_second_per_key: _Optional[float] = ...) -> None: ...

class ListWorkflowTypesRequest(_message.Message):
    __slots__ = ("namespace_id", "page", "workflow_type")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    page: _common_pb2.PageRequest
    workflow_type: str
    def __init__(self, namespace_id: _Optional[str] = ..., page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ..., workflow_type: _Optional[str] = ...) -> None: ...

class ListWorkflowTypesResponse(_message.Message):
    __slots__ = ("types", "page")
    TYPES_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    types: _containers.RepeatedCompositeFieldContainer[WorkflowType]
    page: _common_pb2.PageInfo
    def __init__(self, types: _Optional[_Iterable[_Union[WorkflowType, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class UpdateWorkflowTypeRequest(_message.Message):
    __slots__ = ("namespace_id", "type", "fields")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    type: WorkflowType
    fields: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, namespace_id: _Optional[str] = ..., type: _Optional[_Union[WorkflowType, _Mapping]] = ..., fields: _Optional[_Iterable[str]] = ...) -> None: ...

class UpdateWorkflowTypeResponse(_message.Message):
    __slots__ = ("type", "warning")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    WARNING_FIELD_NUMBER: _ClassVar[int]
    type: WorkflowType
    warning: str
    def __init__(self, type: _Optional[_Union[WorkflowType, _Mapping]] = ..., warning: _Optional[str] = ...) -> None: ...

class PauseWorkflowTypeRequest(_message.Message):
    __slots__ = ("namespace_id", "workflow_type")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    workflow_type: str
    def __init__(self, namespace_id: _Optional[str] = ..., workflow_type: _Optional[str] = ...) -> None: ...

class PauseWorkflowTypeResponse(_message.Message):
    __slots__ = ("type",)
    TYPE_FIELD_NUMBER: _ClassVar[int]
    type: WorkflowType
    def __init__(self, type: _Optional[_Union[WorkflowType, _Mapping]] = ...) -> None: ...

class ResumeWorkflowTypeRequest(_message.Message):
    __slots__ = ("namespace_id", "workflow_type")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    workflow_type: str
    def __init__(self, namespace_id: _Optional[str] = ..., workflow_type: _Optional[str] = ...) -> None: ...

class ResumeWorkflowTypeResponse(_message.Message):
    __slots__ = ("type",)
    TYPE_FIELD_NUMBER: _ClassVar[int]
    type: WorkflowType
    def __init__(self, type: _Optional[_Union[WorkflowType, _Mapping]] = ...) -> None: ...

class WorkflowVersion(_message.Message):
    __slots__ = ("workflow_type", "version", "is_default", "deprecated", "open_runs", "workers", "first_seen_at", "open_is_capped", "is_set")
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    IS_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    DEPRECATED_FIELD_NUMBER: _ClassVar[int]
    OPEN_RUNS_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEEN_AT_FIELD_NUMBER: _ClassVar[int]
    OPEN_IS_CAPPED_FIELD_NUMBER: _ClassVar[int]
    IS_SET_FIELD_NUMBER: _ClassVar[int]
    workflow_type: str
    version: str
    is_default: bool
    deprecated: bool
    open_runs: int
    workers: int
    first_seen_at: _timestamp_pb2.Timestamp
    open_is_capped: bool
    is_set: bool
    def __init__(self, workflow_type: _Optional[str] = ..., version: _Optional[str] = ..., is_default: bool = ..., deprecated: bool = ..., open_runs: _Optional[int] = ..., workers: _Optional[int] = ..., first_seen_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., open_is_capped: bool = ..., is_set: bool = ...) -> None: ...

class ListVersionsRequest(_message.Message):
    __slots__ = ("namespace_id", "workflow_type", "page")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    workflow_type: str
    page: _common_pb2.PageRequest
    def __init__(self, namespace_id: _Optional[str] = ..., workflow_type: _Optional[str] = ..., page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ...) -> None: ...

class ListVersionsResponse(_message.Message):
    __slots__ = ("versions", "page")
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    versions: _containers.RepeatedCompositeFieldContainer[WorkflowVersion]
    page: _common_pb2.PageInfo
    def __init__(self, versions: _Optional[_Iterable[_Union[WorkflowVersion, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class SetDefaultVersionRequest(_message.Message):
    __slots__ = ("namespace_id", "workflow_type", "version")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    workflow_type: str
    version: str
    def __init__(self, namespace_id: _Optional[str] = ..., workflow_type: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class SetDefaultVersionResponse(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: WorkflowVersion
    def __init__(self, version: _Optional[_Union[WorkflowVersion, _Mapping]] = ...) -> None: ...

class DeprecateVersionRequest(_message.Message):
    __slots__ = ("namespace_id", "workflow_type", "version", "undo")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    UNDO_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    workflow_type: str
    version: str
    undo: bool
    def __init__(self, namespace_id: _Optional[str] = ..., workflow_type: _Optional[str] = ..., version: _Optional[str] = ..., undo: bool = ...) -> None: ...

class DeprecateVersionResponse(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: WorkflowVersion
    def __init__(self, version: _Optional[_Union[WorkflowVersion, _Mapping]] = ...) -> None: ...

class GetWorkflowSchemaRequest(_message.Message):
    __slots__ = ("namespace_id", "workflow_type", "version")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    workflow_type: str
    version: str
    def __init__(self, namespace_id: _Optional[str] = ..., workflow_type: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class WorkflowSchema(_message.Message):
    __slots__ = ("workflow_type", "version", "description", "input_schema", "output_schema", "signal_schemas", "registered_at")
    class SignalSchemasEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    INPUT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_SCHEMAS_FIELD_NUMBER: _ClassVar[int]
    REGISTERED_AT_FIELD_NUMBER: _ClassVar[int]
    workflow_type: str
    version: str
    description: str
    input_schema: str
    output_schema: str
    signal_schemas: _containers.ScalarMap[str, str]
    registered_at: _timestamp_pb2.Timestamp
    def __init__(self, workflow_type: _Optional[str] = ..., version: _Optional[str] = ..., description: _Optional[str] = ..., input_schema: _Optional[str] = ..., output_schema: _Optional[str] = ..., signal_schemas: _Optional[_Mapping[str, str]] = ..., registered_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class GetWorkflowSchemaResponse(_message.Message):
    __slots__ = ("schema",)
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    schema: WorkflowSchema
    def __init__(self, schema: _Optional[_Union[WorkflowSchema, _Mapping]] = ...) -> None: ...

class ListStepLogsRequest(_message.Message):
    __slots__ = ("namespace_id", "run_id", "step_id", "page")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    run_id: str
    step_id: str
    page: _common_pb2.PageRequest
    def __init__(self, namespace_id: _Optional[str] = ..., run_id: _Optional[str] = ..., step_id: _Optional[str] = ..., page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ...) -> None: ...

class ListStepLogsResponse(_message.Message):
    __slots__ = ("logs", "page")
    LOGS_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    logs: _containers.RepeatedCompositeFieldContainer[_worker_pb2.StepLog]
    page: _common_pb2.PageInfo
    def __init__(self, logs: _Optional[_Iterable[_Union[_worker_pb2.StepLog, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...
