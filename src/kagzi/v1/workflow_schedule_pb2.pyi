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

class OverlapPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OVERLAP_POLICY_UNSPECIFIED: _ClassVar[OverlapPolicy]
    OVERLAP_POLICY_ALLOW: _ClassVar[OverlapPolicy]
    OVERLAP_POLICY_SKIP: _ClassVar[OverlapPolicy]
    OVERLAP_POLICY_BUFFER_ONE: _ClassVar[OverlapPolicy]
    OVERLAP_POLICY_CANCEL_OTHER: _ClassVar[OverlapPolicy]
OVERLAP_POLICY_UNSPECIFIED: OverlapPolicy
OVERLAP_POLICY_ALLOW: OverlapPolicy
OVERLAP_POLICY_SKIP: OverlapPolicy
OVERLAP_POLICY_BUFFER_ONE: OverlapPolicy
OVERLAP_POLICY_CANCEL_OTHER: OverlapPolicy

class WorkflowSchedule(_message.Message):
    __slots__ = ("schedule_id", "namespace_id", "task_queue", "workflow_type", "cron_expr", "input", "context", "enabled", "max_catchup", "next_fire_at", "last_fired_at", "version", "created_at", "updated_at", "timezone", "interval", "overlap", "jitter", "start_at", "end_at", "catchup_window", "labels", "paused_reason", "priority", "timeout", "owner")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    CRON_EXPR_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    MAX_CATCHUP_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIRE_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_FIRED_AT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    TIMEZONE_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_FIELD_NUMBER: _ClassVar[int]
    JITTER_FIELD_NUMBER: _ClassVar[int]
    START_AT_FIELD_NUMBER: _ClassVar[int]
    END_AT_FIELD_NUMBER: _ClassVar[int]
    CATCHUP_WINDOW_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    PAUSED_REASON_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    schedule_id: str
    namespace_id: str
    task_queue: str
    workflow_type: str
    cron_expr: str
    input: _common_pb2.Payload
    context: _common_pb2.Payload
    enabled: bool
    max_catchup: int
    next_fire_at: _timestamp_pb2.Timestamp
    last_fired_at: _timestamp_pb2.Timestamp
    version: str
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    timezone: str
    interval: _duration_pb2.Duration
    overlap: OverlapPolicy
    jitter: _duration_pb2.Duration
    start_at: _timestamp_pb2.Timestamp
    end_at: _timestamp_pb2.Timestamp
    catchup_window: _duration_pb2.Duration
    labels: _containers.ScalarMap[str, str]
    paused_reason: str
    priority: int
    timeout: _duration_pb2.Duration
    owner: str
    def __init__(self, schedule_id: _Optional[str] = ..., namespace_id: _Optional[str] = ..., task_queue: _Optional[str] = ..., workflow_type: _Optional[str] = ..., cron_expr: _Optional[str] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., context: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., enabled: bool = ..., max_catchup: _Optional[int] = ..., next_fire_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_fired_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., version: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., timezone: _Optional[str] = ..., interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., overlap: _Optional[_Union[OverlapPolicy, str]] = ..., jitter: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., start_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., catchup_window: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ..., paused_reason: _Optional[str] = ..., priority: _Optional[int] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., owner: _Optional[str] = ...) -> None: ...

