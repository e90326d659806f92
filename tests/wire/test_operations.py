"""Operations become commands; outcomes become packed acknowledgements, or answers that say more."""

from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from kagzi.core.error_details import ErrorCode, ErrorDetail, ErrorKind
from kagzi.core.records import HistoryStep, Lease, Payload, RunKey
from kagzi.core.retry.policy import RetryPolicy
from kagzi.core.run.commands import (
    BeatStep,
    BeginSleep,
    BeginStep,
    CancelRun,
    CompleteRun,
    CompleteStep,
    ContinueAsNew,
    DecideRace,
    FailRun,
    FailStep,
    FetchResults,
    FinishSleep,
    Park,
    PauseDiverged,
    RecordPatch,
    RecordStep,
    ReleaseRun,
    SetState,
    SetStatus,
    StartChild,
    StartRun,
    WaitSignal,
)
from kagzi.core.run.outcomes import (
    Begun,
    Busy,
    ChildStarted,
    DeadlinePassed,
    Fetched,
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
    SignalBound,
    StepFailed,
    TimerSet,
)
from kagzi.core.states import RunStatus, StepKind, StepStatus
from kagzi.v1 import common_pb2, workflow_pb2
from kagzi.v1 import worker_pb2 as pb
from kagzi.wire.common import write_retry
from kagzi.wire.operations import read_operation, write_answer, write_answers

RUN, LEASE = RunKey("default", "r"), Lease(1, 7)
LEASED = {"run": RUN, "lease": LEASE}
ERROR = ErrorDetail(message="no", type="ValueError")
ERROR_MESSAGE = common_pb2.ErrorDetail(
    code=common_pb2.ERROR_CODE_USER, kind=common_pb2.ERROR_KIND_TRANSIENT, message="no", type="ValueError"
)
POLICY = RetryPolicy(maximum_attempts=2)
OUTPUT = common_pb2.Payload(data=b"1")
PLACE = {"parent_step_id": "parallel[0]", "parallel_group_id": "parallel"}
NOW = 1_700_000_000_000_000

