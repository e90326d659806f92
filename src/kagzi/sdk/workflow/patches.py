"""ctx.changed: new code for runs that have not passed it yet."""

from ..execution.calls.steps import count_step
from ..execution.ledger import PATCH
from ..execution.run_execution import RunExecution
from ..execution.scopes import Scope


def changed(run: RunExecution, scope: Scope, change: str) -> bool:
    """True where the run has recorded the change, or records it now because it has never been here before."""
    step_id = scope.allot(f"changed:{change}")
    if run.take(step_id, PATCH) is not None:
        return True
    if run.ledger.outstanding or run.ledger.has_more_in(scope.prefix):
        # The run passed this point before the change was there. It may have done so also where this scope has no more
        # to come: what waits for the scope has gone on.
        return False
    if run.live:
        count_step(run)
        patch = run.claim.port.announce().patch
        patch.step_id = step_id
        patch.name = change
    return True
