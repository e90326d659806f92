"""Versions of workflow types."""

from collections.abc import Sequence

import msgspec

from ....core import limits
from ....core.pages.cursor import Cursor
from ....core.records import Rows
from ....core.times import Timestamp
from ....core.workflow_types.versions import VersionChange, VersionMark, VersionRecord, check_change
from ..connection.connection import Row, Session
from ..connection.connections import Links
from ..run.pages import read_page


class VersionDesk(Links):
    """Keeps `store.protocol.VersionVerbs`."""

    async def versions_of(self, namespace: str, workflow_types: Sequence[str]) -> Sequence[VersionMark]:
        async with self._readers.use(confirm=False) as session:
            rows = await session.read(
                "versions_of", namespace=namespace, workflow_types=list(workflow_types), most_versions=limits.VERSIONS
            )
        return [_mark(row) for row in rows]

    async def change_version(
        self, namespace: str, workflow_type: str, version: str, change: VersionChange
    ) -> Sequence[VersionMark]:
        async with self._questions.use() as session:
            await _change(session, namespace, workflow_type, version, change)
        return await self.versions_of(namespace, (workflow_type,))

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
        newer = cursor is not None and cursor.direction == "prev"
        cursor_type, cursor_version = (
            (None, None) if cursor is None else msgspec.json.decode(cursor.id, type=tuple[str, str])
        )
        async with self._scan(namespace) as session:
            rows, more = await read_page(
                session,
                "list_versions_newer" if newer else "list_versions_older",
                limit,
                namespace=namespace,
                workflow_type=workflow_type,
                version=version,
                cursor_at=None if cursor is None else cursor.at,
                cursor_type=cursor_type,
                cursor_version=cursor_version,
                limit=limit + 1,
                count_cap=count_cap,
                alive_since=alive_since,
            )
        records = [_record(row) for row in rows]
        if newer:
            records.reverse()
        return Rows(tuple(records), has_more=more)


async def _change(session: Session, namespace: str, workflow_type: str, version: str, change: VersionChange) -> None:
    async with session.transaction():
        marks = [
            _mark(row) for row in await session.read("lock_versions", namespace=namespace, workflow_type=workflow_type)
        ]
        check_change(marks, workflow_type, version, change)
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


def _mark(row: Row) -> VersionMark:
    return VersionMark(row["workflow_type"], row["version"], row["deprecated"], row["is_default"])


def _record(row: Row) -> VersionRecord:
    return VersionRecord(
        workflow_type=row["workflow_type"],
        version=row["version"],
        first_seen_at=row["first_seen_at"],
        deprecated=row["deprecated"],
        is_set=row["is_default"],
        open_runs=row["open_runs"],
        open_is_capped=row["open_is_capped"],
        workers=row["workers"],
    )
