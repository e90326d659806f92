"""The error of a step that knows when it should be retried."""

from ..duration import Duration, parse_duration
from ..error_details import ErrorCode, ErrorKind
from ..errors import KagziError
from ..public import exported


@exported
class RetryAfter(KagziError):
    """Raise it inside a step: the step is tried again, but not before `after`, as HTTP 429 and 503 ask for. The retry
    policy still decides whether there is another attempt."""

    kind = ErrorKind.TRANSIENT
    code = ErrorCode.USER

    def __init__(self, message: str, after: Duration) -> None:
        self.after = parse_duration(after, what="after")  #: the delay as a timedelta
        super().__init__(message, retry_after=self.after)
