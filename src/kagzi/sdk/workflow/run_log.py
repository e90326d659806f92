"""The logger of a run: `ctx.log`."""

import logging
from collections.abc import MutableMapping
from typing import Any

from ..execution.run_execution import RunExecution
from ..worker.log_context import current_fields, fields_of

_logger = logging.getLogger("kagzi.workflow")


class RunLog(logging.LoggerAdapter[logging.Logger]):
    """The logger of a run, `ctx.log`. Silent while the run is replayed: each message is logged once."""

    def __init__(self, run: RunExecution) -> None:
        self._run = run
        super().__init__(_logger, fields_of(run.task))

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802  the name is logging's
        return not self._run.ledger.replaying and self.logger.isEnabledFor(level)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = {**(self.extra or {}), **current_fields(), **(kwargs.get("extra") or {})}
        return msg, kwargs
