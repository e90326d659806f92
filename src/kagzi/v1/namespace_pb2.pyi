import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from kagzi.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Namespace(_message.Message):
    __slots__ = ("namespace_id", "enabled", "created_at", "limits", "retention_seconds", "deleting", "stored_bytes", "stored_bytes_at")
    class RetentionSecondsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    RETENTION_SECONDS_FIELD_NUMBER: _ClassVar[int]
    DELETING_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_AT_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    enabled: bool
    created_at: _timestamp_pb2.Timestamp
    limits: NamespaceLimits
    retention_seconds: _containers.ScalarMap[str, int]
    deleting: bool
    stored_bytes: int
    stored_bytes_at: _timestamp_pb2.Timestamp
    def __init__(self, namespace_id: _Optional[str] = ..., enabled: bool = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., limits: _Optional[_Union[NamespaceLimits, _Mapping]] = ..., retention_seconds: _Optional[_Mapping[str, int]] = ..., deleting: bool = ..., stored_bytes: _Optional[int] = ..., stored_bytes_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class NamespaceLimits(_message.Message):
    __slots__ = ("open_runs", "starts_per_second", "stored_bytes", "sessions", "schedules", "running_runs")
    OPEN_RUNS_FIELD_NUMBER: _ClassVar[int]
    STARTS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    RUNNING_RUNS_FIELD_NUMBER: _ClassVar[int]
    open_runs: int
    starts_per_second: float
    stored_bytes: int
    sessions: int
    schedules: int
    running_runs: int
    def __init__(self, open_runs: _Optional[int] = ..., starts_per_second: _Optional[float] = ..., stored_bytes: _Optional[int] = ..., sessions: _Optional[int] = ..., schedules: _Optional[int] = ..., running_runs: _Optional[int] = ...) -> None: ...

class CreateNamespaceRequest(_message.Message):
    __slots__ = ("namespace", "namespace_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: Namespace
    namespace_id: str
    def __init__(self, namespace: _Optional[_Union[Namespace, _Mapping]] = ..., namespace_id: _Optional[str] = ...) -> None: ...

class CreateNamespaceResponse(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: Namespace
    def __init__(self, namespace: _Optional[_Union[Namespace, _Mapping]] = ...) -> None: ...

class GetNamespaceRequest(_message.Message):
    __slots__ = ("namespace_id",)
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    def __init__(self, namespace_id: _Optional[str] = ...) -> None: ...

class GetNamespaceResponse(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: Namespace
    def __init__(self, namespace: _Optional[_Union[Namespace, _Mapping]] = ...) -> None: ...

class ListNamespacesRequest(_message.Message):
    __slots__ = ("page", "namespace_id")
    PAGE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    page: _common_pb2.PageRequest
    namespace_id: str
    def __init__(self, page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ..., namespace_id: _Optional[str] = ...) -> None: ...

class ListNamespacesResponse(_message.Message):
    __slots__ = ("namespaces", "page")
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    namespaces: _containers.RepeatedCompositeFieldContainer[Namespace]
    page: _common_pb2.PageInfo
    def __init__(self, namespaces: _Optional[_Iterable[_Union[Namespace, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class UpdateNamespaceRequest(_message.Message):
    __slots__ = ("namespace", "fields", "namespace_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: Namespace
    fields: _containers.RepeatedScalarFieldContainer[str]
    namespace_id: str
    def __init__(self, namespace: _Optional[_Union[Namespace, _Mapping]] = ..., fields: _Optional[_Iterable[str]] = ..., namespace_id: _Optional[str] = ...) -> None: ...

class UpdateNamespaceResponse(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: Namespace
    def __init__(self, namespace: _Optional[_Union[Namespace, _Mapping]] = ...) -> None: ...

class DeleteNamespaceRequest(_message.Message):
    __slots__ = ("namespace_id", "confirm")
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_FIELD_NUMBER: _ClassVar[int]
    namespace_id: str
    confirm: str
    def __init__(self, namespace_id: _Optional[str] = ..., confirm: _Optional[str] = ...) -> None: ...

class DeleteNamespaceResponse(_message.Message):
    __slots__ = ("deleted",)
    DELETED_FIELD_NUMBER: _ClassVar[int]
    deleted: bool
    def __init__(self, deleted: bool = ...) -> None: ...
