"""`kagzi replay`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ...core.text.plurals import counted
from ..console import hint, put, put_table, say, status_text, warn
from ..exits import Exit, Stop
from ..options import Server
from ..output import Output, server_command
from ..times import local, span_text, took_text
from .code import load_code, short_path
from .recordings import file_option, history_of, step_view

if TYPE_CHECKING:
    from pathlib import Path

    from ...sdk.workflow.workflow import Workflow
    from ...testing.replay.history import History
    from ...testing.replay.result import Replay, ReplayedStep


@click.command("replay")
@click.argument("run", metavar="[RUN]", required=False)
@click.option(
    "--code",
    required=True,
    metavar="MODULE",
    help="Module or file that has the workflow, as for kagzi worker: app.flows, app/flows.py.",
)
@file_option
@click.option("--pdb", "debug", is_flag=True, help="Stop in the workflow, in pdb or what PYTHONBREAKPOINT names.")
@click.option("--at", metavar="STEP", help="With --pdb: stop at this step.  [default: the workflow's first line]")
@server_command
def replay(*, run: str | None, code: str, file: Path | None, debug: bool, at: str | None, server: Server) -> Output:
    """Run the code of a workflow with the recorded results of a run.

    \b
    kagzi replay RUN --code app.flows
    kagzi replay RUN --code app.flows --pdb --at charge-card
    kagzi replay --from run.jsonl --code app/flows.py

    RUN is a run id, the beginning of one, or a workflow id (its latest run). No step is executed: each call gets its
    recorded result. The exit code is 1 if the code does not fit the run, or ends differently.
    """
    if at is not None and not debug:
        raise click.UsageError("--at needs --pdb: it says where to stop.")
    loaded = load_code(code, server)
    history = history_of(run, file, loaded.server, loaded.codec)
    played = _debugged(history, loaded.workflows, at or "") if debug else _replayed(history, loaded.workflows)
    if played.error is not None and played.error.type == "bdb.BdbQuit":
        raise Stop(Exit.INTERRUPTED, "the debugger was left before the workflow ended")
    code_of_exit = Exit.OK if played.fits and played.as_recorded is not False else Exit.FAILED
    return Output(_view(history, played), lambda: _put(history, played), code_of_exit)


def _replayed(history: History, workflows: tuple[Workflow[Any, Any], ...]) -> Replay:
    import asyncio

    from ...testing.replay.replayer import Replayer

    return asyncio.run(Replayer(workflows).run(history))


def _debugged(history: History, workflows: tuple[Workflow[Any, Any], ...], at: str) -> Replay:
    import asyncio
    import sys

    from .debugger import DebuggingReplayer, breakpoints_are_off

    if breakpoints_are_off():
        raise click.UsageError("--pdb: PYTHONBREAKPOINT=0 turns breakpoints off. Unset it.")
    replayer = DebuggingReplayer(workflows, at)
    before = sys.gettrace()
    try:
        played = asyncio.run(replayer.run(history))
    finally:
        sys.settrace(before)
    if at and not replayer.stops.reached:
        called = ", ".join(step.id for step in played.steps) or "none"
        raise Stop(Exit.NOT_FOUND, f"the code does not reach step {at}", f"it reaches: {called}")
    return played


# --- for programs -----------------------------------------------------------------------------------------------------


def _view(history: History, played: Replay) -> dict[str, Any]:
    from ...sdk.workflow.codec import to_plain
    from ..views import json_value, view

    divergence = played.divergence
    named = ("step", "recorded", "actual", "file", "line", "message", "remedy", "patch")
    return {
        "run_id": history.run_id,
        "workflow_id": history.workflow_id,
        "workflow": history.workflow_type,
        "version": history.version,
        "status": str(history.status),
        "outcome": played.outcome,
        "fits": played.fits,
        "as_recorded": played.as_recorded,
        "waits_for": played.waits_for or None,
        "output": to_plain(played.output),
        "error": json_value(played.error),
        "steps": [step_view(step) | {"file": step.file or None, "line": step.line or None} for step in played.steps],
        "divergence": None if divergence is None else view(divergence, *named),
    }


# --- for people -------------------------------------------------------------------------------------------------------


def _put(history: History, played: Replay) -> None:
    if played.steps:
        put_table([_row(history, step) for step in played.steps])
        put("")
    recorded = len(history.steps)
    say(f"{len(played.steps)} of {counted(recorded, 'recorded step')} reached")
    divergence = played.divergence
    if divergence is not None:
        put(f"{click.style('diverged', fg='red')} at {divergence}")
        put("")
        put(divergence.remedy.rstrip("\n"))
        return
    put(_end(played))
    if played.as_recorded is False:
        warn(f"the code does not end as recorded: {_recorded_end(history)}")
        hint("it fits the recorded steps; the difference is after the last one, or in what it makes of them")


def _row(history: History, step: ReplayedStep) -> dict[str, str]:
    from ..runs.views import shown_text, shown_value

    value = (
        shown_text(step.error.text) if step.error is not None else "" if step.value is None else shown_value(step.value)
    )
    at = step.finished_at or step.started_at
    after = "" if at is None else f"+{span_text(max(local(at) - local(history.created_at), local(at) - local(at)))}"
    return {
        "step": step.id,
        "kind": str(step.kind),
        "status": status_text(str(step.status)),
        "at": after,
        "took": took_text(step.started_at, step.finished_at),
        "line": f"{short_path(step.file)}:{step.line}" if step.line else "",
        "value": value,
    }


def _end(played: Replay) -> str:
    from ...sdk.workflow.codec import to_plain
    from ..runs.views import shown_text, shown_value

    match played.outcome:
        case "completed":
            return f"{status_text('completed')}  {shown_value(to_plain(played.output))}"
        case "continued":
            return f"continued as a new run, with {shown_value(to_plain(played.output))}"
        case "open":
            return f"open: everything recorded was played. It waits for {played.waits_for}"
        case _:
            error = "" if played.error is None else shown_text(played.error.text)
            return f"{status_text(played.outcome)}  {error}".rstrip()


def _recorded_end(history: History) -> str:
    from ..runs.views import shown_text, shown_value

    if history.error is not None:
        return f"{history.status}, {shown_text(history.error.text)}"
    return f"{history.status}, {shown_value(history.output)}"