class CreateWorkflowScheduleRequest(_message.Message):
    __slots__ = ("namespace_id", "task_queue", "workflow_type", "cron_expr", "input", "context", "enabled", "max_catchup", "version", "schedule_id", "timezone", "interval", "overlap", "jitter", "start_at", "end_at", "catchup_window", "labels", "request_id", "priority", "timeout", "owner")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    CRON_EXPR_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    MAX_CATCHUP_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    TIMEZONE_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_FIELD_NUMBER: _ClassVar[int]
    JITTER_FIELD_NUMBER: _ClassVar[int]
    START_AT_FIELD_NUMBER: _ClassVar[int]
    END_AT_FIELD_NUMBER: _ClassVar[int]
    CATCHUP_WINDOW_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    task_queue: str
    workflow_type: str
    cron_expr: str
    input: _common_pb2.Payload
    context: _common_pb2.Payload
    enabled: bool
    max_catchup: int
    version: str
    schedule_id: str
    timezone: str
    interval: _duration_pb2.Duration
    overlap: OverlapPolicy
    jitter: _duration_pb2.Duration
    start_at: _timestamp_pb2.Timestamp
    end_at: _timestamp_pb2.Timestamp
    catchup_window: _duration_pb2.Duration
    labels: _containers.ScalarMap[str, str]
    request_id: str
    priority: int
    timeout: _duration_pb2.Duration
    owner: str
    def __init__(self, namespace_id: _Optional[str] = ..., task_queue: _Optional[str] = ..., workflow_type: _Optional[str] = ..., cron_expr: _Optional[str] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., context: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., enabled: bool = ..., max_catchup: _Optional[int] = ..., version: _Optional[str] = ..., schedule_id: _Optional[str] = ..., timezone: _Optional[str] = ..., interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., overlap: _Optional[_Union[OverlapPolicy, str]] = ..., jitter: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., start_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., catchup_window: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ..., request_id: _Optional[str] = ..., priority: _Optional[int] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., owner: _Optional[str] = ...) -> None: ...

class CreateWorkflowScheduleResponse(_message.Message):
    __slots__ = ("schedule", "warning")
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    WARNING_FIELD_NUMBER: _ClassVar[int]
    schedule: WorkflowSchedule
    warning: str
    def __init__(self, schedule: _Optional[_Union[WorkflowSchedule, _Mapping]] = ..., warning: _Optional[str] = ...) -> None: ...

class GetWorkflowScheduleRequest(_message.Message):
    __slots__ = ("schedule_id", "namespace_id")
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    schedule_id: str
    namespace_id: str
    def __init__(self, schedule_id: _Optional[str] = ..., namespace_id: _Optional[str] = ...) -> None: ...

