"""Histories: what was recorded of one run, from a file of `kagzi export`, from a server, or written in a test."""

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
    """What was recorded of one run: `History.load("run.jsonl")`, `await History.fetch(client, run_id)`.

    Values are plain JSON. Those of a history that is still encoded raise PreconditionFailed: give the `codec`.
    """

    def __init__(
        self,
        image: RunImage,
        parts: Iterable[Part],
        *,
        namespace: str = DEFAULT_NAMESPACE,
        codec: MessageCodec | None = None,
    ) -> None:
        """Made by `load`, `fetch` and `build`."""
        self._image = image
        self._parts = tuple(parts)
        self._codec = codec
        self.namespace = namespace  #: the namespace of the run; files do not name it

    def __repr__(self) -> str:
        return f"<History of {self.workflow_type!r} {self.run_id}: {self.status}, {len(self.step_images)} steps>"

    # --- where they come from -----------------------------------------------------------------------------------------

    @classmethod
    def load(
        cls, path: str | Path, run: str = "", *, codec: Codec | None = None, namespace: str = DEFAULT_NAMESPACE
    ) -> Self:
        """The history in a file that `kagzi export` wrote.

        Args:
            path: The file.
            run: Which one, if the file has several: a run id or a workflow id.
            codec: What values were encoded with, if they were.
            namespace: What `ctx.namespace` is to be.

        Raises InvalidArgument, which names line and field, for a file that is cut off, is of a newer format or is
        something else; NotFound if `run` is not in it.
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
        """All histories in a file, in its order; children are histories of their own. The arguments are those of
        `load`: `path`, `codec`, `namespace`. Raises InvalidArgument."""
        decoding = message_codec(codec)
        return [cls(image, parts, namespace=namespace, codec=decoding) for image, parts in read_file(path)]

    @classmethod
    async def fetch(cls, client: Kagzi, run: Run[Any] | str) -> Self:
        """The history of a run, from its server, through its `client`, whose codec decodes it.

        Args:
            client: Of the namespace of the run.
            run: The run, its id, or a workflow id for its latest run.

        Raises NotFound; PreconditionFailed if the run goes on so fast that there is no whole history of it.
        """
        handle = client.get(run) if isinstance(run, str) else run
        lines = await _exported(handle)
        return cls.read(lines, f"run {handle.id}", namespace=handle.namespace, codec=_codec_of(handle))

    @classmethod
    def read(cls, lines: Iterable[bytes], source: str, *, namespace: str, codec: MessageCodec | None = None) -> Self:
        """The history of the one run in these `lines` of an export, which are of the `namespace`; `source` says what
        they are, `codec` decodes them. Raises InvalidArgument."""
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
        """A history written in a test.

        Args:
            workflow: The workflow, or its name.
            input: What it was given.
            steps: What is recorded, in the order in which it was begun. Numbers and times may be left out: then each
                step ends a second after the one before it.
            signals: Signals that came and that no step has got.
            status: How the run stands.
            output: Its result, if it completed.
            error: How it failed.
            run_id: Its id; `ctx.uuid()` and `ctx.random()` follow from it.
            workflow_id: The id it was started with. Default: its run id.
            version: The version it is pinned to. Default: that of `workflow`.
            namespace: Its namespace.
            labels: Its labels.
            context: What was given with `start(context=...)`.
            attempt: Which attempt of the whole run this is.
            parent_run_id: The run that started it.
            cancel_reason: Why it was cancelled.
            cancel_requested: Whether it is to be cancelled.
            created_at: When it was started: what `ctx.now()` says at first.
            finished_at: When it ended.

        Raises InvalidArgument for values without a JSON form.
        """
        options = dict(locals())
        del options["cls"], options["namespace"]
        image, images = build_images(**options)
        return cls(image, images, namespace=namespace)

    def save(self, path: str | Path) -> None:
        """Write it to a file `path`, as `kagzi export` does."""
        Path(path).write_bytes(self.to_bytes())

    def to_bytes(self) -> bytes:
        """It as `kagzi export` writes it: lines of JSON."""
        counts = {kind: sum(isinstance(part, kind) for part in self._parts) for kind in _KINDS}
        end = End(
            steps=counts[StepImage], attempts=counts[AttemptImage], signals=counts[SignalImage],
            links=counts[LinkImage],
        )  # fmt: skip
        return b"".join([write_run_line(self._image), *map(write_part_line, self._parts), write_end_line(end)])

    def decoded_by(self, codec: MessageCodec | None) -> "History":
        """The same history, whose values this codec decodes."""
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
        """The steps as they are exported, in the order in which they were begun."""
        steps = [part for part in self._parts if isinstance(part, StepImage)]
        return tuple(sorted(steps, key=lambda step: step.begun_seq))

    @property
    def signal_images(self) -> tuple[SignalImage, ...]:
        """The signals as they are exported, in the order in which they came."""
        images = [part for part in self._parts if isinstance(part, SignalImage)]
        return tuple(sorted(images, key=lambda image: image.number))

    @property
    def codec(self) -> MessageCodec | None:
        """What decodes its values, if they are encoded."""
        return self._codec

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self._image.run_id

    @property
    def workflow_id(self) -> str:
        """The id it was started with, or a generated one."""
        return self._image.workflow_id

    @property
    def workflow_type(self) -> str:
        """The name of its workflow."""
        return self._image.workflow_type

    @property
    def version(self) -> str:
        """The version of the workflow that it is pinned to; "1" if no worker has had it."""
        return self._image.version or "1"

    @property
    def status(self) -> RunStatus:
        """How the run stood."""
        return self._image.status

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return self._image.labels

    @property
    def attempt(self) -> int:
        """Which attempt of the whole run this is."""
        return self._image.attempt

    @property
    def parent_run_id(self) -> str | None:
        """The run that started it, if a run did."""
        return self._image.parent_run_id

    @property
    def continued_as(self) -> str | None:
        """The run it went on as, if it did."""
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
        """What it was given, as plain JSON; None if that was nothing."""
        return self._plain(self._image.input, "input")

    @property
    def output(self) -> Any:
        """What it returned, as plain JSON."""
        return self._plain(self._image.output, "output")

    @property
    def error(self) -> ErrorDetail | None:
        """How it failed or was cancelled."""
        return decoded_error(self._codec, self._image.error)

    @property
    def problem(self) -> ErrorDetail | None:
        """Why it was paused by the engine, if it was: code that did not fit, for example."""
        return decoded_error(self._codec, self._image.problem)

    @cached_property
    def steps(self) -> tuple[RecordedStep, ...]:
        """What is recorded, in the order in which it was begun."""
        failures: dict[str, list[ErrorDetail]] = {}
        for part in self._parts:
            if isinstance(part, AttemptImage):
                failures.setdefault(part.step_id, []).append(decoded_error(self._codec, part.error))
        return tuple(self._recorded(step, tuple(failures.get(step.step_id, ()))) for step in self.step_images)

    @cached_property
    def signals(self) -> tuple[RecordedSignal, ...]:
        """The signals that came, in order."""
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
        """The last time that is recorded, in microseconds."""
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
        """A value as it is stored. Raises InvalidArgument."""
        return None if data is None else require_data(data, field)


_KINDS: tuple[type, ...] = (StepImage, AttemptImage, SignalImage, LinkImage)


async def _exported(run: Run[Any]) -> list[bytes]:
    """A run that goes on meanwhile is asked for again."""
    for _ in range(_FETCHES - 1):
        try:
            return [line async for line in run.export()]
        except PreconditionFailed:
            await asyncio.sleep(_FETCH_AGAIN_S)
    return [line async for line in run.export()]


def _codec_of(run: Run[Any]) -> MessageCodec | None:
    """What the client of a run decodes with."""
    return run._backend.connection.codec  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def _moment(at: Timestamp | None) -> datetime | None:
    return None if at is None else to_datetime(at)


def _listed(histories: Sequence[History]) -> str:
    shown = ", ".join(f"{each.run_id} ({each.workflow_type}, {each.workflow_id})" for each in histories[:5])
    return f"{shown} and {len(histories) - 5} more" if len(histories) > 5 else shown
