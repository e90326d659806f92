"""ctx.changed: new code for runs that have not reached it yet."""

from ..execution.ledger import PATCH
from ..execution.run_execution import RunExecution
from ..execution.scopes import Scope


def changed(run: RunExecution, scope: Scope, change: str) -> bool:
    """True if the run has recorded the change, or records it now because it reaches this point for the first time."""
    step_id = scope.allot(f"changed:{change}")
    if run.take(step_id, PATCH) is not None:
        return True
    if run.ledger.outstanding or run.ledger.has_more_in(scope.prefix):
        # The run passed this point before the change was deployed. `outstanding` matters even if this scope has no
        # further records: code that waited for the scope has already continued.
        return False
    if run.live:
        run.ledger.steps_count += 1  # there is room for it when there is none for steps: a replay could not tell
        patch = run.claim.port.announce().patch
        patch.step_id = step_id
        patch.name = change
    return True
