"""The workflows of a worker, by type and version."""

from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeAlias

from ...core.errors import InvalidArgument
from ...core.records import Served
from ...core.workflow_types.names import canonical_type
from ..workflow.lint import warn_about
from ..workflow.workflow import Workflow, as_workflow

AnyWorkflow: TypeAlias = Workflow[Any, Any] | tuple[str, Callable[..., Coroutine[Any, Any, Any]]]


class Registry:
    """What a worker can execute. A type and version may be given once; each input and output must have a JSON form."""

    def __init__(self, workflows: Iterable[AnyWorkflow] = ()) -> None:
        self._workflows: dict[Served, Workflow[Any, Any]] = {}
        for each in workflows:
            self.add(each)

    def add(self, any_workflow: AnyWorkflow) -> None:
        """Raises InvalidArgument for what is not a workflow, for one that is here already, and for types without JSON
        form. Warns (KagziWarning) of calls in its code that replay would not survive."""
        workflow = as_workflow(any_workflow)
        key = Served(workflow.name, workflow.version)
        present = self._workflows.get(key)
        if present is not None:
            again = "the same workflow twice" if present is workflow else f"{_where(present)} and {_where(workflow)}"
            raise InvalidArgument(
                f"workflow {key.workflow_type!r} version {key.version} is given more than once: {again}. "
                f"Give one of them another name or version.",
                field="workflows",
            )
        workflow.check()
        warn_about(workflow.fn)
        self._workflows[key] = workflow

    def find(self, workflow_type: str, version: str) -> Workflow[Any, Any] | None:
        return self._workflows.get(Served(canonical_type(workflow_type), version))

    @property
    def served(self) -> tuple[Served, ...]:
        return tuple(self._workflows)

    def __len__(self) -> int:
        return len(self._workflows)

    def __iter__(self) -> Iterator[Workflow[Any, Any]]:
        return iter(self._workflows.values())


def _where(workflow: Workflow[Any, Any]) -> str:
    fn = workflow.fn
    return f"{getattr(fn, '__module__', '?')}.{getattr(fn, '__qualname__', repr(fn))}"
