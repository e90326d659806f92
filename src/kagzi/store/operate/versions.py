"""Versions of workflow types."""

from collections.abc import Mapping, Sequence

import msgspec

from ...core import limits
from ...core.effects import NO_EFFECTS, Effects, pending_effects
from ...core.keys.audit import AuditEntry
from ...core.pages.cursor import Cursor
from ...core.records import Rows, Served
from ...core.times import Timestamp
from ...core.workflow_types.schemas import (
    NOTHING_REGISTERED,
    RegisteredSchemas,
    TypeSchemas,
    digest_of,
    read_document,
    write_document,
)
from ...core.workflow_types.type_key import TypeKey
from ...core.workflow_types.versions import BuildReplay, VersionChange, VersionMark, VersionRecord, check_change
from ..rows import Row
from ..sessions import AFTER_ALL, NIL_ID, Purpose, Session, Sessions, first, list_page, scan, verb
from .audit import note_audit


def _mark(row: Row) -> VersionMark:
    return VersionMark(
        row["workflow_type"], row["version"], bool(row["deprecated"]), bool(row["is_default"]), _registered(row)
    )


def _registered(row: Row) -> RegisteredSchemas:
    if row["schemas_digest"] is None:
        return NOTHING_REGISTERED
    return RegisteredSchemas(row["schemas_digest"], row["earlier_digest"] or "", row["schemas_at"])


def _record(row: Row) -> VersionRecord:
    return VersionRecord(
        workflow_type=row["workflow_type"],
        version=row["version"],
        first_seen_at=row["first_seen_at"],
        deprecated=bool(row["deprecated"]),
        is_set=bool(row["is_default"]),
        open_runs=row["open_runs"],
        open_is_capped=bool(row["open_is_capped"]),
        workers=row["workers"],
    )


async def _versions_of(session: Session, namespace: str, workflow_types: Sequence[str]) -> Sequence[VersionMark]:
    rows = await session.read(
        "versions_of", namespace=namespace, workflow_types=list(workflow_types), most_versions=limits.VERSIONS
    )
    return [_mark(row) for row in rows]


async def _change(
    session: Session,
    namespace: str,
    workflow_type: str,
    version: str,
    change: VersionChange,
    *,
    audit: AuditEntry | None = None,
) -> Sequence[VersionMark]:
    async with session.transaction():
        rows = await session.read("lock_versions", namespace=namespace, workflow_type=workflow_type)
        check_change([_mark(row) for row in rows], workflow_type, version, change)
        match change:
            case "default" | "no_default":
                await session.read("unset_default_version", namespace=namespace, workflow_type=workflow_type)
                if change == "default":
                    await session.read(
                        "set_default_version", namespace=namespace, workflow_type=workflow_type, version=version
                    )
            case "deprecate" | "restore":
                await session.read(
                    "deprecate_version",
                    namespace=namespace,
                    workflow_type=workflow_type,
                    version=version,
                    deprecated=change == "deprecate",
                )
        await note_audit(session, audit)
        return await _versions_of(session, namespace, (workflow_type,))


async def _list(
    session: Session,
    namespace: str,
    *,
    workflow_type: str | None,
    version: str | None,
    alive_since: Timestamp,
    cursor: Cursor | None,
    limit: int,
    count_cap: int,
) -> Rows[VersionRecord]:
    last = ("", "") if cursor is None else msgspec.json.decode(cursor.id, type=tuple[str, str])
    return await list_page(
        session,
        "list_versions",
        _record,
        cursor,
        limit,
        namespace=namespace,
        workflow_type=workflow_type,
        version=version,
        cursor_at=AFTER_ALL if cursor is None else cursor.at,
        cursor_type=last[0],
        cursor_version=last[1],
        count_cap=count_cap,
        alive_since=alive_since,
    )


_NOTHING = digest_of(write_document(TypeSchemas()))


async def note_schemas(
    session: Session, namespace: str, schemas: Mapping[Served, TypeSchemas], now: Timestamp
) -> Sequence[Served]:
    """Runs in the transaction of a registration, after its versions are recorded. Returns those whose schemas changed;
    nothing is written for the others."""
    documents = {served: write_document(each) for served, each in schemas.items()}
    digests = {served: digest_of(document) for served, document in documents.items()}
    rows = [
        {"workflow_type": served.workflow_type, "version": served.version, "digest": digest}
        for served, digest in digests.items()
    ]
    changed = await session.read("changed_schemas", namespace=namespace, schemas=rows, nothing=_NOTHING)
    changed_types = [Served(row["workflow_type"], row["version"]) for row in changed]
    for served in changed_types:
        key = {"namespace": namespace, "digest": digests[served], "now": now}
        await session.read("add_schemas", **key, document=documents[served])
        await session.read("set_schemas", **key, workflow_type=served.workflow_type, version=served.version)
    return changed_types


async def _get_schemas(session: Session, namespace: str, digests: Sequence[str]) -> Mapping[str, TypeSchemas]:
    rows = await session.read("get_schemas", namespace=namespace, digests=list(digests))
    return {row["digest"]: read_document(row["document"]) for row in rows}


async def _wake_for_new_builds(
    session: Session, alive_since: Timestamp, now: Timestamp, limit: int
) -> tuple[BuildReplay | None, Effects]:
    async with session.transaction():
        await session.read("note_builds", alive_since=alive_since, nil_id=NIL_ID)
        place = await first(session, "next_replays")
        if place is None:
            return None, NO_EFFECTS
        version = {name: place[name] for name in ("namespace", "workflow_type", "version")}
        after = {"replay_at": place["replay_at"], "replay_run_id": place["replay_run_id"]}
        asleep = await session.read("asleep_after", **version, **after, limit=limit)
        waiting = [{"run_id": row["run_id"]} for row in asleep if row["waits"]]
        woken = await session.read("wake_to_replay", runs=waiting, now=now) if waiting else ()
        more = len(asleep) == limit
        last = (asleep[-1]["created_at"], asleep[-1]["run_id"]) if more else (None, None)
        await session.read("continue_replays", **version, replay_at=last[0], replay_run_id=last[1])
    key = TypeKey(version["namespace"], version["workflow_type"])
    return BuildReplay(key, version["version"], len(woken), more), pending_effects([key] if woken else ())


class Versions(Sessions):
    """Implements `store.protocol.VersionVerbs`."""

    versions_of = verb(Purpose.READ, _versions_of)
    get_schemas = verb(Purpose.READ, _get_schemas)
    change_version = verb(Purpose.WRITE, _change)
    wake_for_new_builds = verb(Purpose.WRITE, _wake_for_new_builds)
    list_versions = scan(_list)
