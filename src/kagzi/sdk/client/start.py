"""The options of `client.start`, its builder, and the request made from them."""

from collections.abc import Callable, Coroutine, Generator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Self, TypedDict, TypeVar, get_args

import msgspec

from ...core import limits
from ...core.checks.attributes import checked_labels, checked_priority, is_text
from ...core.duration import Duration, parse_duration
from ...core.errors import InvalidArgument, ResourceExhausted, limit_reached
from ...core.public import exported
from ...core.records import Payload
from ...core.run.commands import OnConflict, StartRequest
from ...core.times import Timestamp, from_datetime, us_from_timedelta
from ...core.workflow_types.names import canonical_type
from ..workflow.codec import ANY, write_context, write_payload
from ..workflow.retry import Retry, check_retry
from ..workflow.workflow import Workflow
from .builder import Builder
from .run import Run

if TYPE_CHECKING:  # needs OpenTelemetry
    from ..tracing.spans import StartSpan

I = TypeVar("I")  # noqa: E741  input and output, as in the documentation
O = TypeVar("O")  # noqa: E741  as above

_ON_CONFLICT: tuple[str, ...] = get_args(OnConflict)


class Absent(msgspec.Struct, frozen=True):
    """No input was given. (None is an input.)"""


ABSENT = Absent()


class StartKeywords(TypedDict, total=False):
    """The options of a start, as keywords. The methods of the builder have the same names."""

    id: str | None  #: the workflow_id; default: a new one. If a run with it is open, that run is returned
    namespace: str | None  #: where to start it; default: the client's namespace
    delay: Duration | None  #: begin this much later
    start_at: datetime | None  #: begin at this time; use either this or `delay`
    deadline: datetime | None  #: the run fails with kind TIMEOUT at this time; time in the queue counts
    labels: Mapping[str, str] | None  #: up to 64, to find runs by
    priority: int  #: -100 to 100; higher runs first
    version: int | str | None  #: the version of the workflow; default: the default version
    retry: Retry | None  #: how to retry the whole function if it raises; step results are kept. Default: no retry
    on_conflict: OnConflict
    """If a run with this `id` is open: "existing" (the default) returns it, "existing_or_completed" also returns a
    completed one, "fail" raises AlreadyExists, "replace" terminates it and starts a new one."""
    concurrency_key: str | None  #: per-key limits of the workflow count runs with the same key
    context: Mapping[str, Any] | None  #: values for `ctx.context`, which children inherit: a JSON object


class StartOptions(msgspec.Struct, frozen=True, kw_only=True):
    """All options of one start, as the user gave them."""

    workflow: Workflow[Any, Any] | str
    input: Any = ABSENT
    id: str | None = None
    namespace: str | None = None
    delay: Duration | None = None
    start_at: datetime | None = None
    deadline: datetime | None = None
    labels: Mapping[str, str] | None = None
    priority: int = 0
    version: int | str | None = None
    retry: Retry | None = None
    on_conflict: OnConflict = "existing"
    concurrency_key: str | None = None
    context: Mapping[str, Any] | None = None


BeginStart = Callable[[StartOptions, str | None], Coroutine[Any, Any, Run[Any]]]


@exported
class Start(Builder, Generic[I, O]):
    """A start to refine and await: `run = await client.start(order).id("order-7").input(...)`.

    Every method returns a new one. Awaiting the same one again returns the same run.
    """

    _consequence = "no run was started"

    def __init__(self, begin: BeginStart, options: StartOptions, draw_id: Callable[[], str]) -> None:
        self._begin = begin
        self._options = options
        self._draw_id = draw_id
        self._request_id: str | None = None
        self._is_settled = False

    def __repr__(self) -> str:
        return f"<Start of {_name(self._options.workflow)!r}>"

    def _call(self) -> str:
        return f"client.start({_name(self._options.workflow)!r})"

    def __await__(self) -> Generator[Any, None, Run[O]]:
        """Awaiting the same one again returns the same run."""
        self._is_settled = True
        if self._request_id is None:
            self._request_id = self._draw_id()
        return self._begin(self._options, self._request_id).__await__()

    def _with(self, **changes: Any) -> Self:
        self._is_settled = True
        return type(self)(self._begin, msgspec.structs.replace(self._options, **changes), self._draw_id)

    def input(self, input: I) -> Self:
        """The `input` of the workflow."""
        return self._with(input=input)

    def id(self, id: str) -> Self:
        """The workflow_id. If a run with this `id` is open, that run is returned instead."""
        return self._with(id=id)

    def namespace(self, namespace: str) -> Self:
        """Start it in this `namespace` instead of the client's."""
        return self._with(namespace=namespace)

    def delay(self, delay: Duration) -> Self:
        """Begin after this `delay`. Use either this or `start_at`."""
        return self._with(delay=delay)

    def start_at(self, start_at: datetime) -> Self:
        """Begin at the time `start_at`, which has a time zone."""
        return self._with(start_at=start_at)

    def deadline(self, deadline: datetime) -> Self:
        """The run fails with kind TIMEOUT at the time `deadline`. Time in the queue counts."""
        return self._with(deadline=deadline)

    def labels(self, labels: Mapping[str, str]) -> Self:
        """Add `labels`, up to 64, to find runs by."""
        return self._with(labels={**(self._options.labels or {}), **labels})

    def label(self, key: str, value: str) -> Self:
        """Add a label with this `key` and `value`."""
        return self.labels({key: value})

    def priority(self, priority: int) -> Self:
        """The `priority`, -100 to 100; higher runs are taken first. Default: 0."""
        return self._with(priority=priority)

    def version(self, version: int | str) -> Self:
        """The `version` of the workflow. Default: the default version."""
        return self._with(version=version)

    def retry(self, retry: Retry) -> Self:
        """How to `retry` the whole function if it raises; results of its steps are kept. Default: no retry."""
        return self._with(retry=retry)

    def on_conflict(self, on_conflict: OnConflict) -> Self:
        """What happens if a run with the id is open: `on_conflict` is "existing" (the default), which returns that run,
        "existing_or_completed", "fail" or "replace"."""
        return self._with(on_conflict=on_conflict)

    def concurrency_key(self, key: str) -> Self:
        """Per-key limits of the workflow count runs with the same `key`."""
        return self._with(concurrency_key=key)

    def context(self, context: Mapping[str, Any]) -> Self:
        """The `context`, a JSON object: `ctx.context` in the workflow and in its children."""
        return self._with(context=context)


