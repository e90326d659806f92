"""Whether one more run may be started in a namespace, according to its row."""

from ....core.records import NamespaceRecord
from ....core.run.outcomes import Refused
from ....core.run.refusals import starts_too_fast, too_much_stored
from ....core.times import Timestamp
from ....core.workflow_types.queues import Rate
from .fast_path import Writer


def refuse_start(namespace: NamespaceRecord, now: Timestamp) -> Refused | None:
    stored, limit = namespace.stored_bytes, namespace.stored_bytes_limit
    if stored is not None and limit is not None and stored > limit:
        return too_much_stored(namespace.namespace, stored, limit)
    rate = _rate(namespace)
    if rate is None or rate.allows(now):
        return None
    return starts_too_fast(namespace.namespace, rate.per_second, rate.allows_at() - now)


def note_start(writer: Writer, namespace: NamespaceRecord, now: Timestamp) -> None:
    rate = _rate(namespace)
    if rate is not None:
        writer.namespaces.note_start(namespace, rate.after_start(now).due_at)


def _rate(namespace: NamespaceRecord) -> Rate | None:
    per_second = namespace.starts_per_second_limit
    return None if per_second is None else Rate(per_second, namespace.next_start_at)
