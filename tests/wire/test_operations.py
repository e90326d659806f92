"""Operations become commands; outcomes become packed acknowledgements, or answers that say more."""

import pytest

from kagzi.core.commands import (
    BeginSleep,
    BeginStep,
    CancelRun,
    CompleteRun,
    CompleteStep,
    FailRun,
    FailStep,
    FinishSleep,
    Park,
    ReleaseRun,
)
from kagzi.core.errors import ErrorCode, ErrorDetail, ErrorKind
from kagzi.core.outcomes import (
    Begun,
    Busy,
    DeadlinePassed,
    Known,
    LeaseLost,
    NotParked,
    Outcome,
    Parked,
    Recorded,
    Refused,
    RetryScheduled,
    RunClosed,
    RunNotFound,
    StepFailed,
    TimerSet,
)
from kagzi.core.records import HistoryStep, Lease, Payload, RunKey
from kagzi.core.retry import RetryPolicy
from kagzi.core.states import RunStatus, StepKind, StepStatus
from kagzi.v1 import common_pb2, workflow_pb2
from kagzi.v1 import worker_pb2 as pb
from kagzi.wire.common import write_retry
from kagzi.wire.operations import read_operation, write_answer, write_answers

RUN, LEASE = RunKey("default", "r"), Lease(1, 7)
HELD = {"run": RUN, "lease": LEASE}
ERROR = ErrorDetail(message="no", type="ValueError")
ERROR_LETTER = common_pb2.ErrorDetail(
    code=common_pb2.ERROR_CODE_USER, kind=common_pb2.ERROR_KIND_TRANSIENT, message="no", type="ValueError"
)
POLICY = RetryPolicy(maximum_attempts=2)
OUTPUT = common_pb2.Payload(data=b"1")

UNDERSTOOD = [
    (
        pb.Operation(
            begin_step=pb.BeginStepOperation(
                step_id="a#2", name="a", attempt=1, retry_policy=write_retry(POLICY), timeout_ms=5, once=True
            )
        ),
        BeginStep(**HELD, step_id="a#2", name="a", attempt=1, retry=POLICY, timeout_ms=5, once=True),
    ),
    (
        pb.Operation(begin_step=pb.BeginStepOperation(step_id="a", attempt=2)),
        BeginStep(**HELD, step_id="a", name="a", attempt=2),
    ),
    (
        pb.Operation(complete_step=pb.CompleteStepOperation(step_id="a", attempt=1, output=OUTPUT)),
        CompleteStep(**HELD, step_id="a", attempt=1, output=Payload(b"1")),
    ),
    (
        pb.Operation(complete_step=pb.CompleteStepOperation(step_id="a")),
        CompleteStep(**HELD, step_id="a", attempt=0, output=Payload(b"null")),
    ),
    (
        pb.Operation(fail_step=pb.FailStepOperation(step_id="a", attempt=1, error=ERROR_LETTER)),
        FailStep(**HELD, step_id="a", attempt=1, error=ERROR),
    ),
    (
        pb.Operation(sleep=pb.SleepOperation(step_id="s", duration_us=5)),
        BeginSleep(**HELD, step_id="s", name="s", duration_us=5),
    ),
    (
        pb.Operation(sleep=pb.SleepOperation(step_id="s", until_us=9)),
        BeginSleep(**HELD, step_id="s", name="s", until=9),
    ),
    (
        pb.Operation(sleep=pb.SleepOperation(step_id="s")),
        BeginSleep(**HELD, step_id="s", name="s", duration_us=0),
    ),
    (pb.Operation(finish_sleep=pb.FinishSleepOperation(step_id="s")), FinishSleep(**HELD, step_id="s")),
    (pb.Operation(park=pb.ParkOperation(waits=["s"], known_seq=3)), Park(**HELD, waits=("s",), known_seq=3)),
    (pb.Operation(complete_run=pb.CompleteRunOperation(output=OUTPUT)), CompleteRun(**HELD, output=Payload(b"1"))),
    (pb.Operation(fail_run=pb.FailRunOperation(error=ERROR_LETTER)), FailRun(**HELD, error=ERROR)),
    (pb.Operation(cancel_run=pb.CancelRunOperation(error=ERROR_LETTER)), CancelRun(**HELD, error=ERROR)),
    (pb.Operation(release=pb.ReleaseOperation(reason="stop")), ReleaseRun(**HELD, reason="stop")),
]


@pytest.mark.parametrize(("letter", "command"), UNDERSTOOD, ids=lambda value: type(value).__name__)
def test_an_operation_is_a_command(letter: pb.Operation, command: object) -> None:
    assert read_operation(letter, RUN, LEASE) == command


