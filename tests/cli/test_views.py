"""Steps as they are printed."""

from kagzi.cli.runs.views import step_view
from kagzi.core.error_details import ErrorDetail, ErrorKind
from kagzi.core.retry import RetryPolicy
from kagzi.v1 import worker_pb2
from kagzi.wire.common import write_error, write_retry

WRONG = ErrorDetail(type="ValueError", message="no amount", kind=ErrorKind.PERMANENT)


def failed(error: ErrorDetail, policy: RetryPolicy | None = None) -> worker_pb2.Step:
    return worker_pb2.Step(
        step_id="charge",
        kind=worker_pb2.STEP_KIND_FUNCTION,
        status=worker_pb2.STEP_STATUS_FAILED,
        error=write_error(error),
        retry_policy=None if policy is None else write_retry(policy),
    )


def test_a_failed_step_says_why_it_was_not_retried() -> None:
    view = step_view(failed(WRONG))
    assert view["not_retried"] == "not retried: ValueError is a programming error; retry_on=[ValueError] retries it"
    assert (view["error"]["kind"], view["error"]["exhausted"]) == ("permanent", False)
    listed = step_view(failed(WRONG, RetryPolicy(non_retryable_errors=("ValueError",))))
    assert listed["not_retried"] == "not retried: non_retryable of its retry policy lists ValueError"


def test_a_step_whose_attempts_are_used_up_says_that_instead() -> None:
    view = step_view(failed(ErrorDetail(type="ConnectionError", exhausted=True)))
    assert view["not_retried"] is None
    assert (view["error"]["kind"], view["error"]["exhausted"]) == ("transient", True)
