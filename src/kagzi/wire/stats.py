"""Figures by the minute."""

from ..core.stats import StatsBucket
from ..core.times import US_PER_MS
from ..v1 import admin_pb2 as pb
from .common import read_time, write_time


def write_bucket(bucket: StatsBucket) -> pb.StatsBucket:
    return pb.StatsBucket(
        minute=write_time(bucket.minute),
        workflow_type=bucket.workflow_type,
        started=bucket.started,
        completed=bucket.completed,
        failed=bucket.failed,
        cancelled=bucket.cancelled,
        p50_ms=None if bucket.p50_us is None else bucket.p50_us / US_PER_MS,
        p95_ms=None if bucket.p95_us is None else bucket.p95_us / US_PER_MS,
    )


def read_bucket(message: pb.StatsBucket) -> StatsBucket:
    return StatsBucket(
        minute=read_time(message.minute),
        workflow_type=message.workflow_type,
        started=message.started,
        completed=message.completed,
        failed=message.failed,
        cancelled=message.cancelled,
        p50_us=round(message.p50_ms * US_PER_MS) if message.HasField("p50_ms") else None,
        p95_us=round(message.p95_ms * US_PER_MS) if message.HasField("p95_ms") else None,
    )
