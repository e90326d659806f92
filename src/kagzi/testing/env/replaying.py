"""Replays of runs of a test environment: from their histories, through the Replayer."""

from collections.abc import Iterable
from typing import Any, TypeVar

from ...core.errors import Diverged, PreconditionFailed
from ...sdk.client.client import Kagzi
from ...sdk.client.run import Run
from ...sdk.transport.payload_codec import Codec
from ...sdk.workflow.workflow import Workflow
from ..replay.history import History
from ..replay.replayer import Replayer
from ..replay.result import Divergence, Replay

__tracebackhide__ = True  # pytest shows the line of the test instead

O = TypeVar("O")  # noqa: E741  output, as in the documentation


async def replay(client: Kagzi, run: Run[O], workflows: Iterable[Workflow[Any, Any]], codec: Codec | None) -> O:
    """See TestEnv.replay."""
    replayer = Replayer(workflows, codec=codec)
    history = await History.fetch(client, run)
    while True:
        _check(history, await replayer.run(history))
        if history.continued_as is None:
            return await run.result()
        history = await History.fetch(client, history.continued_as)


def _check(history: History, played: Replay) -> None:
    """Raises Diverged, PreconditionFailed if the run has not ended, AssertionError if it ended differently."""
    if played.divergence is not None:
        raise _diverged(history, played.divergence)
    if not history.status.ended:
        raise PreconditionFailed(
            f"run {history.run_id} fits its history, and has not ended: {played.waits_for or history.status}. "
            "Await its result first."
        )
    if played.as_recorded is False:
        recorded = history.error.text if history.error is not None else f"{history.status} with {history.output!r}"
        text = played.error.text if played.error is not None else f"{played.outcome} with {played.output!r}"
        waits = f": {played.waits_for}" if played.waits_for else ""
        raise AssertionError(
            f"the replay of run {history.run_id} ended differently.\nRecorded: {recorded}\nReplayed: {text}{waits}"
        )


def _diverged(history: History, divergence: Divergence) -> Diverged:
    return Diverged(f"run {history.run_id} does not fit its history. {divergence}. {divergence.remedy}")
