"""The workflows of a worker, by type and version, and its options. Labels and schedules are checked by modules of the
client, which most workers need not load."""

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ...core import limits
from ...core.errors import InvalidArgument
from ...core.records import Served
from ...core.workflow_types.names import canonical_type
from ...core.workflow_types.queues import TypeLimitKeywords
from ..execution.calls.arguments import RecordInputs
from ..transport.credentials import Tls
from ..transport.payload_codec import Codec
from ..workflow.retry import Retry
from ..workflow.workflow import Workflow, as_workflow

if TYPE_CHECKING:
    from ..client.operations.schedule_options import DeclaredSchedule

AnyWorkflow: TypeAlias = Workflow[Any, Any] | tuple[str, Callable[..., Coroutine[Any, Any, Any]]]


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The checked options of a worker. `build_id` None: a hash of its source code, computed at the start."""

    address: str | None
    workflows: tuple[AnyWorkflow, ...]
    namespace: str | None
    max_concurrent: int
    retry: Retry | None
    labels: Mapping[str, str]
    hostname: str
    build_id: str | None
    shutdown_grace_s: float
    threads: int | None
    api_key: str | None
    tls: bool | Tls | None
    record_inputs: RecordInputs = "failed"
    codec: Codec | None = None
    schedules: "tuple[DeclaredSchedule, ...]" = ()
    schedules_owner: str = ""
    apply_limits: bool = False


def listed(workflows: Iterable[AnyWorkflow]) -> tuple[AnyWorkflow, ...]:
    """Raises InvalidArgument for a single workflow: newcomers forget the list."""
    if isinstance(workflows, Workflow):
        raise InvalidArgument(
            f"workflows={workflows!r} is not a list. Write workflows=[{workflows.fn.__name__}].", field="workflows"
        )
    return tuple(workflows)


class Registry:
    """The workflows of a worker. Each type and version is unique; each input and output must have a JSON form."""

    def __init__(self, workflows: Iterable[AnyWorkflow] = ()) -> None:
        """Raises InvalidArgument for a value that is not a workflow, for a duplicate, and for types without a JSON
        form. Warns (KagziWarning) of code that would break on replay."""
        self._workflows: dict[Served, Workflow[Any, Any]] = {}
        self.limits: dict[str, TypeLimitKeywords] = {}  # the declared limits, by type
        for each in workflows:
            self._add(each)
        from ..lint.registration import warn_about  # noqa: PLC0415  a client that serves nothing does not need it

        warn_about(self._workflows.values())

    def _add(self, any_workflow: AnyWorkflow) -> None:
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
        self._add_limits(workflow)
        self._workflows[key] = workflow

    def _add_limits(self, workflow: Workflow[Any, Any]) -> None:
        if not workflow.limits:
            return
        known = self.limits.setdefault(workflow.name, TypeLimitKeywords())
        for name, value in workflow.limits.items():
            if known.get(name, value) != value:
                raise InvalidArgument(
                    f"versions of workflow {workflow.name!r} declare different limits: {name} is {known.get(name)!r} "
                    f"and {value!r}. They share a queue: declare the same in all of them, or in one only.",
                    field="limits",
                )
        known.update(workflow.limits)

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


def checked_schedules(schedules: "Iterable[DeclaredSchedule]") -> "tuple[DeclaredSchedule, ...]":
    """Raises InvalidArgument."""
    declared = tuple(schedules)
    if not declared:
        return ()
    from ..client.operations.schedule_options import checked_schedules as checked  # noqa: PLC0415  see above

    return checked(declared)


def checked_number(n: object, what: str) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= limits.WORKER_MAX_CONCURRENT:
        raise InvalidArgument(f"{what}={n!r} must be a whole number, 1..{limits.WORKER_MAX_CONCURRENT}.", field=what)
    return n


def checked_text(text: object, what: str) -> str:
    if not isinstance(text, str) or not text.strip() or len(text.encode("utf-8", "replace")) > limits.NAME_BYTES:
        raise InvalidArgument(f"{what}={text!r} must be a string of 1 to {limits.NAME_BYTES} bytes.", field=what)
    return text