# --- the request ------------------------------------------------------------------------------------------------------


def start_request(
    options: StartOptions, *, namespace: str, request_id: str, span: "StartSpan | None" = None
) -> StartRequest:
    """The request for the server; `span`: of this start. Raises InvalidArgument, ResourceExhausted."""
    workflow = options.workflow
    if options.delay is not None and options.start_at is not None:
        raise InvalidArgument("delay and start_at are both given. Give one of them.", field="delay")
    if options.on_conflict not in _ON_CONFLICT:
        known = ", ".join(map(repr, _ON_CONFLICT))
        raise InvalidArgument(f"on_conflict={options.on_conflict!r} must be one of {known}.", field="on_conflict")
    delay = None if options.delay is None else us_from_timedelta(parse_duration(options.delay, what="delay"))
    timeout = workflow.timeout if isinstance(workflow, Workflow) else None
    retry = check_retry(options.retry)
    return StartRequest(
        namespace=options.namespace or namespace,
        workflow_type=checked_workflow_name(workflow),
        workflow_id=_checked_id(options.id),
        request_id=request_id,
        input=input_payload(workflow, options.input),
        context=write_context(options.context) if span is None else span.written_into(options.context),
        version="" if options.version is None else str(options.version),
        labels=checked_labels(options.labels),
        priority=checked_priority(options.priority),
        start_at=as_moment(options.start_at, "start_at"),
        delay_us=delay,
        deadline_at=as_moment(options.deadline, "deadline"),
        timeout_us=None if timeout is None else us_from_timedelta(timeout),
        retry=None if retry is None else retry.to_policy(),
        on_conflict=options.on_conflict,
        concurrency_key=_checked_id(options.concurrency_key, "concurrency_key"),
    )


def refuse_oversized(request: StartRequest, limit_bytes: int) -> None:
    """Raises ResourceExhausted if the input exceeds the server's limit, which may be lower than the default."""
    size = 0 if request.input is None else len(request.input.data)
    if size > limit_bytes:
        raise ResourceExhausted(
            f"input of {request.workflow_type!r} is {size:,} bytes as JSON; "
            f"the limit of this server is {limit_bytes:,}. Store it elsewhere and pass a reference.",
            field="input",
            metadata={**limit_reached("payload_bytes", limit_bytes), "size": str(size)},
        )


def _name(workflow: Workflow[Any, Any] | str) -> str:
    return workflow if isinstance(workflow, str) else workflow.name


def checked_workflow_name(workflow: Workflow[Any, Any] | str) -> str:
    if isinstance(workflow, Workflow):
        return workflow.name
    if is_text(workflow):
        return canonical_type(workflow)
    raise InvalidArgument(
        f"workflow={workflow!r} is neither a workflow nor its name. Decorate the function with @workflow.",
        field="workflow",
    )


def input_payload(workflow: Workflow[Any, Any] | str, input: object) -> Payload | None:
    if isinstance(workflow, str):
        return None if input is ABSENT else write_payload(ANY, input, what=f"input of {workflow!r}")
    if not workflow.has_input:
        if input is ABSENT or input is None:
            return None
        raise InvalidArgument(
            f"workflow {workflow.name!r} takes no input, but got {type(input).__name__}.", field="input"
        )
    if input is ABSENT:
        if workflow.input_is_optional:
            return None
        raise InvalidArgument(
            f"workflow {workflow.name!r} needs an input. Pass it after the workflow, or write .input(value).",
            field="input",
        )
    return workflow.write_input(input)


def as_moment(moment: object, what: str) -> Timestamp | None:
    if moment is None:
        return None
    if not isinstance(moment, datetime):
        raise InvalidArgument(
            f"{what}={moment!r} is not a datetime. Write for example datetime.now(UTC) + timedelta(hours=1).",
            field=what,
        )
    return from_datetime(moment, what=what)


def _checked_id(id: str | None, field: str = "id") -> str:
    if id is None:
        return ""
    if not is_text(id):
        raise InvalidArgument(f"{field}={id!r} must be a string of 1 to {limits.NAME_BYTES} bytes.", field=field)
    return id