UNDERSTOOD = [
    (
        pb.Operation(
            begin_step=pb.BeginStepOperation(
                step_id="a#2", name="a", attempt=1, retry_policy=write_retry(POLICY), timeout_ms=5, once=True
            )
        ),
        BeginStep(**LEASED, step_id="a#2", name="a", attempt=1, retry=POLICY, timeout_ms=5, once=True),
    ),
    (
        pb.Operation(begin_step=pb.BeginStepOperation(step_id="a", attempt=2)),
        BeginStep(**LEASED, step_id="a", name="a", attempt=2),
    ),
    (
        pb.Operation(
            record_step=pb.RecordStepOperation(
                step_id="a#2", name="a", attempt=1, retry_policy=write_retry(POLICY), timeout_ms=5, output=OUTPUT
            )
        ),
        RecordStep(**LEASED, step_id="a#2", name="a", retry=POLICY, timeout_ms=5, output=Payload(b"1")),
    ),
    (
        pb.Operation(record_step=pb.RecordStepOperation(step_id="a", attempt=2, input=OUTPUT, cleanup=True, **PLACE)),
        RecordStep(
            **LEASED,
            step_id="a",
            name="a",
            attempt=2,
            input=Payload(b"1"),
            cleanup=True,
            output=Payload(b"null"),
            **PLACE,
        ),
    ),
    (
        pb.Operation(complete_step=pb.CompleteStepOperation(step_id="a", attempt=1, output=OUTPUT)),
        CompleteStep(**LEASED, step_id="a", attempt=1, output=Payload(b"1")),
    ),
    (
        pb.Operation(complete_step=pb.CompleteStepOperation(step_id="a")),
        CompleteStep(**LEASED, step_id="a", attempt=0, output=Payload(b"null")),
    ),
    (
        pb.Operation(fail_step=pb.FailStepOperation(step_id="a", attempt=1, error=ERROR_MESSAGE)),
        FailStep(**LEASED, step_id="a", attempt=1, error=ERROR),
    ),
    (
        pb.Operation(sleep=pb.SleepOperation(step_id="s", duration_us=5)),
        BeginSleep(**LEASED, step_id="s", name="s", duration_us=5),
    ),
    (
        pb.Operation(sleep=pb.SleepOperation(step_id="s", until_us=9)),
        BeginSleep(**LEASED, step_id="s", name="s", until=9),
    ),
    (
        pb.Operation(sleep=pb.SleepOperation(step_id="s")),
        BeginSleep(**LEASED, step_id="s", name="s", duration_us=0),
    ),
    (pb.Operation(finish_sleep=pb.FinishSleepOperation(step_id="s")), FinishSleep(**LEASED, step_id="s")),
    (pb.Operation(park=pb.ParkOperation(waits=["s"], known_seq=3)), Park(**LEASED, waits=("s",), known_seq=3)),
    (pb.Operation(complete_run=pb.CompleteRunOperation(output=OUTPUT)), CompleteRun(**LEASED, output=Payload(b"1"))),
    (pb.Operation(fail_run=pb.FailRunOperation(error=ERROR_MESSAGE)), FailRun(**LEASED, error=ERROR)),
    (pb.Operation(cancel_run=pb.CancelRunOperation(error=ERROR_MESSAGE)), CancelRun(**LEASED, error=ERROR)),
    (pb.Operation(release=pb.ReleaseOperation(reason="stop")), ReleaseRun(**LEASED, reason="stop")),
    (
        pb.Operation(begin_step=pb.BeginStepOperation(step_id="a", attempt=1, cleanup=True)),
        BeginStep(**LEASED, step_id="a", name="a", cleanup=True),
    ),
    (
        pb.Operation(sleep=pb.SleepOperation(step_id="s", duration_us=5, cleanup=True)),
        BeginSleep(**LEASED, step_id="s", name="s", duration_us=5, cleanup=True),
    ),
    (
        pb.Operation(park=pb.ParkOperation(waits=["s"], known_seq=3)),
        Park(**LEASED, waits=("s",), known_seq=3),
    ),
    (
        pb.Operation(fetch_results=pb.FetchResultsOperation(waits=["s"], known_seq=3)),
        FetchResults(**LEASED, waits=("s",), known_seq=3),
    ),
    (
        pb.Operation(wait_signal=pb.WaitSignalOperation(step_id="ok#2", signal_name="ok", timeout_us=0, **PLACE)),
        WaitSignal(**LEASED, step_id="ok#2", signal_name="ok", timeout_us=0, **PLACE),
    ),
    (
        pb.Operation(wait_signal=pb.WaitSignalOperation(step_id="ok", signal_name="ok", cleanup=True)),
        WaitSignal(**LEASED, step_id="ok", signal_name="ok", timeout_us=None, cleanup=True),
    ),
    (
        pb.Operation(
            start_child=pb.StartChildOperation(
                step_id="bill#2",
                name="bill",
                start=workflow_pb2.StartWorkflowRequest(
                    workflow_type="bill",
                    workflow_id="b-1",
                    input=OUTPUT,
                    delay=Duration(seconds=1),
                    timeout=Duration(seconds=5),
                    version="2",
                ),
                on_close=pb.PARENT_CLOSE_POLICY_ABANDON,
                attach=True,
                **PLACE,
            )
        ),
        StartChild(
            **LEASED,
            step_id="bill#2",
            name="bill",
            start=StartRun(
                run=RunKey("default", ""),
                workflow_id="b-1",
                workflow_type="bill",
                request_id="",
                input=Payload(b"1"),
                version="2",
                start_at=NOW + 1_000_000,
                deadline_at=NOW + 5_000_000,
                on_conflict="fail",
            ),
            on_close="abandon",
            attach=True,
            **PLACE,
        ),
    ),
    (
        pb.Operation(race=pb.RaceOperation(step_id="race", winner="a", losers=["b", "c"])),
        DecideRace(**LEASED, step_id="race", name="race", winner="a", losers=("b", "c")),
    ),
    (
        pb.Operation(patch=pb.PatchOperation(step_id="new-tax")),
        RecordPatch(**LEASED, step_id="new-tax", name="new-tax"),
    ),
    (
        pb.Operation(set_status=pb.SetStatusOperation(text="half", progress=0.0)),
        SetStatus(**LEASED, text="half", progress=0.0),
    ),
    (pb.Operation(set_status=pb.SetStatusOperation(text="half")), SetStatus(**LEASED, text="half", progress=None)),
    (pb.Operation(set_state=pb.SetStateOperation(state=OUTPUT)), SetState(**LEASED, state=Payload(b"1"))),
    (
        pb.Operation(step_heartbeat=pb.StepHeartbeatOperation(step_id="a", attempt=2, details=OUTPUT)),
        BeatStep(**LEASED, step_id="a", attempt=2, details=Payload(b"1")),
    ),
    (
        pb.Operation(continue_as_new=pb.ContinueAsNewOperation(input=OUTPUT)),
        ContinueAsNew(**LEASED, new_run_id="", input=Payload(b"1")),
    ),
    (
        pb.Operation(diverged=pb.DivergedOperation(problem=ERROR_MESSAGE, build_id="b1")),
        PauseDiverged(**LEASED, problem=ERROR, build_id="b1"),
    ),
]


