"""Building blocks of all views. Names match `kagzi --json`: keys are always present, unknown values are null, times are
RFC 3339 in UTC with microseconds."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Generic, TypeAlias, TypeVar

import msgspec

from ....core import limits
from ....core.duration import parse_duration
from ....core.error_details import ErrorCode, ErrorDetail, ErrorKind
from ....core.retry.policy import SERVER_DEFAULT, RetryPolicy
from ....core.times import Timestamp, from_datetime, moment_text, us_from_timedelta
from ....engine import Page, PageAsk
from ..route import Input

Row = TypeVar("Row")
Shown = TypeVar("Shown")

Moment: TypeAlias = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
"""A point in time in a response: `moment(at)`."""
MomentIn: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]
"""A point in time in a request: RFC 3339 with a zone. `timestamp(at)` reads it."""
DurationIn: TypeAlias = Annotated[str, msgspec.Meta(description='A duration with its unit, such as "90s" or "5m 30s".')]
"""A duration in a request. `microseconds(text)` reads it."""


def moment(at: Timestamp | None) -> Moment | None:
    return None if at is None else moment_text(at)


def timestamp(at: datetime | None, field: str) -> Timestamp | None:
    return None if at is None else from_datetime(at, what=field)


def microseconds(duration: str | None, field: str) -> int | None:
    """Raises InvalidArgument."""
    return None if duration is None else us_from_timedelta(parse_duration(duration, what=field))


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Base of responses."""


# --- errors and retries -----------------------------------------------------------------------------------------------


class ErrorView(View, frozen=True, kw_only=True):
    """A recorded error. `text` is `Type: message`."""

    text: str
    type: str | None
    message: str
    kind: ErrorKind
    code: ErrorCode
    exhausted: bool
    non_retryable: bool
    traceback: str | None
    metadata: Mapping[str, str]
    cause: "ErrorView | None" = None


def error_view(error: ErrorDetail | None) -> ErrorView | None:
    if error is None:
        return None
    return ErrorView(
        text=error.text,
        type=error.type or None,
        message=error.message,
        kind=error.kind,
        code=error.code,
        exhausted=error.exhausted,
        non_retryable=error.non_retryable,
        traceback=error.traceback or None,
        metadata=error.metadata,
        cause=error_view(error.cause),
    )


class RetryIn(Input, frozen=True, kw_only=True):
    """A retry policy. Fields that are left out have the server's defaults."""

    maximum_attempts: int = SERVER_DEFAULT.maximum_attempts
    initial_interval_ms: int = SERVER_DEFAULT.initial_interval_ms
    backoff_coefficient: float = SERVER_DEFAULT.backoff_coefficient
    maximum_interval_ms: int = SERVER_DEFAULT.maximum_interval_ms
    jitter: float = SERVER_DEFAULT.jitter
    non_retryable_errors: tuple[str, ...] = ()
    retry_on_errors: tuple[str, ...] = ()


def retry_of(policy: RetryIn | None) -> RetryPolicy | None:
    return None if policy is None else RetryPolicy(**msgspec.structs.asdict(policy))


# --- pages ------------------------------------------------------------------------------------------------------------


PageSize: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=limits.PAGE_MAX_ROWS)]


class PageQuery(Input, frozen=True, kw_only=True):
    """Base of the queries of lists. `token`: `next` or `prev` of another page. `count`: also count the whole list."""

    size: PageSize = limits.PAGE_DEFAULT_ROWS
    token: str = ""
    count: bool = False

    @property
    def page(self) -> PageAsk:
        return PageAsk(size=self.size, token=self.token, count=self.count)


class Paged(msgspec.Struct, Generic[Shown], frozen=True, kw_only=True):
    """A page of a list. `next`, `prev`: tokens of the pages around it. `count`: of the whole list, if requested;
    `capped`: there are more."""

    rows: tuple[Shown, ...]
    next: str | None
    prev: str | None
    count: int | None
    capped: bool


def paged(page: Page[Row], view: Callable[[Row], Any]) -> Paged[Any]:
    return Paged(
        rows=tuple(map(view, page.rows)),
        next=page.next_token or None,
        prev=page.prev_token or None,
        count=page.total,
        capped=page.total_is_capped,
    )


def whole(rows: Iterable[Row], view: Callable[[Row], Any]) -> Paged[Any]:
    """A list that fits on a single page."""
    return Paged(rows=tuple(map(view, rows)), next=None, prev=None, count=None, capped=False)
