"""Log lines of steps: what `run.logs()` returns."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ...core.public import exported
from ...core.records import ENCODING, Payload, RunKey, is_encoded
from ...core.times import to_datetime
from ...v1 import worker_pb2 as pb
from ...v1.admin_pb2 import ListStepLogsRequest
from ..workflow.codec import codec_for, read_payload

if TYPE_CHECKING:
    from .backend import Backend


@exported
@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that the body of a step logged."""

    step: str  #: the step id
    at: datetime  #: when it was logged, by the worker's clock
    attempt: int  #: the attempt that logged it
    level: str  #: "INFO", "WARNING" ...
    text: str  #: the message, and the traceback if it was logged with one


@exported
@dataclass(frozen=True, slots=True)
class StepLogs:
    """The last lines that the steps of a run logged: at most 200 or 64 KiB of each step."""

    lines: tuple[LogLine, ...]  #: in the order of their times
    dropped: int = 0  #: lines that were logged but not kept


async def list_logs(backend: "Backend", run: RunKey, step_id: str) -> StepLogs:
    """The lines of one step, or of all steps of the run."""
    request = ListStepLogsRequest(namespace_id=run.namespace, run_id=run.run_id, step_id=step_id)
    rows = backend.rows(lambda link: link.admin.ListStepLogs, request, lambda page: page.logs)
    return _read_logs([log async for log in rows])


def _read_logs(messages: "list[pb.StepLog]") -> StepLogs:
    lines = [_read_line(log.step_id, line) for log in messages for line in log.lines]
    return StepLogs(tuple(sorted(lines, key=lambda line: line.at)), sum(log.dropped for log in messages))


def _read_line(step_id: str, line: pb.StepLogLine) -> LogLine:
    metadata = dict(line.text.metadata)
    if is_encoded(metadata):
        text = f"[encoded: {metadata[ENCODING]}, {len(line.text.data)} bytes]"
    else:
        text = read_payload(codec_for(str), Payload(line.text.data), what=f"log line of step {step_id!r}")
    return LogLine(step_id, to_datetime(line.at_us), line.attempt, line.level, text)
