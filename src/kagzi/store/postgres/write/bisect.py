"""Which command a failed statement fails for, told by looking at the commands."""

from ....core.ids import is_uuid
from ....core.run.commands import Command, ContinueAsNew, StartChild, StartRun
from ....core.run.outcomes import Outcome, RunNotFound
from ....core.run.refusals import unstorable
from ....core.text_validation import unstorable_field
from ..run.refusals import invalid_argument


def fault_of(command: Command) -> Outcome | None:
    """The refusal of a command that PostgreSQL cannot store; None if it looks sound."""
    if not is_uuid(command.run.run_id):
        if isinstance(command, StartRun):
            return invalid_argument("run_id is not a UUID in its canonical form", field="run_id")
        return RunNotFound()
    named = command.new_run_id if isinstance(command, ContinueAsNew) else ""
    named = command.start.run.run_id if isinstance(command, StartChild) else named
    if named and not is_uuid(named):
        return invalid_argument("the new run's id is not a UUID in its canonical form", field="run_id")
    field = unstorable_field(command)
    return None if field is None else unstorable(field)
