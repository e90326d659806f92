"""Explains why an error was not retried, and how to have it retried."""

import msgspec

from ..error_details import OWN_CODE, ErrorCode, ErrorDetail, ErrorKind
from ..errors import NonRetryable
from ..raised.exceptions import qualified_name
from .policy import RetryPolicy, retried_by_name

_EXPLICIT = qualified_name(NonRetryable)
PROGRAMMING_ERRORS: tuple[type[Exception], ...] = (
    TypeError,
    ValueError,
    LookupError,
    ArithmeticError,
    AttributeError,
    NameError,
    AssertionError,
    NotImplementedError,
    ImportError,
    SyntaxError,
)
_PROGRAMMING = frozenset(qualified_name(cls) for cls in PROGRAMMING_ERRORS)


def why_not_retried(policy: RetryPolicy, error: ErrorDetail) -> str:
    """`not retried: ValueError is a programming error; retry_on=[ValueError] retries it`. Empty if there is nothing to
    add: the attempts were used up, or the error was raised as non-retryable."""
    if error.exhausted or error.code is not ErrorCode.USER or _EXPLICIT in (error.type, *error.bases):
        return ""
    name = error.type.rpartition(".")[2]
    listed = retried_by_name(policy, msgspec.structs.replace(error, non_retryable=False))
    if listed is False:
        return f"not retried: non_retryable of its retry policy lists {name or 'it'}"
    if listed or error.kind is not ErrorKind.PERMANENT or not name:
        return ""
    status = error.metadata.get(OWN_CODE, "")
    if status.isdigit():
        return f'not retried: HTTP {status} is permanent; retry_on=["{status}"] retries it'
    return f"not retried: {name} {_means(error)}; retry_on=[{name}] retries it"


def _means(error: ErrorDetail) -> str:
    if error.type in _PROGRAMMING:
        return "is a programming error"
    base = next((base for base in error.bases if base in _PROGRAMMING), "")
    if base:
        return "is a programming error" if "." not in error.type else f"is a {base}, a programming error"
    return "is permanent"
