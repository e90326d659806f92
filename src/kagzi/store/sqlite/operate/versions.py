"""Versions of workflow types."""

from collections.abc import Sequence

import msgspec

from ....core import limits
from ....core.pages.cursor import Cursor
from ....core.records import Rows
from ....core.times import Timestamp
from ....core.workflow_types.versions import VersionChange, VersionMark, VersionRecord, check_change
from ..connection.connection import Database
from ..connection.connections import Lanes
from ..write.fast_path import Writer

_END = 1 << 62


class VersionDesk(Lanes):
    """Keeps `store.protocol.VersionVerbs`."""

    async def versions_of(self, namespace: str, workflow_types: Sequence[str]) -> Sequence[VersionMark]:
        return await self._read(_versions_of, namespace, workflow_types)

    async def change_version(
        self, namespace: str, workflow_type: str, version: str, change: VersionChange
    ) -> Sequence[VersionMark]:
        return await self._change(_change, namespace, workflow_type, version, change)

    async def list_versions(
        self,
        namespace: str,
        *,
        workflow_type: str | None,
        version: str | None,
        alive_since: Timestamp,
        cursor: Cursor | None,
        limit: int,
        count_cap: int,
    ) -> Rows[VersionRecord]:
        given = {"namespace": namespace, "workflow_type": workflow_type, "version": version}
        return await self._scan(namespace, _list, given, cursor, limit, count_cap=count_cap, alive_since=alive_since)


def _versions_of(database: Database, namespace: str, workflow_types: Sequence[str]) -> list[VersionMark]:
    return [
        VersionMark(found, version, bool(deprecated), bool(is_default))
        for workflow_type in sorted(set(workflow_types))
        for found, version, deprecated, is_default in database.rows(
            "versions_of", (namespace, workflow_type, limits.VERSIONS)
        )
    ]


def _change(
    writer: Writer, namespace: str, workflow_type: str, version: str, change: VersionChange
) -> list[VersionMark]:
    database = writer.database
    check_change(_versions_of(database, namespace, (workflow_type,)), workflow_type, version, change)
    match change:
        case "default" | "no_default":
            database.run("unset_default_version", (namespace, workflow_type))
            if change == "default":
                database.run("set_default_version", (namespace, workflow_type, version))
        case "deprecate" | "restore":
            database.run("deprecate_version", (int(change == "deprecate"), namespace, workflow_type, version))
    return _versions_of(database, namespace, (workflow_type,))


def _list(
    database: Database,
    where: dict[str, str | None],
    cursor: Cursor | None,
    limit: int,
    *,
    count_cap: int,
    alive_since: Timestamp,
) -> Rows[VersionRecord]:
    later = cursor is not None and cursor.direction == "prev"
    after = ("", "") if cursor is None else msgspec.json.decode(cursor.id, type=tuple[str, str])
    given = {
        **where,
        "at": _END if cursor is None else cursor.at,
        "after_type": after[0],
        "after_version": after[1],
        "limit": limit + 1,
    }
    rows, more = database.page("list_newer_versions" if later else "list_older_versions", given, limit)
    namespace = where["namespace"]
    opened = {(t, v): n for t, v, n in database.rows("open_runs_of_versions", (namespace, count_cap))}
    workers = {(t, v): n for t, v, n in database.rows("workers_of_versions", (namespace, alive_since))}
    capped = sum(opened.values()) >= count_cap
    records = [
        VersionRecord(
            workflow_type=row["workflow_type"],
            version=row["version"],
            first_seen_at=row["first_seen_at"],
            deprecated=bool(row["deprecated"]),
            is_set=bool(row["is_default"]),
            open_runs=opened.get((row["workflow_type"], row["version"]), 0),
            open_is_capped=capped,
            workers=workers.get((row["workflow_type"], row["version"]), 0),
        )
        for row in rows
    ]
    if later:
        records.reverse()
    return Rows(tuple(records), more)
