"""Steps as people see them."""

from ..core.records import StepRecord
from ..v1 import worker_pb2 as pb
from .fields import writer

write_step = writer(
    pb.Step,
    StepRecord,
    names={"attempt": "attempt_number", "details": "heartbeat_details"},
    unsent=("begun_seq",),
)
