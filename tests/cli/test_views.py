"""Steps as they are printed."""

from kagzi.cli.runs.views import step_view
from kagzi.core.error_details import ErrorDetail, ErrorKind
from kagzi.core.records import RunKey, StepRecord
from kagzi.core.retry.policy import RetryPolicy
from kagzi.core.states import StepKind, StepStatus
from kagzi.sdk.client.step_records import read_step_record
from kagzi.wire.steps import write_step

WRONG = ErrorDetail(type="ValueError", message="no amount", kind=ErrorKind.PERMANENT)


def failed(error: ErrorDetail, policy: RetryPolicy | None = None) -> StepRecord:
    return StepRecord(
        run=RunKey("default", "run-1"),
        step_id="charge",
        name="charge",
        kind=StepKind.FUNCTION,
        status=StepStatus.FAILED,
        attempt=1,
        begun_seq=0,
        seq=1,
        created_at=0,
        started_at=None,
        finished_at=None,
        error=error,
        retry=policy,
    )


def test_a_failed_step_says_why_it_was_not_retried() -> None:
    view = step_view(read_step_record(write_step(failed(WRONG))))
    assert view["not_retried"] == "not retried: ValueError is a programming error; retry_on=[ValueError] retries it"
    assert (view["error"]["kind"], view["error"]["exhausted"]) == ("permanent", False)
    listed = step_view(read_step_record(write_step(failed(WRONG, RetryPolicy(non_retryable_errors=("ValueError",))))))
    assert listed["not_retried"] == "not retried: non_retryable of its retry policy lists ValueError"


def test_a_step_whose_attempts_are_used_up_says_that_instead() -> None:
    view = step_view(read_step_record(write_step(failed(ErrorDetail(type="ConnectionError", exhausted=True)))))
    assert view["not_retried"] is None
    assert (view["error"]["kind"], view["error"]["exhausted"]) == ("transient", True)
