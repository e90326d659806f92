"""Views of steps, and their log lines."""

from collections.abc import Iterable

import msgspec

from ..core.limits import STEP_LOG_LINE_BYTES
from ..core.records import RunKey, StepRecord
from ..core.run.step_logs import LogLine, StepLog, StepLogLines
from ..core.times import LAST_TIME
from ..v1 import worker_pb2 as pb
from .common import write_payload
from .fields import writer

write_step = writer(
    pb.Step,
    StepRecord,
    names={"attempt": "attempt_number", "details": "heartbeat_details"},
)


def read_step_logs(messages: Iterable[pb.StepLog], namespace: str) -> list[StepLogLines]:
    """Log lines from a worker. A line that is not text or has an impossible time is dropped: there is no one to report
    it to."""
    return [_read_log(message, namespace) for message in messages]


def _read_log(message: pb.StepLog, namespace: str) -> StepLogLines:
    lines = [line for line in map(_read_line, message.lines) if line is not None]
    dropped = max(message.dropped, 0) + len(message.lines) - len(lines)
    return StepLogLines(RunKey(namespace, message.run_id), message.step_id, tuple(lines), dropped)


def _read_line(message: pb.StepLogLine) -> LogLine | None:
    if not 0 <= message.at_us <= LAST_TIME:
        return None
    level = message.level[:32].replace("\0", "")
    if message.text.metadata:
        sealed = message.text.data
        if len(sealed) > 2 * STEP_LOG_LINE_BYTES:
            return None
        return LogLine(message.at_us, message.attempt, level, sealed=sealed, metadata=dict(message.text.metadata))
    try:
        text = msgspec.json.decode(message.text.data, type=str)
    except msgspec.MsgspecError:
        return None
    return LogLine(message.at_us, message.attempt, level, text[:STEP_LOG_LINE_BYTES].replace("\0", ""))


def write_step_log(log: StepLog, run_id: str) -> pb.StepLog:
    lines = [
        pb.StepLogLine(at_us=line.at, attempt=line.attempt, level=line.level, text=write_payload(line.payload))
        for line in log.lines
    ]
    return pb.StepLog(run_id=run_id, step_id=log.step_id, lines=lines, dropped=log.dropped)
