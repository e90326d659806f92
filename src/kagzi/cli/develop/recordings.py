"""Reads recorded runs from a server, or from a file of `kagzi export`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...core.text.commands import quoted
from ..codecs import codec_of
from ..exits import Exit, Stop
from ..options import Server, export_file

if TYPE_CHECKING:
    from ...sdk.client.client import Kagzi
    from ...sdk.transport.payload_codec import Codec
    from ...testing.replay.history import History
    from ...testing.replay.records import RecordedStep
    from .differences import Recording

file_option = export_file("Take runs from this file of kagzi export instead of a server.")


def history_of(name: str | None, file: Path | None, server: Server, codec: Codec | None) -> History:
    """The run with that name: a run id, its beginning, or a workflow id (its latest run). A file with one run needs no
    name. Payloads are decoded with `codec`. Raises Stop, NotFound, and InvalidArgument for a file that is not an
    export."""
    from ...sdk.transport.payload_codec import message_codec

    if file is not None:
        history = _chosen(_load(file, server), name, file)
    elif name is not None:
        history = server.ask(lambda client: _fetch(client, name))
    else:
        raise click.UsageError("give a RUN, or a file with one run: --from FILE.")
    return history if codec is None else history.decoded_by(message_codec(codec))


def recordings_of(run: str, other: str | None, file: Path | None, server: Server) -> tuple[Recording, Recording]:
    """Left and right of a comparison. Without `other`, raises Stop for a run that is not a fork."""
    if file is None:
        left, right = server.ask(lambda client: _fetch_both(client, run, other))
    else:
        histories = _load(file, server)
        first = _chosen(histories, run, file)
        second = _chosen(histories, other or _original_of(first), file)
        left, right = (first, second) if other else (second, first)
    return _recording(left), _recording(right)


# --- servers ----------------------------------------------------------------------------------------------------------


async def _fetch(client: Kagzi, name: str) -> History:
    from ...testing.replay.history import History
    from ..runs.find import find_run

    return await History.fetch(client, await find_run(client, name))


async def _fetch_both(client: Kagzi, name: str, other: str | None) -> tuple[History, History]:
    first = await _fetch(client, name)
    if other is not None:
        return first, await _fetch(client, other)
    return await _fetch(client, _original_of(first)), first


def _original_of(history: History) -> str:
    forked_from = history.image.forked_from
    if forked_from is None:
        run_id = history.run_id
        remedy = f"give the run to compare it with: kagzi diff {quoted(run_id)} OTHER"
        raise Stop(Exit.USAGE, f"run {run_id} is not a fork", remedy)
    return forked_from


# --- files ------------------------------------------------------------------------------------------------------------


def _load(file: Path, server: Server) -> list[History]:
    from ...testing.replay.history import History

    namespace = {} if server.namespace is None else {"namespace": server.namespace}
    return History.load_all(file, codec=codec_of(server.codec).codec, **namespace)


def _chosen(histories: Sequence[History], name: str | None, file: Path) -> History:
    if name is None:
        if len(histories) == 1:
            return histories[0]
        raise Stop(Exit.USAGE, f"{file} has {len(histories)} runs", f"name one of them: {_listed(histories)}")
    named = [each for each in histories if name.lower() == each.run_id or name == each.workflow_id]
    begin = [each for each in histories if each.run_id.startswith(name.lower())]
    if named:
        return max(named, key=lambda each: each.created_at)
    if len(begin) == 1:
        return begin[0]
    if begin:
        raise Stop(Exit.USAGE, f"{name!r} is the beginning of more than one run id in {file}", "write more digits")
    raise Stop(Exit.NOT_FOUND, f"run {name} not found in {file}", f"it has: {_listed(histories)}")


def _listed(histories: Sequence[History]) -> str:
    shown = ", ".join(f"{each.run_id} ({each.workflow_id})" for each in histories[:5])
    return f"{shown} and {len(histories) - 5} more" if len(histories) > 5 else shown


# --- for comparison ---------------------------------------------------------------------------------------------------


def _recording(history: History) -> Recording:
    from ..views import json_value
    from .differences import Recording

    run = history.image
    facts = {
        "run_id": history.run_id,
        "workflow_id": history.workflow_id,
        "workflow": history.workflow_type,
        "version": run.version,
        "status": history.status,
        "forked_from": run.forked_from,
        "created_at": history.created_at,
        "finished_at": history.finished_at,
        "input": history.input,
        "output": history.output,
        "error": history.error,
    }
    return Recording(json_value(facts), [step_view(step) for step in history.steps])


def step_view(step: RecordedStep) -> dict[str, Any]:
    """A recorded step as `kagzi get --steps --json` shows it."""
    from ..views import json_value

    facts = {
        "step_id": step.id,
        "name": step.name,
        "kind": step.kind,
        "status": step.status,
        "attempt": step.attempt,
        "started_at": step.started_at,
        "finished_at": step.finished_at,
        "output": step.value,
        "error": step.error,
    }
    view: dict[str, Any] = json_value(facts)
    return view
