"""A run that goes on as another, with a new history."""

from ...core.commands import ContinueAsNew
from ...core.outcomes import Outcome, RunClosed
from ...core.states import KindCode, RunStatus
from .attempts import being_cancelled
from .closing import RunState
from .fences import Fence
from .wave import Wave


def continue_as_new(wave: Wave, command: ContinueAsNew, fence: Fence, run: RunState) -> Outcome:
    if fence.cancelling:
        return being_cancelled(wave, fence)
    database, now, new_run_id = wave.database, wave.now, command.new_run_id
    seq = fence.next_result()
    wave.let_go(fence)
    wave.flush()
    ids = {"run_id": fence.run_id, "new_run_id": new_run_id, "now": now}
    database.run("hand_over_run", ids | {"lease": fence.lease, "nonce": fence.nonce, "seq": seq})
    database.run(
        "insert_successor", ids | {"version": command.version, "watched": run.watched, "paused": run.pause_requested}
    )
    database.run("copy_labels", {"run_id": new_run_id, "now": now})
    database.run("copy_context", ids)
    wave.add_payload(new_run_id, KindCode.INPUT, command.input, 0)
    wave.flush()
    database.run("move_signals", {"run_id": fence.run_id, "new_run_id": new_run_id})
    if run.watched:
        _follow(wave, fence, new_run_id)
    if run.has_children:
        database.run("cascade_due", (fence.run_id,))
    return RunClosed(seq, now, RunStatus.COMPLETED, continued_as=new_run_id, has_children=bool(run.has_children))


def _follow(wave: Wave, fence: Fence, new_run_id: str) -> None:
    """Whoever waits for the old run, or begins after it, waits for the new one."""
    ids = {"run_id": fence.run_id, "namespace": fence.namespace, "new_run_id": new_run_id}
    for parent_run_id, step_id in wave.database.rows("waiting_steps_of", ids):
        wave.database.run("follow_child", ids | {"parent_run_id": parent_run_id, "step_id": step_id})
    wave.database.run("move_links", ids)
    wave.database.run("move_blocked", ids)
