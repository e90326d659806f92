"""`kagzi get`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..console import put, put_fields, put_json, put_table, status_text
from ..exits import Exit
from ..options import Server, json_option, server_options

if TYPE_CHECKING:
    from ...sdk.client.client import Kagzi

CHILDREN_SHOWN = 1_000


@click.command("get")
@click.argument("run", metavar="RUN")
@click.option("--steps", is_flag=True, help="Show its steps, with their attempts.")
@click.option("--input", "only_input", is_flag=True, help="Print only its input, as JSON.")
@click.option("--output", "only_output", is_flag=True, help="Print only its result, as JSON.")
@click.option("--error", "only_error", is_flag=True, help="Print only its error, with the traceback.")
@json_option
@server_options
def get(
    *,
    run: str,
    steps: bool,
    only_input: bool,
    only_output: bool,
    only_error: bool,
    as_json: bool,
    server: Server,
) -> int:
    """Show one run.

    RUN is a run id, the beginning of one, or a workflow id (its latest run).
    """
    if only_input + only_output + only_error > 1:
        raise click.UsageError("--input, --output and --error cannot be combined.")
    view = server.ask(lambda client: _fetch(client, run, with_steps=steps))
    if only_input or only_output:
        put_json(view["input" if only_input else "output"])
    elif only_error:
        return _put_error(view, as_json=as_json)
    elif as_json:
        put_json(view)
    else:
        _put_run(view)
    return Exit.OK


async def _fetch(client: Kagzi, name: str, *, with_steps: bool) -> dict[str, Any]:
    from .find import find_info
    from .views import step_view, whole_run_view

    run, info = await find_info(client, name)
    view = whole_run_view(info)
    view["children"] = [child.id async for child in client.list(parent=run, limit=CHILDREN_SHOWN)][::-1]
    if with_steps:
        view["steps"] = [step_view(step) for step in await run.steps()]
    return view


def _put_error(view: dict[str, Any], *, as_json: bool) -> int:
    error = view["error"] or view["problem"]
    if as_json:
        put_json(error)
    elif error is not None:
        put((error["traceback"] or "").rstrip("\n") or error["text"])
    return Exit.OK


def _put_run(view: dict[str, Any]) -> None:
    from datetime import datetime

    from ...core.times import to_datetime
    from ...system import SystemClock
    from ..times import age_text, local_text, took_text
    from .views import labels_text, value_text

    now: datetime = to_datetime(SystemClock().now())
    status = status_text(view["status"])
    if view["wait_reason"]:
        status += f" ({view['wait_reason']})"
    said = view["status_text"] or ""
    if view["progress"] is not None:
        said = f"{said} ({view['progress']:.0%})".strip()
    put_fields(
        {
            "run": view["run_id"],
            "workflow id": view["workflow_id"],
            "workflow": f"{view['workflow']} (version {view['version']})" if view["version"] else view["workflow"],
            "namespace": view["namespace"],
            "status": status + _requests(view),
            "says": said,
            "paused because": view["pause_reason"] or "" if view["status"] in ("paused", "running") else "",
            "waits for": ", ".join(view["waits"]) or _before(view),
            "problem": view["problem"]["text"] if view["problem"] else "",
            "scheduled for": local_text(view["scheduled_at"]),
            "created": f"{local_text(view['created_at'])} ({age_text(view['created_at'], now)})",
            "wakes": f"{local_text(view['wake_at'])} ({age_text(view['wake_at'], now)})" if view["wake_at"] else "",
            "finished": local_text(view["finished_at"]),
            "took": took_text(view["created_at"], view["finished_at"]),
            "worker": view["worker_id"] or "",
            "labels": labels_text(view["labels"]),
            "input": "" if view["input"] is None else value_text(view["input"]),
            "output": value_text(view["output"]) if view["status"] == "completed" else "",
            "error": view["error"]["text"] if view["error"] else "",
            "parent": view["parent_run_id"] or "",
            "children": _children_text(view["children"]),
            "forked from": view["forked_from"] or "",
            "continued as": view["continued_as"] or "",
            "page": view["url"] or "",
        }
    )
    if view.get("steps"):
        put("")
        _put_steps(view["steps"])


def _before(view: dict[str, Any]) -> str:
    return f"the end of run {view['blocked_by']}" if view["blocked_by"] else ""


def _requests(view: dict[str, Any]) -> str:
    asked = ("cancel_requested", "pause_requested")
    return "".join(f", {each.replace('_', ' ')}" for each in asked if view[each])


def _children_text(children: list[str]) -> str:
    if len(children) <= 5:
        return ", ".join(children)
    return f"{len(children)}: {', '.join(children[:5])} ..."


def _earlier_text(earlier: dict[str, Any]) -> str:
    if earlier["error"]["kind"] != "lost":
        return str(earlier["error"]["text"])
    return f"worker {earlier['worker_id'] or 'unknown'} was lost, noticed at {earlier['finished_at']}"


def _put_steps(steps: list[dict[str, Any]]) -> None:
    from ..times import local_text, took_text
    from .views import value_text

    rows: list[dict[str, str]] = []
    for step in steps:
        rows.extend(
            {
                "step": step["step_id"],
                "kind": step["kind"],
                "status": status_text("lost" if earlier["error"]["kind"] == "lost" else "failed"),
                "attempt": str(earlier["attempt"]),
                "took": took_text(earlier["started_at"], earlier["finished_at"]),
                "result": _earlier_text(earlier),
            }
            for earlier in step["attempts"]
        )
        result = step["error"]["text"] if step["error"] else ""
        if step["not_retried"]:
            result += f" ({step['not_retried']})"
        if step["status"] == "completed":
            result = "" if step["output"] is None else value_text(step["output"])
        elif step["retry_at"] or step["wake_at"]:
            result = f"until {local_text(step['retry_at'] or step['wake_at'])}"
        rows.append(
            {
                "step": step["step_id"],
                "kind": step["kind"],
                "status": status_text(step["status"]),
                "attempt": str(step["attempt"]),
                "took": took_text(step["started_at"] or step["created_at"], step["finished_at"]),
                "result": result,
            }
        )
    put_table(rows)
