"""Replays recorded runs against code, several at a time; only those being replayed are in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from ...core.errors import InternalError, InvalidArgument, NotFound, PreconditionFailed
from ...core.states import RunStatus
from .findings import Finding, Findings, finding_of

if TYPE_CHECKING:
    from ...core.providers import Rng
    from ...sdk.client.client import Kagzi
    from ...sdk.client.run import Run
    from ...testing.replay.history import History
    from ...testing.replay.replayer import Replayer
    from .code import Code

OPEN = (RunStatus.PENDING, RunStatus.RUNNING, RunStatus.SLEEPING, RunStatus.PAUSED)
AT_ONCE = 8
"""How many histories are read and replayed concurrently."""
_OUTSIDE_WAIT = "5s"

Item = TypeVar("Item")


class RecordedRun(NamedTuple):
    """A run to check. `version` is empty if no worker has had it; `read` gets its history; None: it has ended."""

    run_id: str
    workflow: str
    version: str
    read: Callable[[], Awaitable[History | None]]


class Checker:
    """Determines how runs behave with this code."""

    def __init__(self, code: Code) -> None:
        from ...testing.replay.replayer import Replayer

        self._target = code.target
        self._versions: dict[str, list[str]] = {}
        for workflow in code.workflows:
            self._versions.setdefault(workflow.name, []).append(str(workflow.version))
        self._replayer: Replayer = Replayer(code.workflows, codec=code.codec, outside_wait=_OUTSIDE_WAIT)

    async def check(self, run: RecordedRun, findings: Findings) -> Finding | None:
        """Adds the finding of a run, and returns it; None if the code is compatible, or the run is gone."""
        finding = self._not_here(run.workflow, run.version)
        if finding is None and run.version:  # a run that no worker has had has no history
            try:
                history = await run.read()
            except (NotFound, PreconditionFailed):  # deleted, or it kept changing while it was read
                history = None
            if history is None:
                findings.gone += 1
                return None
            finding = await self._replay(history)
        findings.add(run.run_id, finding)
        return finding

    def _not_here(self, workflow: str, version: str) -> Finding | None:
        versions = self._versions.get(workflow)
        if versions is None:
            text = f"{self._target} has no workflow {workflow!r}: other workers have to serve it"
            return Finding("no_workflow", workflow, version, text)
        if version and version not in versions:
            text = (
                f"{self._target} has {workflow!r} in version {', '.join(versions)} only: the runs wait until a worker "
                f"serves version {version}. Keep one, or register the old code: @workflow(version={version!r})"
            )
            return Finding("no_version", workflow, version, text)
        return None

    async def _replay(self, history: History) -> Finding | None:
        workflow, version = history.workflow_type, history.version
        if (missing := self._not_here(workflow, version)) is not None:
            return missing
        try:
            replay = await self._replayer.run(history)
        except (PreconditionFailed, InvalidArgument, InternalError) as error:  # for example, it cannot be decoded
            return Finding("unchecked", workflow, version, error.message)
        return finding_of(replay, workflow, version, ended=history.status.ended)


async def check_all(
    runs: AsyncIterator[RecordedRun],
    checker: Checker,
    findings: Findings,
    seen: Callable[[RecordedRun, Finding | None], None],
) -> None:
    """Checks all runs, AT_ONCE at a time; calls `seen` after each. Raises what reading a run raises, for example
    Unavailable."""
    turn = asyncio.Lock()

    async def take() -> RecordedRun | None:
        async with turn:
            return await anext(runs, None)

    async def work() -> None:
        while (run := await take()) is not None:
            seen(run, await checker.check(run, findings))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(work())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


# --- selecting runs ---------------------------------------------------------------------------------------------------


async def open_runs(client: Kagzi, sample: int | None, rng: Rng) -> AsyncIterator[RecordedRun]:
    """The open runs of a namespace, newest first; or a sample of each workflow and version."""
    runs = client.list(status=OPEN)
    if sample is not None:
        chosen: Sample[Run[Any]] = Sample(sample, rng)
        async for run in runs:
            chosen.add(_class_of(run), run)
        for run in chosen.items():
            yield _on_server(client, run)
        return
    async for run in runs:
        yield _on_server(client, run)


def _class_of(run: Run[Any]) -> tuple[str, str]:
    info = run.last_info
    assert info is not None  # lists always set it
    return info.workflow, info.version or ""


def _on_server(client: Kagzi, run: Run[Any]) -> RecordedRun:
    from ...testing.replay.history import History

    async def read() -> History | None:
        history = await History.fetch(client, run)
        return None if history.status.ended else history

    return RecordedRun(run.id, *_class_of(run), read)


async def runs_in(path: Path, code: Code, sample: int | None, rng: Rng) -> AsyncIterator[RecordedRun]:
    """The runs in a file of `kagzi export`, including ended ones. Raises InvalidArgument for another file."""
    from ...core.records import DEFAULT_NAMESPACE
    from ...testing.replay.history import History
    from ...testing.replay.reading import read_file

    chosen: set[str] | None = None
    if sample is not None:
        among: Sample[str] = Sample(sample, rng)
        for image, _ in read_file(path):
            among.add((image.workflow_type, image.version or ""), image.run_id)
        chosen = set(among.items())
    namespace = code.server.namespace or DEFAULT_NAMESPACE
    for image, parts in read_file(path):
        if chosen is None or image.run_id in chosen:
            history = History(image, parts, namespace=namespace)
            yield RecordedRun(image.run_id, image.workflow_type, image.version or "", _known(history))


def _known(history: History) -> Callable[[], Awaitable[History | None]]:
    async def read() -> History | None:
        return history

    return read


class Sample(Generic[Item]):
    """At most `size` items of each class, each with the same probability (reservoir sampling)."""

    def __init__(self, size: int, rng: Rng) -> None:
        self._size = size
        self._rng = rng
        self._seen: dict[object, int] = {}
        self._kept: dict[object, list[Item]] = {}

    def add(self, of: object, item: Item) -> None:
        seen = self._seen[of] = self._seen.get(of, 0) + 1
        kept = self._kept.setdefault(of, [])
        if len(kept) < self._size:
            kept.append(item)
        elif (place := int(self._rng.fraction() * seen)) < self._size:
            kept[place] = item

    def items(self) -> list[Item]:
        return [item for kept in self._kept.values() for item in kept]
