"""Errors cross the wire in one place: Kagzi's own whole, anything else as a number."""

from datetime import timedelta

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from kagzi.core import errors
from kagzi.core.error_details import ErrorKind
from kagzi.core.errors import KagziError
from kagzi.wire.status import DETAILS_KEY, RpcStatus, from_rpc_error, is_incident, to_status


class FailedCall(grpc.RpcError):
    def __init__(self, code: grpc.StatusCode, details: str, metadata: object = ()) -> None:
        super().__init__()
        self._parts = (code, details, metadata)

    def code(self) -> grpc.StatusCode:
        return self._parts[0]

    def details(self) -> str:
        return self._parts[1]

    def trailing_metadata(self) -> object:
        return self._parts[2]


def arrived(status: RpcStatus) -> KagziError:
    return from_rpc_error(FailedCall(*status))


STATUSES = [
    (errors.InvalidArgument("bad", field="name"), grpc.StatusCode.INVALID_ARGUMENT),
    (errors.not_found("run", "r1"), grpc.StatusCode.NOT_FOUND),
    (errors.AlreadyExists("taken"), grpc.StatusCode.ALREADY_EXISTS),
    (errors.PreconditionFailed("not now"), grpc.StatusCode.FAILED_PRECONDITION),
    (errors.PermissionDenied("no"), grpc.StatusCode.PERMISSION_DENIED),
    (
        errors.ResourceExhausted("full", metadata={"limit": "open_runs"}, retry_after=timedelta(seconds=2)),
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    ),
    (errors.LeaseLost("gone", subject="run", subject_id="r1"), grpc.StatusCode.ABORTED),
    (errors.Unimplemented("later"), grpc.StatusCode.UNIMPLEMENTED),
    (errors.DeadlinePassed("too late", subject="run", subject_id="r1"), grpc.StatusCode.DEADLINE_EXCEEDED),
    (errors.CancelRequested("stop", subject="run", subject_id="r1"), grpc.StatusCode.FAILED_PRECONDITION),
]


@pytest.mark.parametrize(("error", "code"), STATUSES, ids=lambda value: type(value).__name__)
def test_an_error_arrives_as_it_was_raised(error: KagziError, code: grpc.StatusCode) -> None:
    status = to_status(error)
    assert status.code is code
    back = arrived(status)
    assert type(back) is type(error)
    assert (back.message, back.metadata, back.retry_after, back.kind) == (
        error.message,
        error.metadata,
        error.retry_after,
        error.kind,
    )
    assert getattr(back, "field", None) == getattr(error, "field", None)
    assert getattr(back, "subject_id", None) == getattr(error, "subject_id", None)


def test_a_server_speaks_for_itself_and_not_of_its_database() -> None:
    refusal = arrived(to_status(errors.ServerUnavailable("the server is stopping")))
    assert (type(refusal), refusal.message) == (errors.Unavailable, "the server is stopping")
    status = to_status(errors.Unavailable("db-7.internal:5432/billing refused the connection"))
    assert status.code is grpc.StatusCode.UNAVAILABLE
    assert b"db-7" not in b"".join(value for _, value in status.metadata) + status.details.encode()
    assert isinstance(arrived(status), errors.Unavailable)


def test_other_tools_find_the_standard_details() -> None:
    status = to_status(errors.not_found("run", "r1"))
    rich = rpc_status.from_call(FailedCall(*status))
    assert isinstance(rich, Status)
    info = ErrorInfo()
    assert rich.details[0].Unpack(info)
    assert (info.domain, info.reason) == ("kagzi", "NOT_FOUND")


@pytest.mark.parametrize(
    "error", [ValueError("password=hunter2"), errors.InternalError("hunter2"), KeyError("hunter2"), OSError("hunter2")]
)
def test_an_incident_shows_nothing_but_its_number(error: Exception) -> None:
    assert is_incident(error)
    status = to_status(error, incident="4711")
    assert status.code is grpc.StatusCode.INTERNAL
    assert "4711" in status.details
    assert b"hunter2" not in b"".join(value for _, value in status.metadata) + status.details.encode()
    back = arrived(status)
    assert isinstance(back, errors.InternalError)
    assert back.metadata["incident"] == "4711"


def test_a_long_message_fits_into_the_metadata_of_an_answer() -> None:
    status = to_status(errors.InvalidArgument("ä" * 100_000, field="x" * 5_000, metadata={"k" * 999: "v" * 99_999}))
    assert sum(len(value) for _, value in status.metadata) < 4_000
    assert len(status.details.encode()) <= 1_024


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.UNAVAILABLE, errors.Unavailable),
        (grpc.StatusCode.DEADLINE_EXCEEDED, errors.Unavailable),
        (grpc.StatusCode.CANCELLED, errors.Unavailable),
        (grpc.StatusCode.INTERNAL, errors.Unavailable),
        (grpc.StatusCode.UNKNOWN, errors.Unavailable),
        (grpc.StatusCode.UNIMPLEMENTED, errors.Unimplemented),
        (grpc.StatusCode.UNAUTHENTICATED, errors.Unauthenticated),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, errors.ResourceExhausted),
        (grpc.StatusCode.NOT_FOUND, errors.NotFound),
    ],
)
def test_a_status_without_details_is_translated_by_its_code(code: grpc.StatusCode, kind: type[KagziError]) -> None:
    error = from_rpc_error(FailedCall(code, "what the transport says"))
    assert type(error) is kind
    assert "what the transport says" in error.message


def test_details_that_cannot_be_read_are_passed_over() -> None:
    error = from_rpc_error(FailedCall(grpc.StatusCode.NOT_FOUND, "gone", ((DETAILS_KEY, b"\xff\xff\xff"),)))
    assert isinstance(error, errors.NotFound)
    assert error.kind is ErrorKind.PERMANENT
