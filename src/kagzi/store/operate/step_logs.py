"""Log lines of steps."""

from collections.abc import Sequence

from ...core.ids import is_uuid
from ...core.pages.cursor import Cursor
from ...core.records import Rows, RunKey
from ...core.run.step_logs import StepLog, StepLogLines, appended, read_lines, write_lines
from ..rows import Row
from ..sessions import Purpose, Session, Sessions, verb


def _log(row: Row) -> StepLog:
    return StepLog(row["step_id"], read_lines(row["lines"]), row["dropped"])


async def _add(session: Session, added: Sequence[StepLogLines]) -> None:
    known = [each for each in added if is_uuid(each.run.run_id)]
    steps = [
        {"namespace": each.run.namespace, "run_id": each.run.run_id, "step_id": each.step_id}
        for each in sorted(known, key=lambda each: (each.run.run_id, each.step_id))
    ]
    async with session.transaction():
        rows = await session.read("lock_step_logs", steps=steps)
        before = {(row["run_id"], row["step_id"]): _log(row) for row in rows}
        after = [(each.run, appended(before.get((each.run.run_id, each.step_id)), each)) for each in known]
        logs = [
            {
                "namespace": run.namespace,
                "run_id": run.run_id,
                "step_id": log.step_id,
                "lines": write_lines(log.lines),
                "dropped": log.dropped,
            }
            for run, log in after
        ]
        await session.read("put_step_logs", logs=logs)


async def _list(
    session: Session, run: RunKey, *, step_id: str | None, cursor: Cursor | None, limit: int
) -> Rows[StepLog] | None:
    if not is_uuid(run.run_id):
        return None
    if not await session.read("has_run", namespace=run.namespace, run_id=run.run_id):
        return None
    after = "" if cursor is None else cursor.id
    rows, more = await session.page("list_step_logs", limit, run_id=run.run_id, step_id=step_id, after=after)
    return Rows(tuple(map(_log, rows)), has_more=more)


class StepLogs(Sessions):
    """Implements `store.protocol.StepLogVerbs`."""

    add_step_logs = verb(Purpose.CHORE, _add)
    list_step_logs = verb(Purpose.LOOKUP, _list)
