"""Messages for administrators: versions of workflow types, figures per minute, API keys and the audit."""

from ..core.keys.audit import AuditEntry
from ..core.keys.keys import KeyRecord
from ..core.stats import StatsBucket
from ..core.times import US_PER_MS
from ..core.workflow_types.versions import VersionRecord
from ..v1 import admin_pb2 as pb
from ..v1 import key_pb2
from .fields import writer

write_version = writer(pb.WorkflowVersion, VersionRecord)

write_bucket = writer(
    pb.StatsBucket,
    StatsBucket,
    unsent=("p50_us", "p95_us"),
    p50_ms=lambda bucket: None if bucket.p50_us is None else bucket.p50_us / US_PER_MS,
    p95_ms=lambda bucket: None if bucket.p95_us is None else bucket.p95_us / US_PER_MS,
)

write_key = writer(
    key_pb2.Key, KeyRecord, unsent=("request_id",), scopes=lambda key: [scope.value for scope in key.scopes]
)
write_audit = writer(key_pb2.AuditEntry, AuditEntry)
