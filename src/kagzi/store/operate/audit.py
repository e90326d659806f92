"""The audit log of administrative changes."""

import msgspec

from ...core.access import EVERY_NAMESPACE
from ...core.keys.audit import AuditEntry
from ...core.pages.cursor import Cursor
from ...core.records import Rows
from ...core.times import Timestamp
from ..rows import Row, require_storable, write_json
from ..sessions import NIL_ID, Purpose, Session, Sessions, list_page, position, scan, verb


async def note_audit(session: Session, entry: AuditEntry | None) -> None:
    """Runs in the caller's transaction."""
    if entry is not None:
        require_storable(namespace=entry.namespace, subject=entry.subject)
        await session.read("insert_audit", **audit_values(entry))


def audit_values(entry: AuditEntry) -> dict[str, object]:
    values: dict[str, object] = msgspec.structs.asdict(entry)
    return {**values, "details": write_json(entry.details)}


def _read(row: Row) -> AuditEntry:
    return AuditEntry(
        audit_id=row["id"],
        at=row["at"],
        key_id=row["key_id"],
        key_name=row["key_name"],
        action=row["action"],
        namespace=row["namespace"],
        subject=row["subject"],
        details=msgspec.json.decode(row["details"], type=dict[str, str]),
    )


async def _list(
    session: Session, namespace: str, *, since: Timestamp, until: Timestamp, cursor: Cursor | None, limit: int
) -> Rows[AuditEntry]:
    at, last_id = position(cursor, NIL_ID)
    within = {"since": since, "until": until, "cursor_at": at, "cursor_id": last_id}
    if namespace == EVERY_NAMESPACE:
        return await list_page(session, "list_all_audit", _read, cursor, limit, **within)
    return await list_page(session, "list_audit", _read, cursor, limit, namespace=namespace, **within)


async def _forget(session: Session, before: Timestamp, limit: int) -> bool:
    return len(await session.write("forget_audit", before=before, limit=limit)) == limit


class Audit(Sessions):
    """Implements `store.protocol.AuditVerbs`."""

    list_audit = scan(_list)
    forget_audit = verb(Purpose.CHORE, _forget)
