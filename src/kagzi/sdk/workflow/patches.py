"""ctx.changed and ctx.continue_as_new: how a workflow's code, and the run itself, become new."""

from typing import TYPE_CHECKING

from ...core.records import Payload
from ..execution.ledger import PATCH
from ..execution.scopes import Scope
from ..execution.state import State

if TYPE_CHECKING:
    from ..execution.run_execution import Run


class ContinuedAsNew(BaseException):
    """Ends the function: the run goes on as a new one. Not an Exception: `except Exception` must not see it."""

    def __init__(self, input: Payload, version: str) -> None:
        super().__init__("the run continues as a new one")
        self.input = input
        self.version = version


def changed(run: "Run", scope: Scope, change: str) -> bool:
    """True where the run has recorded the change, or records it now because it has never been here before."""
    step_id = scope.allot(f"changed:{change}")
    if run.take(step_id, PATCH) is not None:
        return True
    if run.ledger.outstanding or run.ledger.has_more_in(scope.prefix):
        # The run passed this point before the change was there. It may have done so also where this scope has no more to come: what
        # waits for the scope has gone on.
        return False
    if run.state in (State.RUNNING, State.PARKING):
        run.count_step()
        letter = run.port.announce().patch
        letter.step_id = step_id
        letter.name = change
    return True
