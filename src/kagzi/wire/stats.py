"""Figures by the minute."""

from ..core.stats import StatsBucket
from ..core.times import US_PER_MS
from ..v1 import admin_pb2 as pb
from .fields import writer

write_bucket = writer(
    pb.StatsBucket,
    StatsBucket,
    unsent=("p50_us", "p95_us"),
    p50_ms=lambda bucket: None if bucket.p50_us is None else bucket.p50_us / US_PER_MS,
    p95_ms=lambda bucket: None if bucket.p95_us is None else bucket.p95_us / US_PER_MS,
)
