"""Events, diagnostics and versions: what is written into a message, sent as bytes and read again is what it was."""

import msgspec
import pytest

from kagzi.core.workers import Diagnostic, WorkerEvent, WorkerEventKind
from kagzi.core.workflow_types.versions import VersionRecord
from kagzi.v1 import admin_pb2, worker_pb2
from kagzi.wire.admin import write_version
from kagzi.wire.requests import write_diagnostics
from kagzi.wire.workers import read_diagnostics, write_worker_event

from .reading import read_version, read_worker_event


@pytest.mark.parametrize("kind", list(WorkerEventKind))
def test_an_event(kind: WorkerEventKind) -> None:
    event = WorkerEvent(worker_id="w", kind=kind, at=1_700_000_000_123_456, detail="ø: a\nb", number=7)
    sent = admin_pb2.WorkerEvent.FromString(write_worker_event(event).SerializeToString())
    assert read_worker_event(sent) == msgspec.structs.replace(event, number=0)  # a number does not concern callers


def test_diagnostics_in_both_messages() -> None:
    diagnostics = [Diagnostic("gil_held", "here"), Diagnostic("loop_blocked", "ø")]
    for kind in (worker_pb2.SessionUpdate, worker_pb2.HeartbeatRequest):
        sent = kind.FromString(kind(diagnostics=write_diagnostics(diagnostics)).SerializeToString())
        assert read_diagnostics(sent) == diagnostics


def test_a_version() -> None:
    record = VersionRecord(
        workflow_type="order",
        version="1.10",
        first_seen_at=1_700_000_000_123_456,
        deprecated=True,
        is_set=True,
        is_default=True,
        open_runs=100_000,
        open_is_capped=True,
        workers=3,
    )
    assert read_version(admin_pb2.WorkflowVersion.FromString(write_version(record).SerializeToString())) == record