@pytest.mark.parametrize(("message", "command"), UNDERSTOOD, ids=lambda value: type(value).__name__)
def test_an_operation_is_a_command(message: pb.Operation, command: object) -> None:
    assert read_operation(message, RUN, LEASE, NOW) == command


def test_every_kind_is_understood() -> None:
    kinds = {field.name for field in pb.Operation.DESCRIPTOR.oneofs_by_name["kind"].fields}
    assert kinds == {message.WhichOneof("kind") for message, _ in UNDERSTOOD}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"namespace_id": "elsewhere"}, "namespace_id"),
        ({"on_conflict": workflow_pb2.ON_CONFLICT_REPLACE}, "on_conflict"),
        ({"delay": Duration(seconds=1), "start_at": Timestamp(seconds=1)}, "delay"),
    ],
)
def test_a_child_that_cannot_be_is_to_be_recorded_as_refused_and_the_field_named(
    fields: dict[str, Any], field: str
) -> None:
    start = workflow_pb2.StartWorkflowRequest(workflow_type="bill", **fields)
    message = pb.Operation(id=1, start_child=pb.StartChildOperation(step_id="bill", start=start))
    child = read_operation(message, RUN, LEASE, NOW)
    assert isinstance(child, StartChild)
    assert child.refusal is not None
    assert (child.refusal.code, child.refusal.subject_id) == (ErrorCode.INVALID_ARGUMENT, field)


def test_an_operation_of_a_newer_worker_is_refused() -> None:
    refused = read_operation(pb.Operation(id=1), RUN, LEASE)
    assert isinstance(refused, Refused)
    assert refused.error.code is ErrorCode.UNIMPLEMENTED


# --- answers ----------------------------------------------------------------------------------------------------------

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


def test_a_hundred_acknowledgements_take_few_bytes() -> None:
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
    fetched = write_answer(1, Fetched(100, (DONE,), more=True), now=100).fetched
    assert (fetched.results[0].seq, fetched.more) == (3, True)
    assert write_answer(1, NotParked(100, (DONE,)), now=100).not_parked.results[0].seq == 3
    assert write_answer(1, NotParked(100, ()), now=100).WhichOneof("kind") == "not_parked"
    closed = write_answer(1, RunClosed(8, 100, RunStatus.SLEEPING, 900), now=100).closed
    assert (closed.status, closed.retry_at_us) == (workflow_pb2.WORKFLOW_STATUS_SLEEPING, 900)
    continued = write_answer(1, RunClosed(8, 100, RunStatus.COMPLETED, continued_as="next"), now=100).closed
    assert continued.continued_as == "next"
    signal = write_answer(1, SignalBound(5, 100, Payload(b"1")), now=100)
    assert (signal.seq, signal.signal.payload.data) == (5, b"1")
    child = write_answer(1, ChildStarted(5, 100, "c1", created=False, status=RunStatus.RUNNING), now=100)
    assert (child.seq, child.child.child_run_id, child.child.already_exists) == (5, "c1", True)


def test_a_wait_without_end_is_a_timer_without_time() -> None:
    answer = write_answer(1, TimerSet(4, 100, None), now=100)
    assert answer.WhichOneof("kind") == "timer"
    assert (answer.seq, answer.timer.wake_at_us, answer.timer.remaining_us) == (4, 0, 0)


def test_a_repeat_of_what_has_a_result_is_answered_with_it() -> None:
    def known(kind: StepKind, status: StepStatus = StepStatus.COMPLETED, **fields: Any) -> pb.OperationAnswer:
        step = HistoryStep(step_id="a", kind=kind, status=status, begun_seq=2, seq=7, at=40, **fields)
        response = pb.SessionResponse()
        write_answers(response, [(9, Known(step))], now=100)
        assert not response.acknowledged
        return response.answers[0]

    bound = known(StepKind.SIGNAL, output=Payload(b"1"))
    assert (bound.id, bound.seq, bound.signal.payload.data) == (9, 7, b"1")
    timed_out = known(StepKind.SIGNAL, StepStatus.FAILED, error=ERROR)
    assert (timed_out.seq, timed_out.exhausted.error.message) == (7, "no")
    child = known(StepKind.CHILD, child_run_id="c1")
    assert (child.seq, child.child.child_run_id) == (2, "c1")
    assert known(StepKind.RACE).seq == 7


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