class GetWorkflowScheduleResponse(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: WorkflowSchedule
    def __init__(self, schedule: _Optional[_Union[WorkflowSchedule, _Mapping]] = ...) -> None: ...

class ListWorkflowSchedulesRequest(_message.Message):
    __slots__ = ("namespace_id", "task_queue", "page", "include_payloads")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_PAYLOADS_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    task_queue: str
    page: _common_pb2.PageRequest
    include_payloads: bool
    def __init__(self, namespace_id: _Optional[str] = ..., task_queue: _Optional[str] = ..., page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ..., include_payloads: bool = ...) -> None: ...

class ListWorkflowSchedulesResponse(_message.Message):
    __slots__ = ("schedules", "page")
    SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    schedules: _containers.RepeatedCompositeFieldContainer[WorkflowSchedule]
    page: _common_pb2.PageInfo
    def __init__(self, schedules: _Optional[_Iterable[_Union[WorkflowSchedule, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class UpdateWorkflowScheduleRequest(_message.Message):
    __slots__ = ("schedule_id", "namespace_id", "task_queue", "workflow_type", "cron_expr", "input", "context", "enabled", "max_catchup", "next_fire_at", "version", "timezone", "interval", "overlap", "jitter", "start_at", "end_at", "catchup_window", "labels", "set_labels", "priority", "timeout", "owner")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    CRON_EXPR_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    MAX_CATCHUP_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIRE_AT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TIMEZONE_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_FIELD_NUMBER: _ClassVar[int]
    JITTER_FIELD_NUMBER: _ClassVar[int]
    START_AT_FIELD_NUMBER: _ClassVar[int]
    END_AT_FIELD_NUMBER: _ClassVar[int]
    CATCHUP_WINDOW_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    SET_LABELS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    schedule_id: str
    namespace_id: str
    task_queue: str
    workflow_type: str
    cron_expr: str
    input: _common_pb2.Payload
    context: _common_pb2.Payload
    enabled: bool
    max_catchup: int
    next_fire_at: _timestamp_pb2.Timestamp
    version: str
    timezone: str
    interval: _duration_pb2.Duration
    overlap: OverlapPolicy
    jitter: _duration_pb2.Duration
    start_at: _timestamp_pb2.Timestamp
    end_at: _timestamp_pb2.Timestamp
    catchup_window: _duration_pb2.Duration
    labels: _containers.ScalarMap[str, str]
    set_labels: bool
    priority: int
    timeout: _duration_pb2.Duration
    owner: str
    def __init__(self, schedule_id: _Optional[str] = ..., namespace_id: _Optional[str] = ..., task_queue: _Optional[str] = ..., workflow_type: _Optional[str] = ..., cron_expr: _Optional[str] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., context: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., enabled: bool = ..., max_catchup: _Optional[int] = ..., next_fire_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., version: _Optional[str] = ..., timezone: _Optional[str] = ..., interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., overlap: _Optional[_Union[OverlapPolicy, str]] = ..., jitter: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., start_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., catchup_window: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ..., set_labels: bool = ..., priority: _Optional[int] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., owner: _Optional[str] = ...) -> None: ...

class UpdateWorkflowScheduleResponse(_message.Message):
    __slots__ = ("schedule", "warning")
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    WARNING_FIELD_NUMBER: _ClassVar[int]
    schedule: WorkflowSchedule
    warning: str
    def __init__(self, schedule: _Optional[_Union[WorkflowSchedule, _Mapping]] = ..., warning: _Optional[str] = ...) -> None: ...

class DeleteWorkflowScheduleRequest(_message.Message):
    __slots__ = ("schedule_id", "namespace_id")
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    schedule_id: str
    namespace_id: str
    def __init__(self, schedule_id: _Optional[str] = ..., namespace_id: _Optional[str] = ...) -> None: ...

class DeleteWorkflowScheduleResponse(_message.Message):
    __slots__ = ("deleted",)
    DELETED_FIELD_NUMBER: _ClassVar[int]
    deleted: bool
    def __init__(self, deleted: bool = ...) -> None: ...

class UpsertWorkflowScheduleRequest(_message.Message):
    __slots__ = ("schedule", "namespace_id")
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    schedule: CreateWorkflowScheduleRequest
    namespace_id: str
    def __init__(self, schedule: _Optional[_Union[CreateWorkflowScheduleRequest, _Mapping]] = ..., namespace_id: _Optional[str] = ...) -> None: ...

class UpsertWorkflowScheduleResponse(_message.Message):
    __slots__ = ("schedule", "created", "warning")
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    WARNING_FIELD_NUMBER: _ClassVar[int]
    schedule: WorkflowSchedule
    created: bool
    warning: str
    def __init__(self, schedule: _Optional[_Union[WorkflowSchedule, _Mapping]] = ..., created: bool = ..., warning: _Optional[str] = ...) -> None: ...

class PauseWorkflowScheduleRequest(_message.Message):
    __slots__ = ("namespace_id", "schedule_id", "reason")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    schedule_id: str
    reason: str
    def __init__(self, namespace_id: _Optional[str] = ..., schedule_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class PauseWorkflowScheduleResponse(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: WorkflowSchedule
    def __init__(self, schedule: _Optional[_Union[WorkflowSchedule, _Mapping]] = ...) -> None: ...

class ResumeWorkflowScheduleRequest(_message.Message):
    __slots__ = ("namespace_id", "schedule_id")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    schedule_id: str
    def __init__(self, namespace_id: _Optional[str] = ..., schedule_id: _Optional[str] = ...) -> None: ...

class ResumeWorkflowScheduleResponse(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: WorkflowSchedule
    def __init__(self, schedule: _Optional[_Union[WorkflowSchedule, _Mapping]] = ...) -> None: ...

class TriggerWorkflowScheduleRequest(_message.Message):
    __slots__ = ("namespace_id", "schedule_id", "request_id")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    schedule_id: str
    request_id: str
    def __init__(self, namespace_id: _Optional[str] = ..., schedule_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class TriggerWorkflowScheduleResponse(_message.Message):
    __slots__ = ("run_id", "workflow_id")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    workflow_id: str
    def __init__(self, run_id: _Optional[str] = ..., workflow_id: _Optional[str] = ...) -> None: ...

class BackfillWorkflowScheduleRequest(_message.Message):
    __slots__ = ("namespace_id", "schedule_id", "to", "request_id")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    schedule_id: str
    to: _timestamp_pb2.Timestamp
    request_id: str
    def __init__(self, namespace_id: _Optional[str] = ..., schedule_id: _Optional[str] = ..., to: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., request_id: _Optional[str] = ..., **kwargs) -> None: ...

class BackfillWorkflowScheduleResponse(_message.Message):
    __slots__ = ("fires",)
    FIRES_FIELD_NUMBER: _ClassVar[int]
    fires: _containers.RepeatedCompositeFieldContainer[ScheduleFire]
    def __init__(self, fires: _Optional[_Iterable[_Union[ScheduleFire, _Mapping]]] = ...) -> None: ...

class PreviewWorkflowScheduleRequest(_message.Message):
    __slots__ = ("namespace_id", "schedule_id", "cron_expr", "timezone", "interval", "count", "after")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    CRON_EXPR_FIELD_NUMBER: _ClassVar[int]
    TIMEZONE_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    schedule_id: str
    cron_expr: str
    timezone: str
    interval: _duration_pb2.Duration
    count: int
    after: _timestamp_pb2.Timestamp
    def __init__(self, namespace_id: _Optional[str] = ..., schedule_id: _Optional[str] = ..., cron_expr: _Optional[str] = ..., timezone: _Optional[str] = ..., interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., count: _Optional[int] = ..., after: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class PreviewWorkflowScheduleResponse(_message.Message):
    __slots__ = ("fires",)
    FIRES_FIELD_NUMBER: _ClassVar[int]
    fires: _containers.RepeatedCompositeFieldContainer[_timestamp_pb2.Timestamp]
    def __init__(self, fires: _Optional[_Iterable[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]]] = ...) -> None: ...

class ListWorkflowScheduleRunsRequest(_message.Message):
    __slots__ = ("namespace_id", "schedule_id", "page")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    schedule_id: str
    page: _common_pb2.PageRequest
    def __init__(self, namespace_id: _Optional[str] = ..., schedule_id: _Optional[str] = ..., page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ...) -> None: ...

class ListWorkflowScheduleRunsResponse(_message.Message):
    __slots__ = ("fires", "page")
    FIRES_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    fires: _containers.RepeatedCompositeFieldContainer[ScheduleFire]
    page: _common_pb2.PageInfo
    def __init__(self, fires: _Optional[_Iterable[_Union[ScheduleFire, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class ScheduleFire(_message.Message):
    __slots__ = ("nominal_at", "fired_at", "run_id", "skipped_reason", "cause", "skipped_until", "skipped_count")
    NOMINAL_AT_FIELD_NUMBER: _ClassVar[int]
    FIRED_AT_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_REASON_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_UNTIL_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_COUNT_FIELD_NUMBER: _ClassVar[int]
    nominal_at: _timestamp_pb2.Timestamp
    fired_at: _timestamp_pb2.Timestamp
    run_id: str
    skipped_reason: str
    cause: str
    skipped_until: _timestamp_pb2.Timestamp
    skipped_count: int
    def __init__(self, nominal_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., fired_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., run_id: _Optional[str] = ..., skipped_reason: _Optional[str] = ..., cause: _Optional[str] = ..., skipped_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., skipped_count: _Optional[int] = ...) -> None: ...