def test_every_kind_is_understood_or_refused_by_name() -> None:
    kinds = {field.name for field in pb.Operation.DESCRIPTOR.oneofs_by_name["kind"].fields}
    understood = {letter.WhichOneof("kind") for letter, _ in UNDERSTOOD}
    later = kinds - understood
    assert later == {
        "wait_signal",
        "start_child",
        "race",
        "patch",
        "set_status",
        "step_heartbeat",
        "continue_as_new",
        "diverged",
    }
    for kind in later:
        letter = pb.Operation(id=1)
        getattr(letter, kind).SetInParent()
        refused = read_operation(letter, RUN, LEASE)
        assert isinstance(refused, Refused)
        assert refused.error.code is ErrorCode.UNIMPLEMENTED
        assert kind in refused.error.message


def test_an_operation_of_a_newer_worker_is_refused() -> None:
    refused = read_operation(pb.Operation(id=1), RUN, LEASE)
    assert isinstance(refused, Refused)
    assert refused.error.code is ErrorCode.UNIMPLEMENTED


# --- answers -----------------------------------------------------------------------------------------------------------

DONE = HistoryStep(step_id="a", kind=StepKind.FUNCTION, status=StepStatus.COMPLETED, begun_seq=2, seq=3, at=40)


def test_plain_answers_of_a_commit_are_packed() -> None:
    response = pb.SessionResponse()
    write_answers(
        response,
        [(11, Recorded(5, 100)), (12, Begun(6, 100, 1)), (13, LeaseLost()), (14, Recorded(9, 100)), (15, Known(DONE))],
        now=100,
    )
    assert [(group.at_us, list(group.ids), list(group.seqs)) for group in response.acknowledged] == [
        (100, [11, 12, 14], [5, 6, 9]),
        (40, [15], [2]),
    ]
    assert [(answer.id, answer.refused.code) for answer in response.answers] == [(13, common_pb2.ERROR_CODE_LEASE_LOST)]


def test_a_hundred_acknowledgements_take_little_room() -> None:
    response = pb.SessionResponse()
    now = 1_700_000_000_000_000
    write_answers(response, [(1_000_000 + place, Recorded(place, now)) for place in range(100)], now)
    assert len(response.SerializeToString()) < 600


def test_what_remains_is_counted_from_now() -> None:
    retry = write_answer(1, RetryScheduled(4, 100, 2, 1_100), now=600).retry
    assert (retry.next_attempt, retry.retry_at_us, retry.remaining_us) == (2, 1_100, 500)
    assert write_answer(1, RetryScheduled(4, 100, 2, 1_100), now=5_000).retry.remaining_us == 0
    timer = write_answer(1, TimerSet(4, 100, 1_100), now=600).timer
    assert (timer.wake_at_us, timer.remaining_us) == (1_100, 500)


def test_a_timer_that_is_not_recorded_as_over_has_time_left() -> None:
    assert write_answer(1, TimerSet(4, 100, 1_100), now=5_000).timer.remaining_us > 0


def test_answers_that_say_more() -> None:
    exhausted = write_answer(1, StepFailed(4, 100, 3, ERROR), now=100)
    assert (exhausted.seq, exhausted.exhausted.attempts, exhausted.exhausted.error.message) == (4, 3, "no")
    assert write_answer(1, Parked(100, 500), now=100).parked.wake_at_us == 500
    assert write_answer(1, Parked(100, None), now=100).WhichOneof("kind") == "parked"
    assert write_answer(1, NotParked(100, (DONE,)), now=100).not_parked.results[0].seq == 3
    assert write_answer(1, NotParked(100, ()), now=100).WhichOneof("kind") == "not_parked"
    closed = write_answer(1, RunClosed(8, 100, RunStatus.SLEEPING, 900), now=100).closed
    assert (closed.status, closed.retry_at_us) == (workflow_pb2.WORKFLOW_STATUS_SLEEPING, 900)


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (LeaseLost(), common_pb2.ERROR_CODE_LEASE_LOST),
        (RunNotFound(), common_pb2.ERROR_CODE_NOT_FOUND),
        (DeadlinePassed(), common_pb2.ERROR_CODE_TIMEOUT),
        (Busy(), common_pb2.ERROR_CODE_UNAVAILABLE),
        (
            Refused(ErrorDetail(code=ErrorCode.PRECONDITION_FAILED, kind=ErrorKind.PERMANENT, message="no")),
            common_pb2.ERROR_CODE_PRECONDITION_FAILED,
        ),
    ],
)
def test_refusals_carry_a_code(outcome: Outcome, code: int) -> None:
    answer = write_answer(5, outcome, now=100)
    assert (answer.id, answer.refused.code) == (5, code)
    assert answer.refused.message
