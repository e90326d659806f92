"""ctx.continue_as_new: the end of the function, unless an earlier execution of it was refused here."""

from typing import NoReturn

from ....core.checks.refused_requests import error_of
from ....core.records import Payload
from ....v1 import worker_pb2 as pb
from ....wire.common import read_error
from ...workflow.failures import STEP_ATTRIBUTE
from ..ending import ContinuedAsNew
from ..ledger import FUNCTION
from ..run_execution import RunExecution
from ..scopes import Scope


def continue_as_new(run: RunExecution, scope: Scope, payload: Payload, version: str) -> NoReturn:
    step_id = scope.allot("continue_as_new")
    refused = run.take(step_id, FUNCTION)
    if refused is not None and refused.status == pb.STEP_STATUS_FAILED:
        run.delivery.reached()
        error = error_of(read_error(refused.error))
        setattr(error, STEP_ATTRIBUTE, step_id)
        raise error
    raise ContinuedAsNew(payload, version, step_id)
