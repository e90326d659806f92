"""`kagzi get`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import click

from ..console import put, put_fields, put_json, put_table, status_text
from ..options import Server
from ..output import Output, server_command
from ..times import age_text, local_text, now, took_text
from ..views import cell

if TYPE_CHECKING:
    from ...sdk.client.client import Kagzi

CHILDREN_SHOWN = 1_000
INPUT_CHARS = 400
CELL_CHARS = 160  # of a result, in a table


@click.command("get")
@click.argument("run", metavar="RUN")
@click.option("--steps", is_flag=True, help="Show its steps, with their attempts.")
@click.option(
    "--forgotten", is_flag=True, help="Show the steps that retries of the run have discarded, latest retry first."
)
@click.option("--input", "only_input", is_flag=True, help="Print only its input, as JSON.")
@click.option("--output", "only_output", is_flag=True, help="Print only its result, as JSON.")
@click.option("--error", "only_error", is_flag=True, help="Print only its error, with the traceback.")
@server_command
def get(
    *,
    run: str,
    steps: bool,
    forgotten: bool,
    only_input: bool,
    only_output: bool,
    only_error: bool,
    server: Server,
) -> Output:
    """Show one run.

    RUN is a run id, the beginning of one, or a workflow id (its latest run).
    """
    if only_input + only_output + only_error > 1:
        raise click.UsageError("--input, --output and --error cannot be combined.")
    view, queued = server.ask(lambda client: _fetch(client, run, with_steps=steps, with_forgotten=forgotten))
    if only_input or only_output:
        value = view["input" if only_input else "output"]
        return Output(value, lambda: put_json(value))
    if only_error:
        error = view["error"] or view["problem"]
        return Output(error, lambda: _put_error(error))
    return Output(view, lambda: _put_run(view, queued))


async def _fetch(client: Kagzi, name: str, *, with_steps: bool, with_forgotten: bool) -> tuple[dict[str, Any], str]:
    """Also how long it has waited for workers."""
    from .find import find_info
    from .views import queued_text, step_view, whole_run_view

    run, info = await find_info(client, name)
    view = whole_run_view(info)
    view["children"] = [child.id async for child in client.list(parent=run, limit=CHILDREN_SHOWN)][::-1]
    view["children_count"] = len(view["children"])
    view["children_capped"] = False
    if view["children_count"] == CHILDREN_SHOWN:
        count = await client.count(parent=run)
        view["children_count"], view["children_capped"] = int(count), count.capped
    if with_steps:
        view["steps"] = [step_view(step) for step in await run.steps()]
    if with_forgotten:
        view["forgotten_steps"] = [step_view(step) for step in await run.steps(forgotten=True)]
    return view, queued_text(info)


def _put_error(error: dict[str, Any] | None) -> None:
    if error is not None:
        put((error["traceback"] or "").rstrip("\n") or error["text"])


def _put_run(view: dict[str, Any], queued: str) -> None:
    from .views import shown_text, shown_value

    status = status_text(view["status"])
    if view["wait_reason"]:
        status += f" ({view['wait_reason']})"
    progress = "" if view["progress"] is None else f"({view['progress']:.0%})"
    created, wakes = view["created_at"], view["wake_at"]
    put_fields(
        {
            "run": view["run_id"],
            "workflow id": view["workflow_id"],
            "workflow": f"{view['workflow']} (version {view['version']})" if view["version"] else view["workflow"],
            "namespace": view["namespace"],
            "status": status + requests_text(view),
            "says": f"{view['status_text'] or ''} {progress}".strip(),
            "state": "" if view["state"] is None else shown_value(view["state"]),
            "paused because": view["pause_reason"] if view["status"] in ("paused", "running") else "",
            "waits for": ", ".join(view["waits"]) or _before(view),
            "problem": shown_text(view["problem"]["text"]) if view["problem"] else "",
            "scheduled for": local_text(view["scheduled_at"]),
            "created": f"{local_text(created)} ({age_text(created, now())})",
            "queued": queued,
            "wakes": f"{local_text(wakes)} ({age_text(wakes, now())})" if wakes else "",
            "finished": local_text(view["finished_at"]),
            "took": took_text(created, view["finished_at"]),
            "worker": view["worker_id"],
            "only for build": view["pinned_build"],
            "labels": cell(view["labels"]),
            "input": "" if view["input"] is None else shown_value(view["input"], INPUT_CHARS),
            "output": shown_value(view["output"]) if view["status"] == "completed" else "",
            "error": shown_text(view["error"]["text"]) if view["error"] else "",
            "parent": view["parent_run_id"],
            "children": _children_text(view),
            "forked from": view["forked_from"],
            "continued as": view["continued_as"],
            "unread signals": str(view["unread_signals"] or ""),
            "handed on to": view["handed_on_to"],
            "page": view["url"],
        }
    )
    if view.get("steps"):
        put("")
        put_table([row for step in view["steps"] for row in _step_rows(step)])
    _put_forgotten(view.get("forgotten_steps", ()))


def _put_forgotten(steps: Sequence[dict[str, Any]]) -> None:
    """One table for each retry."""
    for retried_at, discarded in groupby(steps, key=itemgetter("retried_at")):
        put("")
        put(f"before the retry of {local_text(retried_at)}:")
        put_table([row for step in discarded for row in _step_rows(step)])


def _before(view: dict[str, Any]) -> str:
    return f"the end of run {view['blocked_by']}" if view["blocked_by"] else ""


def requests_text(view: dict[str, Any]) -> str:
    """`, cancel requested`: what a run, or one of its events, was asked to do."""
    requests = ("cancel_requested", "pause_requested")
    return "".join(f", {each.replace('_', ' ')}" for each in requests if view.get(each))


def _children_text(view: dict[str, Any]) -> str:
    children: list[str] = view["children"]
    if len(children) <= 5:
        return ", ".join(children)
    count = f"{view['children_count']}{'+' if view['children_capped'] else ''}"
    return f"{count}: {', '.join(children[:5])} ..."


def _step_rows(step: dict[str, Any]) -> Iterator[dict[str, str]]:
    """One row for each attempt that failed or was lost, and one for the step itself."""
    from .views import shown_text, shown_value

    for attempt in step["attempts"]:
        lost = attempt["error"]["kind"] == "lost"
        result = shown_text(attempt["error"]["text"])
        if lost:
            result = f"worker {attempt['worker_id'] or 'unknown'} was lost (detected at {attempt['finished_at']})"
        if attempt["before_retry"]:
            result = f"before the retry: {result}"
        took = took_text(attempt["started_at"], attempt["finished_at"])
        yield _step_row(step, "lost" if lost else "failed", attempt["attempt"], took, result)
    result = shown_text(step["error"]["text"]) if step["error"] else ""
    if step["not_retried"]:
        result += f" ({step['not_retried']})"
    if step["status"] == "completed":
        result = "" if step["output"] is None else shown_value(step["output"], CELL_CHARS)
    elif step["retry_at"] or step["wake_at"]:
        result = f"until {local_text(step['retry_at'] or step['wake_at'])}"
    took = took_text(step["started_at"] or step["created_at"], step["finished_at"])
    yield _step_row(step, step["status"], step["attempt"], took, result)


def _step_row(step: dict[str, Any], status: str, attempt: int, took: str, result: str) -> dict[str, str]:
    names = {"step": step["step_id"], "kind": step["kind"], "status": status_text(status)}
    return {**names, "attempt": str(attempt), "took": took, "result": result}
