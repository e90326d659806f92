"""Commands that no store can record, whatever the state of their run."""

from ..error_details import ErrorCode
from ..ids import is_uuid
from ..text.storable import unstorable_field
from .commands import Command, ContinueAsNew, StartChild, StartRun
from .outcomes import Outcome, RunNotFound
from .refusals import refused, unstorable


def fault_of(command: Command) -> Outcome | None:
    """The refusal of such a command; None if it can be recorded."""
    if not is_uuid(command.run.run_id):
        return _not_a_uuid() if isinstance(command, StartRun) else RunNotFound()
    named = command.new_run_id if isinstance(command, ContinueAsNew) else ""
    named = command.start.run.run_id if isinstance(command, StartChild) else named
    if named and not is_uuid(named):
        return _not_a_uuid()
    field = unstorable_field(command)
    return None if field is None else unstorable(field)


def _not_a_uuid() -> Outcome:
    message = "the run_id of the new run is not a UUID in its canonical form: 36 characters, lower case."
    return refused(ErrorCode.INVALID_ARGUMENT, message, subject="field", subject_id="run_id")
