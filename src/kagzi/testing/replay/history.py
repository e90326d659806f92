"""Histories: everything recorded about one run, from a file of `kagzi export`, from a server, or written in a test."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from ...core.error_details import ErrorDetail
from ...core.errors import InvalidArgument, NotFound, PreconditionFailed
from ...core.records import DEFAULT_NAMESPACE, Payload
from ...core.states import RunStatus
from ...core.times import Timestamp, to_datetime
from ...core.transfers.images import (
    AttemptImage,
    Data,
    End,
    ForgottenImage,
    LinkImage,
    Part,
    RunImage,
    SignalImage,
    StepImage,
    require_data,
    write_end_line,
    write_part_line,
    write_run_line,
)
from ...sdk.client.client import Kagzi
from ...sdk.client.run import Run
from ...sdk.transport.payload_codec import Codec, MessageCodec, message_codec
from ...sdk.workflow.workflow import Workflow
from .building import BUILT_AT, build_images
from .decoding import decoded_error, plain_value
from .reading import read_file, read_lines
from .records import RecordedSignal, RecordedStep

_FETCHES = 8
_FETCH_AGAIN_S = 0.25


class History:
    """Everything recorded about one run: `History.load("run.jsonl")`, `await History.fetch(client, run_id)`.

    Values are plain JSON. Reading a value that is still encoded raises PreconditionFailed: give the `codec`.
    """

    def __init__(
        self,
        image: RunImage,
        parts: Iterable[Part],
        *,
        namespace: str = DEFAULT_NAMESPACE,
        codec: MessageCodec | None = None,
    ) -> None:
        """Use `load`, `fetch` or `build`."""
        self._image = image
        self._parts = tuple(parts)
        self._codec = codec
        self.namespace = namespace  #: the namespace of the run; files do not contain it

    def __repr__(self) -> str:
        return f"<History of {self.workflow_type!r} {self.run_id}: {self.status}, {len(self.step_images)} steps>"

    # --- creating -----------------------------------------------------------------------------------------------------

    @classmethod
    def load(
        cls, path: str | Path, run: str = "", *, codec: Codec | None = None, namespace: str = DEFAULT_NAMESPACE
    ) -> Self:
        """Load the history from a file that `kagzi export` wrote.

        Args:
            path: The file.
            run: The run to load if the file has several: a run id or a workflow id.
            codec: The codec that the values were encoded with, if any.
            namespace: The value of `ctx.namespace`.

        Raises InvalidArgument, which names line and field, if the file is truncated, has a newer format or is not an
        export; NotFound if `run` is not in it.
        """
        histories = cls.load_all(path, codec=codec, namespace=namespace)
        matching = [each for each in histories if not run or run in (each.run_id, each.workflow_id)]
        if not matching:
            raise NotFound(f"{path} has no run {run!r}. It has: {_listed(histories)}.", subject="run", subject_id=run)
        if len(matching) > 1:
            raise InvalidArgument(
                f"{path} has {len(matching)} runs: {_listed(matching)}. Name one of them, or use History.load_all.",
                field="run",
            )
        return matching[0]

    @classmethod
    def load_all(
        cls, path: str | Path, *, codec: Codec | None = None, namespace: str = DEFAULT_NAMESPACE
    ) -> list[Self]:
        """Load all histories of a file, in its order; children have their own histories. The arguments are those of
        `load`: `path`, `codec`, `namespace`. Raises InvalidArgument."""
        decoding = message_codec(codec)
        return [cls(image, parts, namespace=namespace, codec=decoding) for image, parts in read_file(path)]

    @classmethod
    async def fetch(cls, client: Kagzi, run: Run[Any] | str) -> Self:
        """Fetch the history of a run from its server. The codec of `client` decodes it.

        Args:
            client: A client of the run's namespace.
            run: The run, its id, or a workflow id for its latest run.

        Raises NotFound; PreconditionFailed if the run changes too fast for a consistent history.
        """
        handle = client.get(run) if isinstance(run, str) else run
        lines = await _exported(handle)
        return cls.read(lines, f"run {handle.id}", namespace=handle.namespace, codec=_codec_of(handle))

    @classmethod
    def read(cls, lines: Iterable[bytes], source: str, *, namespace: str, codec: MessageCodec | None = None) -> Self:
        """Read the history of the single run in these `lines` of an export, as of the `namespace`; `source` names them
        in errors, `codec` decodes them. Raises InvalidArgument."""
        ((image, parts),) = read_lines(lines, source)
        return cls(image, parts, namespace=namespace, codec=codec)

    @classmethod
    def build(
        cls,
        workflow: Workflow[Any, Any] | str,
        input: Any = ...,
        *,
        steps: Sequence[RecordedStep] = (),
        signals: Sequence[RecordedSignal] = (),
        status: RunStatus = RunStatus.RUNNING,
        output: Any = None,
        error: ErrorDetail | None = None,
        run_id: str = "00000000-0000-7000-8000-000000000000",
        workflow_id: str = "",
        version: str = "",
        namespace: str = DEFAULT_NAMESPACE,
        labels: Mapping[str, str] | None = None,
        context: Mapping[str, Any] | None = None,
        attempt: int = 1,
        parent_run_id: str | None = None,
        cancel_reason: str = "",
        cancel_requested: bool = False,
        created_at: datetime = BUILT_AT,
        finished_at: datetime | None = None,
    ) -> Self:
        """Build a history in a test.

        Args:
            workflow: The workflow, or its name.
            input: The input of the run.
            steps: The recorded steps, in the order in which they began. Numbers and times may be omitted: then each
                step ends a second after the one before it.
            signals: Signals that arrived and that no step has received.
            status: The status of the run.
            output: Its result, if it completed.
            error: How it failed.
            run_id: Its id; `ctx.uuid()` and `ctx.random()` derive from it.
            workflow_id: The id it was started with. Default: its run id.
            version: The version it is pinned to. Default: that of `workflow`.
            namespace: Its namespace.
            labels: Its labels.
            context: The value of `start(context=...)`.
            attempt: The attempt number of the whole run.
            parent_run_id: The run that started it.
            cancel_reason: Why it was cancelled.
            cancel_requested: Whether it has been asked to cancel.
            created_at: When it was started: the first value of `ctx.now()`.
            finished_at: When it ended.

        Raises InvalidArgument for values that have no JSON form.
        """
        options = dict(locals())
        del options["cls"], options["namespace"]
        image, images = build_images(**options)
        return cls(image, images, namespace=namespace)

    def save(self, path: str | Path) -> None:
        """Write the history to a file `path`, as `kagzi export` does."""
        Path(path).write_bytes(self.to_bytes())

    def to_bytes(self) -> bytes:
        """The history as `kagzi export` writes it: lines of JSON."""
        counts = {kind: sum(isinstance(part, kind) for part in self._parts) for kind in _KINDS}
        end = End(
            steps=counts[StepImage], attempts=counts[AttemptImage], signals=counts[SignalImage],
            links=counts[LinkImage], forgotten=counts[ForgottenImage],
        )  # fmt: skip
        return b"".join([write_run_line(self._image), *map(write_part_line, self._parts), write_end_line(end)])

    def decoded_by(self, codec: MessageCodec | None) -> "History":
        """The same history, with this codec to decode its values."""
        if codec is self._codec:
            return self
        return History(self._image, self._parts, namespace=self.namespace, codec=codec)

    # --- the run ------------------------------------------------------------------------------------------------------

    @property
    def image(self) -> RunImage:
        """The run as it is exported."""
        return self._image

    @cached_property
    def step_images(self) -> tuple[StepImage, ...]:
        """The steps as they are exported, in the order in which they began."""
        steps = [part for part in self._parts if isinstance(part, StepImage)]
        return tuple(sorted(steps, key=lambda step: step.begun_seq))

    @property
    def signal_images(self) -> tuple[SignalImage, ...]:
        """The signals as they are exported, in the order in which they arrived."""
        images = [part for part in self._parts if isinstance(part, SignalImage)]
        return tuple(sorted(images, key=lambda image: image.number))

    @property
    def codec(self) -> MessageCodec | None:
        """The codec that decodes its values, if they are encoded."""
        return self._codec

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self._image.run_id

    @property
    def workflow_id(self) -> str:
        """The workflow id that it was started with, or a generated one."""
        return self._image.workflow_id

    @property
    def workflow_type(self) -> str:
        """The name of its workflow."""
        return self._image.workflow_type

    @property
    def version(self) -> str:
        """The version of the workflow that it is pinned to; "1" if it was never claimed."""
        return self._image.version or "1"

    @property
    def status(self) -> RunStatus:
        """The status of the run."""
        return self._image.status

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return self._image.labels

    @property
    def attempt(self) -> int:
        """The attempt number of the whole run."""
        return self._image.attempt

    @property
    def parent_run_id(self) -> str | None:
        """The run that started it, if a run did."""
        return self._image.parent_run_id

    @property
    def continued_as(self) -> str | None:
        """The run id of its successor, if it continued as new."""
        return self._image.continued_as

    @property
    def created_at(self) -> datetime:
        """When it was started (UTC)."""
        return to_datetime(self._image.created_at)

    @property
    def finished_at(self) -> datetime | None:
        """When it ended (UTC)."""
        return _moment(self._image.finished_at)

    @property
    def input(self) -> Any:
        """Its input, as plain JSON; None if it has none."""
        return self._plain(self._image.input, "input")

    @property
    def output(self) -> Any:
        """Its result, as plain JSON."""
        return self._plain(self._image.output, "output")

    @property
    def error(self) -> ErrorDetail | None:
        """How it failed or was cancelled."""
        return decoded_error(self._codec, self._image.error)

    @property
    def problem(self) -> ErrorDetail | None:
        """Why the engine paused it, if it did: for example, code that does not match its history."""
        return decoded_error(self._codec, self._image.problem)

    @cached_property
    def steps(self) -> tuple[RecordedStep, ...]:
        """The recorded steps, in the order in which they began."""
        failures: dict[str, list[ErrorDetail]] = {}
        for part in self._parts:
            if isinstance(part, AttemptImage):
                failures.setdefault(part.step_id, []).append(decoded_error(self._codec, part.error))
        return tuple(self._recorded(step, tuple(failures.get(step.step_id, ()))) for step in self.step_images)

    @cached_property
    def signals(self) -> tuple[RecordedSignal, ...]:
        """The signals that arrived, in order."""
        return tuple(
            RecordedSignal(
                name=image.name,
                value=self._plain(image.payload, f"the value of signal {image.name!r}"),
                received_at=to_datetime(image.received_at),
                step_id=image.step_id or "",
            )
            for image in self.signal_images
        )

    @property
    def last_at(self) -> Timestamp:
        """The last recorded time, in microseconds."""
        run = self._image
        times = [run.created_at, run.started_at or 0, run.finished_at or 0]
        return max(times + [max(step.created_at, step.finished_at or 0) for step in self.step_images])

    def _recorded(self, step: StepImage, failures: tuple[ErrorDetail, ...]) -> RecordedStep:
        return RecordedStep(
            id=step.step_id,
            value=self._plain(step.output, f"the output of step {step.step_id!r}"),
            kind=step.kind,
            status=step.status,
            error=decoded_error(self._codec, step.error),
            name=step.name,
            attempt=step.attempt,
            failures=failures,
            started_at=_moment(step.started_at),
            finished_at=_moment(step.finished_at),
            wake_at=_moment(step.wake_at),
            retry_at=_moment(step.retry_at),
            child_run_id=step.child_run_id or "",
            input=self._plain(step.input, f"the input of step {step.step_id!r}"),
            begun_seq=step.begun_seq,
            seq=step.seq,
        )

    def _plain(self, data: Data | None, what: str) -> Any:
        return None if data is None else plain_value(self._codec, require_data(data, what), what)

    def payload(self, data: Data | None, field: str) -> Payload | None:
        """A value in its stored form. Raises InvalidArgument."""
        return None if data is None else require_data(data, field)


_KINDS: tuple[type, ...] = (StepImage, AttemptImage, SignalImage, LinkImage, ForgottenImage)


async def _exported(run: Run[Any]) -> list[bytes]:
    """If the run changes during the export, export it again."""
    for _ in range(_FETCHES - 1):
        try:
            return [line async for line in run.export()]
        except PreconditionFailed:
            await asyncio.sleep(_FETCH_AGAIN_S)
    return [line async for line in run.export()]


def _codec_of(run: Run[Any]) -> MessageCodec | None:
    """The codec of the run's client."""
    return run._backend.connection.codec  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def _moment(at: Timestamp | None) -> datetime | None:
    return None if at is None else to_datetime(at)


def _listed(histories: Sequence[History]) -> str:
    shown = ", ".join(f"{each.run_id} ({each.workflow_type}, {each.workflow_id})" for each in histories[:5])
    return f"{shown} and {len(histories) - 5} more" if len(histories) > 5 else shown
