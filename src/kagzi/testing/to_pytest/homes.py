"""Finds where a workflow can be imported from."""

import sys
from typing import Any

from ...core.errors import InvalidArgument
from ...sdk.workflow.workflow import Workflow


def home_of(workflow: Workflow[Any, Any]) -> tuple[str, str]:
    """Module and name, preferably where it is defined. Raises InvalidArgument if no module has it under a name."""
    own = workflow.fn.__module__
    for module in (own, *[name for name in sys.modules if name != own]):
        for name, value in vars(sys.modules[module]).items() if module in sys.modules else ():
            if value is workflow and module != "__main__" and not name.startswith("_"):
                return module, name
    raise InvalidArgument(
        f"workflow {workflow.name!r} has no name in any module that could be imported. Give it one at the top level of "
        f"{own}.",
        field="workflow",
    )
