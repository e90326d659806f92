"""`kagzi tail`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from ..console import put, put_json, say, say_page, status_text
from ..exits import Exit
from ..options import Server, server_options
from ..times import local, local_text
from .filters import chosen_runs, filter_options
from .get import requests_text

if TYPE_CHECKING:
    from ...sdk.client.client import Kagzi
    from ...sdk.client.filters import Matching
    from ...sdk.client.run import Run

POLL_S = 1.0
NEWEST_RUNS = 200
_EXITS = {"run_completed": Exit.OK, "run_continued": Exit.OK, "run_failed": Exit.FAILED, "run_cancelled": Exit.FAILED}


@click.command()
@click.argument("run", metavar="[RUN]", default="")
@click.option(
    "--after",
    type=click.IntRange(0),
    default=0,
    metavar="SEQ",
    help="With RUN: begin after the event with this number.",
)
@filter_options
@click.option("--jsonl", "--json", "jsonl", is_flag=True, help="Print JSON, one event or run per line.")
@server_options
def tail(*, run: str, after: int, jsonl: bool, server: Server, **options: Any) -> int:
    """Follow a run, or all runs, as they change.

    With RUN, shows its events so far and then each new one, until it has ended; the exit code is 1 if it failed or was
    cancelled. RUN is a run id, the beginning of one, or a workflow id (its latest run).

    Without RUN, shows a run whenever it is new or its status changes, until Ctrl-C.
    """
    if run and any(value or value is False for value in options.values()):
        raise click.UsageError("options such as --status select among all runs; they cannot be combined with a RUN.")
    if after and not run:
        raise click.UsageError("--after needs a RUN.")
    if run:
        return server.ask(lambda client: _tail_run(client, run, after, jsonl=jsonl))
    matching = chosen_runs(**options)
    server.ask(lambda client: _tail_all(client, matching, jsonl=jsonl))
    return Exit.OK


# --- one run ----------------------------------------------------------------------------------------------------------


async def _tail_run(client: Kagzi, name: str, after: int, *, jsonl: bool) -> int:
    """Follows a run that continued as new."""
    from .find import find_run

    run = await find_run(client, name)
    while True:
        if not jsonl:
            say_page(run.url)
        last = await _show_events(run, after, jsonl=jsonl)
        if "continued_as" not in last:
            return _EXITS.get(last.get("kind", ""), Exit.OK)
        run, after = client.get(last["continued_as"]), 0


async def _show_events(run: Run[Any], after: int, *, jsonl: bool) -> dict[str, Any]:
    """Returns the last event; an empty one if there is none after that number."""
    last: dict[str, Any] = {}
    day = ""
    async for event in run.events(after=after):
        if jsonl:
            put_json(event, lines=True)
        else:
            if (today := event_day(event)) not in ("", day):
                put(click.style(f"--- {today}", dim=True))
                day = today
            put(event_line(event))
        last = event
    return last


def event_day(event: dict[str, Any]) -> str:
    """The heading of the following lines: `2026-11-16 UTC+01:00`. In the local time zone, as in logs."""
    if "at" not in event:
        return ""
    moment = local(event["at"])
    return f"{moment:%Y-%m-%d} UTC{moment.isoformat()[-6:]}"


def event_line(event: dict[str, Any]) -> str:
    from .views import value_text

    clock = local(event["at"]).strftime("%H:%M:%S.%f")[:-3] if "at" in event else ""
    at = click.style(clock.ljust(12), dim=True)
    what = event["kind"].replace("_", " ")
    if event["kind"] == "run_status":
        what = f"run {status_text(event['status'])}{requests_text(event)}{_paused_because(event)}"
    parts = [event.get("step", "")]
    if event.get("attempt", 0) > 1:
        parts.append(f"(attempt {event['attempt']})")
    if "output" in event:
        parts.append(click.style(_brief(value_text(event["output"])), dim=True))
    if "error" in event:
        parts.append(click.style(_brief(event["error"]["text"]), fg="red"))
    if "until" in event:
        parts.append(f"until {local_text(event['until'])}")
    parts += [event.get("status_text", ""), f"{event['progress']:.0%}" if "progress" in event else ""]
    parts += [event.get("child_run_id", ""), event.get("continued_as", "")]
    return f"{at}  {what.ljust(16)}  {' '.join(part for part in parts if part)}".rstrip()


def _paused_because(event: dict[str, Any]) -> str:
    return f": {event['pause_reason']}" if event.get("pause_reason") else ""


def _brief(text: str, characters: int = 100) -> str:
    line = " ".join(text.split())
    return line if len(line) <= characters else line[:characters] + "..."


# --- all runs ---------------------------------------------------------------------------------------------------------


async def _tail_all(client: Kagzi, matching: Matching, *, jsonl: bool) -> None:
    """Polls the newest runs once a second. Shows existing ones once, oldest first."""
    known: dict[str, tuple[str, str | None]] = {}
    first = True
    while True:
        known, changed = await _poll(client, matching, known)
        if first and not changed:
            say("No runs yet. Start one: kagzi start WORKFLOW INPUT")
        first = False
        for view in changed:
            if jsonl:
                put_json(view, lines=True)
            else:
                put(_run_line(view))
        await asyncio.sleep(POLL_S)


async def _poll(
    client: Kagzi, matching: Matching, known: dict[str, tuple[str, str | None]]
) -> tuple[dict[str, tuple[str, str | None]], list[dict[str, Any]]]:
    """The status of the newest runs, and the runs whose status has changed, oldest first."""
    from .find import list_infos
    from .views import run_view

    views = [run_view(run) async for run in list_infos(client, matching, NEWEST_RUNS)]
    views.reverse()
    standing = {view["run_id"]: (view["status"], view["status_text"]) for view in views}
    return standing, [view for view in views if known.get(view["run_id"]) != standing[view["run_id"]]]


def _run_line(view: dict[str, Any]) -> str:
    text = view["status_text"] or (view["error"]["text"] if view["error"] else "")
    status = status_text(view["status"])
    padding = " " * (9 - len(view["status"]))
    return f"{view['run_id']}  {status}{padding}  {view['workflow']}  {view['workflow_id']}  {_brief(text)}".rstrip()
