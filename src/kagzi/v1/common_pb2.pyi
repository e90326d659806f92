from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ErrorCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_CODE_UNSPECIFIED: _ClassVar[ErrorCode]
    ERROR_CODE_NOT_FOUND: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_ARGUMENT: _ClassVar[ErrorCode]
    ERROR_CODE_PRECONDITION_FAILED: _ClassVar[ErrorCode]
    ERROR_CODE_CONFLICT: _ClassVar[ErrorCode]
    ERROR_CODE_UNAUTHORIZED: _ClassVar[ErrorCode]
    ERROR_CODE_UNAVAILABLE: _ClassVar[ErrorCode]
    ERROR_CODE_INTERNAL: _ClassVar[ErrorCode]
    ERROR_CODE_TIMEOUT: _ClassVar[ErrorCode]
    ERROR_CODE_LEASE_LOST: _ClassVar[ErrorCode]
    ERROR_CODE_RESOURCE_EXHAUSTED: _ClassVar[ErrorCode]
    ERROR_CODE_CANCELLED: _ClassVar[ErrorCode]
    ERROR_CODE_UNIMPLEMENTED: _ClassVar[ErrorCode]
    ERROR_CODE_USER: _ClassVar[ErrorCode]
    ERROR_CODE_UNAUTHENTICATED: _ClassVar[ErrorCode]

class ErrorKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_KIND_UNSPECIFIED: _ClassVar[ErrorKind]
    ERROR_KIND_TRANSIENT: _ClassVar[ErrorKind]
    ERROR_KIND_PERMANENT: _ClassVar[ErrorKind]
    ERROR_KIND_TIMEOUT: _ClassVar[ErrorKind]
    ERROR_KIND_CANCELLED: _ClassVar[ErrorKind]
    ERROR_KIND_EXHAUSTED: _ClassVar[ErrorKind]
    ERROR_KIND_NONDETERMINISM: _ClassVar[ErrorKind]
    ERROR_KIND_TERMINATED: _ClassVar[ErrorKind]
    ERROR_KIND_LOST: _ClassVar[ErrorKind]
ERROR_CODE_UNSPECIFIED: ErrorCode
ERROR_CODE_NOT_FOUND: ErrorCode
ERROR_CODE_INVALID_ARGUMENT: ErrorCode
ERROR_CODE_PRECONDITION_FAILED: ErrorCode
ERROR_CODE_CONFLICT: ErrorCode
ERROR_CODE_UNAUTHORIZED: ErrorCode
ERROR_CODE_UNAVAILABLE: ErrorCode
ERROR_CODE_INTERNAL: ErrorCode
ERROR_CODE_TIMEOUT: ErrorCode
ERROR_CODE_LEASE_LOST: ErrorCode
ERROR_CODE_RESOURCE_EXHAUSTED: ErrorCode
ERROR_CODE_CANCELLED: ErrorCode
ERROR_CODE_UNIMPLEMENTED: ErrorCode
ERROR_CODE_USER: ErrorCode
ERROR_CODE_UNAUTHENTICATED: ErrorCode
ERROR_KIND_UNSPECIFIED: ErrorKind
ERROR_KIND_TRANSIENT: ErrorKind
ERROR_KIND_PERMANENT: ErrorKind
ERROR_KIND_TIMEOUT: ErrorKind
ERROR_KIND_CANCELLED: ErrorKind
ERROR_KIND_EXHAUSTED: ErrorKind
ERROR_KIND_NONDETERMINISM: ErrorKind
ERROR_KIND_TERMINATED: ErrorKind
ERROR_KIND_LOST: ErrorKind

class Payload(_message.Message):
    __slots__ = ("data", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    DATA_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, data: _Optional[bytes] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class PageRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "include_total_count")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_TOTAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    include_total_count: bool
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., include_total_count: bool = ...) -> None: ...

class PageInfo(_message.Message):
    __slots__ = ("next_page_token", "has_more", "total_count", "prev_page_token", "total_is_capped")
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    HAS_MORE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    PREV_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_IS_CAPPED_FIELD_NUMBER: _ClassVar[int]
    next_page_token: str
    has_more: bool
    total_count: int
    prev_page_token: str
    total_is_capped: bool
    def __init__(self, next_page_token: _Optional[str] = ..., has_more: bool = ..., total_count: _Optional[int] = ..., prev_page_token: _Optional[str] = ..., total_is_capped: bool = ...) -> None: ...

class ErrorDetail(_message.Message):
    __slots__ = ("code", "message", "non_retryable", "retry_after_ms", "subject", "subject_id", "metadata", "kind", "type", "bases", "traceback", "cause", "exhausted")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    NON_RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    BASES_FIELD_NUMBER: _ClassVar[int]
    TRACEBACK_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    EXHAUSTED_FIELD_NUMBER: _ClassVar[int]
    code: ErrorCode
    message: str
    non_retryable: bool
    retry_after_ms: int
    subject: str
    subject_id: str
    metadata: _containers.ScalarMap[str, str]
    kind: ErrorKind
    type: str
    bases: _containers.RepeatedScalarFieldContainer[str]
    traceback: str
    cause: ErrorDetail
    exhausted: bool
    def __init__(self, code: _Optional[_Union[ErrorCode, str]] = ..., message: _Optional[str] = ..., non_retryable: bool = ..., retry_after_ms: _Optional[int] = ..., subject: _Optional[str] = ..., subject_id: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., kind: _Optional[_Union[ErrorKind, str]] = ..., type: _Optional[str] = ..., bases: _Optional[_Iterable[str]] = ..., traceback: _Optional[str] = ..., cause: _Optional[_Union[ErrorDetail, _Mapping]] = ..., exhausted: bool = ...) -> None: ...

class RetryPolicy(_message.Message):
    __slots__ = ("maximum_attempts", "initial_interval_ms", "backoff_coefficient", "maximum_interval_ms", "non_retryable_errors", "jitter", "retry_on_errors")
    MAXIMUM_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    INITIAL_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_COEFFICIENT_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    NON_RETRYABLE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    JITTER_FIELD_NUMBER: _ClassVar[int]
    RETRY_ON_ERRORS_FIELD_NUMBER: _ClassVar[int]
    maximum_attempts: int
    initial_interval_ms: int
    backoff_coefficient: float
    maximum_interval_ms: int
    non_retryable_errors: _containers.RepeatedScalarFieldContainer[str]
    jitter: float
    retry_on_errors: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, maximum_attempts: _Optional[int] = ..., initial_interval_ms: _Optional[int] = ..., backoff_coefficient: _Optional[float] = ..., maximum_interval_ms: _Optional[int] = ..., non_retryable_errors: _Optional[_Iterable[str]] = ..., jitter: _Optional[float] = ..., retry_on_errors: _Optional[_Iterable[str]] = ...) -> None: ...

class Lease(_message.Message):
    __slots__ = ("counter", "nonce")
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    counter: int
    nonce: int
    def __init__(self, counter: _Optional[int] = ..., nonce: _Optional[int] = ...) -> None: ...
