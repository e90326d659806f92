"""Continue as new: creates the successor of a run, with a new history."""

from ....core.run.commands import ContinueAsNew
from ....core.run.state import RunState
from ....core.schedules.scheduled_time import with_scheduled_time_of
from ....core.states import KindCode
from ...rows import read_labels
from .fast_path import WritePlan


def create_successor(plan: WritePlan, run: RunState, command: ContinueAsNew) -> None:
    """`run` has just ended."""
    database, now, new_run_id = plan.database, plan.now, command.new_run_id
    ids = {"run_id": run.run.run_id, "namespace": run.run.namespace, "new_run_id": new_run_id, "now": now}
    options = {"version": command.version, "watched": run.watched, "paused": run.successor_paused}
    database.run("insert_successor", ids | options)
    database.run("copy_labels", {"run_id": new_run_id, "now": now})
    if command.context is None:
        database.run("copy_context", ids)
    else:
        row = database.row("context_metadata", {"run_id": run.run.run_id})
        metadata = read_labels(row[0]) if row else None
        plan.add_payload(new_run_id, KindCode.CONTEXT, with_scheduled_time_of(command.context, metadata))
    plan.add_payload(new_run_id, KindCode.INPUT, command.input)
    plan.flush()
    database.run("copy_state", ids)
    if moved := database.run("move_signals", ids):
        database.run("count_unread", (-moved, run.run.run_id))
    if run.watched:  # whatever waits for the old run now waits for the new one
        for parent_run_id, step_id in database.rows("waiting_steps_of", ids):
            database.run("follow_child", ids | {"parent_run_id": parent_run_id, "step_id": step_id})
        database.run("move_links", ids)
        database.run("move_blocked", ids)
        database.run("unwatch_run", (run.run.run_id,))
